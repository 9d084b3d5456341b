//! Accumulation over micro-batches of unequal size is weighted by their targets.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Digest, Seed, Silent, Stop};
use common::{sequences, settings, weights};
use kernels::Pool;
use model::{Batch, Engine, Weights};
use std::sync::Arc;
use train::{Budget, Context, Objective, ObjectiveError, Record, Settings, Sums, learn_targets};

/// One step of given micro-batches.
struct Fixed {
    batches: Vec<Batch>,
    /// In place of the model's losses, one a target of each micro-batch.
    losses: Option<Vec<Vec<f64>>>,
    next: usize,
}

impl Objective for Fixed {
    type Work = (usize, Batch);

    fn name(&self) -> &str {
        "fixed"
    }

    fn digest(&self) -> Digest {
        Digest::of_bytes(b"fixed")
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn steps_per_epoch(&self) -> f64 {
        1.0
    }

    fn work(&self, _: u64) -> Result<Vec<(usize, Batch)>, ObjectiveError> {
        Ok(self.batches.iter().cloned().enumerate().collect())
    }

    fn weight(&self, (i, batch): &(usize, Batch)) -> f64 {
        self.losses.as_ref().map_or(batch.targets.len(), |losses| losses[*i].len()) as f64
    }

    fn tokens(&self, (_, batch): &(usize, Batch)) -> u64 {
        batch.tokens.len() as u64
    }

    fn accumulate(
        &mut self,
        engine: &mut Engine,
        weights: &Weights,
        (i, batch): &(usize, Batch),
        scale: f64,
    ) -> Result<Sums, ObjectiveError> {
        let sums = learn_targets(engine, weights, batch, scale)?;
        let losses = self.losses.as_ref().map(|losses| losses[*i].iter().sum());
        self.next += 1;
        Ok(losses.map_or(sums, Sums::of_loss))
    }
}

fn one_step(batches: Vec<Batch>, losses: Option<Vec<Vec<f64>>>) -> (Record, Weights) {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { budget: Budget::Steps(1), ..settings() };
    let stop = Stop::new();
    let pool = Arc::new(Pool::new(1));
    let context = Context { directory: directory.path(), pool, observer: &Silent, stop: &stop };
    let mut objective = Fixed { batches, losses, next: 0 };
    let outcome = train::run(&mut objective, &settings, weights(), &context, None).unwrap();
    (outcome.last, outcome.weights)
}

#[test]
fn the_published_losses_give_the_published_mean() {
    let batch = Batch::from_sequences(&sequences(Seed(1), 2));
    let losses = vec![vec![2.0, 2.0], vec![1.0; 6]];
    let (record, _) = one_step(vec![batch.clone(), batch], Some(losses));
    assert_eq!(record.loss, 1.25);
}

#[test]
fn however_the_sequences_are_cut_into_micro_batches_the_step_is_the_same() {
    let all = sequences(Seed(5), 12);
    let (whole, whole_weights) = one_step(vec![Batch::from_sequences(&all)], None);
    for cuts in [vec![1, 12], vec![2, 3, 12], vec![6, 7, 8, 12]] {
        let mut start = 0;
        let batches = cuts
            .iter()
            .map(|&end| Batch::from_sequences(&all[std::mem::replace(&mut start, end)..end]));
        let (parts, parts_weights) = one_step(batches.collect(), None);
        assert!((parts.loss - whole.loss).abs() < 1e-6, "{} {}", parts.loss, whole.loss);
        assert!((parts.grad_norm / whole.grad_norm - 1.0).abs() < 1e-5);
        assert_eq!(parts.tokens_seen, whole.tokens_seen);
        let pairs = parts_weights.as_slice().iter().zip(whole_weights.as_slice());
        // The first update moves every weight by about the learning rate, by the sign of its gradient:
        // only gradients near zero may differ.
        let differing = pairs.filter(|(a, b)| (*a - *b).abs() > 1e-4).count();
        assert!(differing < whole_weights.as_slice().len() / 1000, "{differing} weights differ");
    }
}

#[test]
fn a_micro_batch_without_targets_changes_nothing() {
    let batch = Batch::from_sequences(&sequences(Seed(5), 3));
    let mut silent = Batch::new();
    silent.push(&[1, 2, 3]);
    let (alone, alone_weights) = one_step(vec![batch.clone()], None);
    let (both, both_weights) = one_step(vec![silent, batch], None);
    assert_eq!((alone.loss, alone.grad_norm), (both.loss, both.grad_norm));
    assert_eq!(alone_weights.digest(), both_weights.digest());
}
