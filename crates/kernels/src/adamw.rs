//! One AdamW update of a flat slice.

use crate::check::length;
use crate::cpu::share::Shared;
use crate::pool::Pool;

/// Elements of a piece of work.
const PIECE: usize = 1 << 14;

/// Hyperparameters of one update (Loshchilov and Hutter 2019, algorithm 2: decay is decoupled from
/// the gradient and scaled by the learning rate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Learning rate of this step.
    pub learning_rate: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub epsilon: f32,
    /// Share of the weight that decays per unit of learning rate.
    pub weight_decay: f32,
    /// Multiplies the gradient first: one, or what clipping by norm leaves.
    pub gradient_scale: f32,
    /// Number of this update, from 1: the bias correction needs it.
    pub step: u64,
}

/// Running means that the optimizer keeps for each weight.
pub struct Moments<'a> {
    /// Mean of the gradient.
    pub first: &'a mut [f32],
    /// Mean of its square.
    pub second: &'a mut [f32],
}

/// Updates `weights` and `moments` in place from `gradients`. All four slices have the same length.
/// Weight decay differs by tensor: call it once a tensor.
///
/// # Panics
/// If lengths differ, or if `step` is 0.
pub fn adamw(
    pool: &Pool,
    settings: &AdamW,
    gradients: &[f32],
    moments: Moments<'_>,
    weights: &mut [f32],
) {
    length("adamw", "gradients", gradients, weights.len());
    length("adamw", "moments.first", moments.first, weights.len());
    length("adamw", "moments.second", moments.second, weights.len());
    assert!(settings.step > 0, "adamw: step is 0, expected to count from 1");
    let update = Update::new(settings);
    let length = weights.len();
    let (weights, first, second) =
        (Shared::new(weights), Shared::new(moments.first), Shared::new(moments.second));
    pool.run_ranges(length, PIECE, |range| {
        // SAFETY: pieces' ranges do not overlap.
        let (weights, first, second) = unsafe {
            (weights.part(range.clone()), first.part(range.clone()), second.part(range.clone()))
        };
        pool.level().run(
            #[inline(always)]
            || update.apply(&gradients[range], first, second, weights),
        );
    });
}

/// The factors that all elements share.
struct Update {
    settings: AdamW,
    /// What remains of a weight.
    keep: f32,
    /// Learning rate over the first moment's bias correction.
    rate: f32,
    /// One over the root of the second moment's bias correction.
    root: f32,
}

impl Update {
    fn new(settings: &AdamW) -> Update {
        let step = i32::try_from(settings.step).unwrap_or(i32::MAX);
        let correction = |beta: f32| 1.0 - f64::from(beta).powi(step);
        let rate = f64::from(settings.learning_rate);
        Update {
            settings: *settings,
            keep: (1.0 - rate * f64::from(settings.weight_decay)) as f32,
            rate: (rate / correction(settings.beta1)) as f32,
            root: (1.0 / correction(settings.beta2).sqrt()) as f32,
        }
    }

    #[inline(always)]
    fn apply(&self, gradients: &[f32], first: &mut [f32], second: &mut [f32], weights: &mut [f32]) {
        let AdamW { beta1, beta2, epsilon, gradient_scale, .. } = self.settings;
        let moments = first.iter_mut().zip(second);
        for ((&g, (m, v)), w) in gradients.iter().zip(moments).zip(weights) {
            let g = g * gradient_scale;
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *w = self.keep * *w - self.rate * *m / (v.sqrt() * self.root + epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::testing::{assert_close, bits, pools, values};
    use proptest::prelude::*;

    fn settings(step: u64) -> AdamW {
        AdamW {
            learning_rate: 3e-3,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            weight_decay: 0.1,
            gradient_scale: 0.7,
            step,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn agrees_with_its_twin_and_is_the_same_everywhere(n in 0usize..40_000, step in 1u64..2000) {
            let gradients = values(1, n);
            let start = || {
                let second: Vec<f32> = values(3, n).iter().map(|x| x * x).collect();
                [values(2, n), second, values(4, n)]
            };
            let mut expected = start();
            let [first, second, weights] = &mut expected;
            reference::adamw(&settings(step), &gradients, Moments { first, second }, weights);
            let mut bits_of_first = None;
            for pool in pools() {
                let mut found = start();
                let [first, second, weights] = &mut found;
                adamw(&pool, &settings(step), &gradients, Moments { first, second }, weights);
                for (found, expected) in found.iter().zip(&expected) {
                    assert_close("state", found, expected, 1e-6);
                }
                let found = found.map(|x| bits(&x));
                assert_eq!(bits_of_first.get_or_insert_with(|| found.clone()), &found, "{pool:?}");
            }
        }
    }

    /// From nothing, the corrected moments are the gradient and its square, so that the first step is
    /// the learning rate whatever the gradient's size.
    #[test]
    fn the_first_step_has_the_size_of_the_learning_rate() {
        let settings = AdamW { weight_decay: 0.0, ..settings(1) };
        let (mut first, mut second, mut weights) = ([0.0; 3], [0.0; 3], [1.0f32; 3]);
        let moments = Moments { first: &mut first, second: &mut second };
        adamw(&Pool::new(1), &settings, &[1e-3, -5.0, 0.0], moments, &mut weights);
        assert_close("weights", &weights, &[1.0 - 3e-3, 1.0 + 3e-3, 1.0], 1e-6);
    }

    #[test]
    fn a_gradient_that_is_not_finite_reaches_its_weight() {
        let (mut first, mut second, mut weights) = ([0.0; 2], [0.0; 2], [1.0f32; 2]);
        let moments = Moments { first: &mut first, second: &mut second };
        adamw(&Pool::new(1), &settings(1), &[f32::NAN, f32::INFINITY], moments, &mut weights);
        assert!(weights.iter().all(|w| w.is_nan()), "{weights:?}");
    }
}
