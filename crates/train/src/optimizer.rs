//! AdamW over the arena of weights, with what clipping leaves of the gradient.

use crate::settings::Settings;
use kernels::{AdamW, Moments, Pool, adamw};
use model::{Tensor, Weights};
use std::ops::Range;

const EMBEDDING: &str = "embedding";

/// Running means of the gradient, in the order of the weights' arena.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Optimizer {
    pub first: Vec<f32>,
    pub second: Vec<f32>,
    parts: Vec<Part>,
}

/// A stretch of the arena with one weight decay.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    range: Range<usize>,
    decays: bool,
}

/// One update's values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update {
    /// Its number, from 1.
    pub step: u64,
    pub learning_rate: f64,
    /// Norm of the whole gradient.
    pub grad_norm: f64,
}

impl Optimizer {
    /// Moments at zero.
    pub fn new(weights: &Weights) -> Self {
        let zeros = || vec![0.0; weights.as_slice().len()];
        let mut parts: Vec<Part> = Vec::new();
        for tensor in weights.tensors() {
            let (range, decays) = (tensor.range.clone(), decays(tensor));
            match parts.last_mut() {
                Some(last) if last.decays == decays && last.range.end == range.start => {
                    last.range.end = range.end;
                }
                _ => parts.push(Part { range, decays }),
            }
        }
        Self { first: zeros(), second: zeros(), parts }
    }

    /// Updates the weights. A gradient longer than `max-grad-norm` is scaled to it as a whole.
    pub fn update(
        &mut self,
        pool: &Pool,
        settings: &Settings,
        update: Update,
        gradients: &[f32],
        weights: &mut Weights,
    ) {
        let weights = weights.as_mut_slice();
        for Part { range, decays } in &self.parts {
            let range = range.clone();
            let values = AdamW {
                learning_rate: update.learning_rate as f32,
                beta1: settings.beta1 as f32,
                beta2: settings.beta2 as f32,
                epsilon: settings.epsilon as f32,
                weight_decay: if *decays { settings.weight_decay as f32 } else { 0.0 },
                gradient_scale: clip(update.grad_norm, settings.max_grad_norm) as f32,
                step: update.step,
            };
            let moments = Moments {
                first: &mut self.first[range.clone()],
                second: &mut self.second[range.clone()],
            };
            adamw(pool, &values, &gradients[range.clone()], moments, &mut weights[range]);
        }
    }
}

/// Matrices decay; vectors (the gains of the norms, the reward head) and the embedding do not (OLMo 2,
/// arXiv 2501.00656, section 3.3: embeddings that decay shrink, and the first gradients grow).
fn decays(tensor: &Tensor) -> bool {
    tensor.shape.len() > 1 && tensor.name != EMBEDDING
}

/// What the gradient is multiplied with so that its norm is at most `max`.
fn clip(norm: f64, max: f64) -> f64 {
    if norm > max { max / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use model::ModelConfig;

    #[test]
    fn only_long_gradients_are_scaled() {
        for (norm, expected) in [(0.0, 1.0), (0.5, 1.0), (2.0, 1.0), (4.0, 0.5), (2e9, 1e-9)] {
            assert_eq!(clip(norm, 2.0), expected);
        }
    }

    #[test]
    fn matrices_decay_and_vectors_and_the_embedding_do_not() {
        let config = ModelConfig::from_depth(1, 16, 8);
        let mut weights = Weights::init(&config, Seed(1)).unwrap();
        let before = weights.clone();
        let mut optimizer = Optimizer::new(&weights);
        let gradients = vec![0.0; weights.as_slice().len()];
        let settings = Settings { weight_decay: 0.5, ..Settings::default() };
        let update = Update { step: 1, learning_rate: 0.1, grad_norm: 0.0 };
        optimizer.update(&Pool::new(1), &settings, update, &gradients, &mut weights);
        assert_eq!(before.tensors().iter().filter(|t| t.name == EMBEDDING).count(), 1);
        for tensor in before.tensors() {
            let is_matrix = tensor.shape.len() > 1 && tensor.name != "embedding";
            let factor = if is_matrix { 0.95 } else { 1.0 };
            for i in tensor.range.clone() {
                let (old, new) = (before.as_slice()[i], weights.as_slice()[i]);
                assert!((new - factor * old).abs() <= 1e-6 * old.abs(), "{}", tensor.name);
            }
        }
    }
}
