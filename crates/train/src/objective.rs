//! What a stage wants the model to become. An [`Objective`] knows the data of every step and how to
//! turn them into gradients; the loop ([`crate::run`]) knows neither, only how to take the step.
//!
//! The flow of one step: `work(step)` gives the micro-batches; their `weight`s are summed to `W`; each
//! micro-batch then goes through `accumulate` with `scale = 1 / W`, which adds
//! `scale * d(summed loss)/d(weights)` to the engine's gradients. So the gradient of the step is that of
//! the mean over all counted targets, however unevenly they lie in the micro-batches.

use base::Digest;
use model::{Batch, Engine, Weights};
use std::collections::BTreeMap;

/// Named values that are reported beside the loss. Their order is that of their names.
pub type Measures = BTreeMap<String, f64>;

/// What an objective's own error may be: anything that can be shown and sent to another thread.
pub type ObjectiveError = Box<dyn std::error::Error + Send + Sync>;

/// What one micro-batch gave, as sums over its counted targets: the loop divides by the step's weight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Summed loss, in nats for the objectives on tokens.
    pub loss: f64,
    /// Other sums by name, each reported as its mean: sums over the same targets or pairs as the loss.
    pub measures: Measures,
}

impl Sums {
    /// The sum of a loss, without other measures.
    pub fn of_loss(loss: f64) -> Self {
        Self { loss, measures: Measures::new() }
    }

    /// Adds the sums of another micro-batch.
    pub fn add(&mut self, other: &Sums) {
        self.loss += other.loss;
        for (name, value) in &other.measures {
            *self.measures.entry(name.clone()).or_insert(0.0) += value;
        }
    }
}

/// A loss over some data.
///
/// Everything that it gives must be a pure function of its construction and of `step`: this is what
/// makes a resumed run equal to an uninterrupted one without a stored iterator.
pub trait Objective {
    /// One micro-batch: what fits into the engine at once.
    type Work;

    /// A short name: `next-token`, `supervised`, `dpo`…
    fn name(&self) -> &str;

    /// Digest of what decides the work and the loss (data, seed, coefficients). A checkpoint made under
    /// another digest is refused.
    fn digest(&self) -> Digest;

    /// The most tokens in one micro-batch: the engine's memory plan is made for it, and evaluations have
    /// to fit it too.
    fn max_tokens(&self) -> usize;

    /// The most scored rows in one micro-batch or evaluation batch; fewer than all take less memory.
    fn max_targets(&self) -> usize {
        self.max_tokens()
    }

    /// How many steps one pass over the data takes (not always a whole number).
    fn steps_per_epoch(&self) -> f64;

    /// The micro-batches of a step, counted from 0, in the order in which they are summed.
    ///
    /// # Errors
    /// The data cannot be read or do not fit.
    fn work(&self, step: u64) -> Result<Vec<Self::Work>, ObjectiveError>;

    /// How much a micro-batch counts in the mean: its counted targets, or its pairs.
    fn weight(&self, work: &Self::Work) -> f64;

    /// How many tokens the model reads in a micro-batch (for `tokens_seen` and the rate).
    fn tokens(&self, work: &Self::Work) -> u64;

    /// Runs forward, the loss and backward, adding `scale` times the gradient of the summed loss to
    /// the engine's gradients.
    ///
    /// # Errors
    /// The work does not fit the engine, or the objective's own reasons.
    fn accumulate(
        &mut self,
        engine: &mut Engine,
        weights: &Weights,
        work: &Self::Work,
        scale: f64,
    ) -> Result<Sums, ObjectiveError>;
}

/// Maximum likelihood of a batch's targets, each with weight 1: what [`crate::NextToken`] and
/// [`crate::Supervised`] accumulate.
///
/// # Errors
/// The batch does not fit the engine.
pub fn learn_targets(
    engine: &mut Engine,
    weights: &Weights,
    batch: &Batch,
    scale: f64,
) -> Result<Sums, ObjectiveError> {
    let each = vec![1.0; batch.targets.len()];
    let loss = engine.next_token(weights, batch, &each, scale)?;
    Ok(Sums::of_loss(loss))
}
