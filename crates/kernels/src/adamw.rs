//! One AdamW update of a flat slice.

use crate::check::length;
use crate::pool::Pool;
use crate::reference;

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
    _pool: &Pool,
    settings: &AdamW,
    gradients: &[f32],
    moments: Moments<'_>,
    weights: &mut [f32],
) {
    length("adamw", "gradients", gradients, weights.len());
    length("adamw", "moments.first", moments.first, weights.len());
    length("adamw", "moments.second", moments.second, weights.len());
    assert!(settings.step > 0, "adamw: step is 0, expected to count from 1");
    reference::adamw(settings, gradients, moments, weights);
}
