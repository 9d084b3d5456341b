//! The loss curve of one tiny configuration against an independent implementation: PyTorch, in
//! `scripts/parity/pytorch_curve.py`, which made the fixture and describes it.
#![allow(clippy::unwrap_used)]

use base::{Digest, Silent, Stop};
use kernels::Pool;
use model::{Batch, Engine, ModelConfig, Weights};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use train::{
    Budget, Context, Objective, ObjectiveError, Settings, Sums, learn_targets, read_metrics,
};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Fixture {
    config: ModelConfig,
    initial_weights: InitialWeights,
    hyperparameters: Hyperparameters,
    steps: Vec<Step>,
    final_tensor_norms: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct InitialWeights {
    tensors: Vec<Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    offset: f64,
    scale: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Hyperparameters {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    weight_decay: f64,
    max_grad_norm: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Step {
    learning_rate: f64,
    loss: f64,
    gradient_norm: f64,
    sequences: Vec<Vec<u32>>,
}

/// The finalizer of MurmurHash3.
fn fmix32(mut h: u32) -> u32 {
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

impl Fixture {
    fn read() -> Self {
        serde_json::from_str(include_str!("fixtures/pytorch_curve.json")).unwrap()
    }

    /// The initial weights, by the formula in the fixture.
    fn weights(&self) -> Weights {
        let mut weights = Weights::init(&self.config, base::Seed(0)).unwrap();
        let layout = weights.tensors().to_vec();
        assert_eq!(layout.len(), self.initial_weights.tensors.len());
        for (number, tensor) in (0u32..).zip(&self.initial_weights.tensors) {
            let place = layout.iter().find(|t| t.name == tensor.name).unwrap();
            assert_eq!(place.shape, tensor.shape, "{}", tensor.name);
            let values = &mut weights.as_mut_slice()[place.range.clone()];
            for (i, value) in (0u32..).zip(values) {
                let h = fmix32(i.wrapping_add(number.wrapping_mul(1_000_003)));
                let unit = f64::from(h) / f64::from(1u32 << 31) - 1.0;
                *value = (tensor.offset + tensor.scale * unit) as f32;
            }
        }
        weights
    }

    fn settings(&self) -> Settings {
        let p = &self.hyperparameters;
        Settings {
            budget: Budget::Steps(self.steps.len() as u64),
            learning_rate: 0.01,
            warmup_share: 0.25,
            min_learning_rate_share: 0.1,
            beta1: p.beta1,
            beta2: p.beta2,
            epsilon: p.epsilon,
            weight_decay: p.weight_decay,
            max_grad_norm: p.max_grad_norm,
            ..Settings::default()
        }
    }
}

/// The fixture's sequences, each a micro-batch of its own where `apart`.
struct Replay {
    steps: Vec<Step>,
    apart: bool,
}

impl Objective for Replay {
    type Work = Batch;

    fn name(&self) -> &str {
        "replay"
    }

    fn digest(&self) -> Digest {
        Digest::of_bytes(b"replay")
    }

    fn max_tokens(&self) -> usize {
        128
    }

    fn steps_per_epoch(&self) -> f64 {
        self.steps.len() as f64
    }

    fn work(&self, step: u64) -> Result<Vec<Batch>, ObjectiveError> {
        let sequences = &self.steps[step as usize].sequences;
        let size = if self.apart { 1 } else { sequences.len() };
        Ok(sequences.chunks(size).map(Batch::from_sequences).collect())
    }

    fn weight(&self, work: &Batch) -> f64 {
        work.targets.len() as f64
    }

    fn tokens(&self, work: &Batch) -> u64 {
        work.tokens.len() as u64
    }

    fn accumulate(
        &mut self,
        engine: &mut Engine,
        weights: &Weights,
        work: &Batch,
        scale: f64,
    ) -> Result<Sums, ObjectiveError> {
        learn_targets(engine, weights, work, scale)
    }
}

fn check(apart: bool) {
    let fixture = Fixture::read();
    let (weights, settings) = (fixture.weights(), fixture.settings());
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop::new();
    let pool = Arc::new(Pool::new(2));
    let context = Context { directory: directory.path(), pool, observer: &Silent, stop: &stop };
    let mut replay = Replay { steps: fixture.steps, apart };
    let outcome = train::run(&mut replay, &settings, weights, &context, None).unwrap();
    let records = read_metrics(directory.path()).unwrap();
    assert_eq!(records.len(), 20);
    for (found, expected) in records.iter().zip(&replay.steps) {
        let step = found.step;
        assert!((found.learning_rate - expected.learning_rate).abs() < 1e-12, "step {step}");
        let difference = (found.loss - expected.loss).abs();
        assert!(difference < 1e-4, "step {step}: {} and {}", found.loss, expected.loss);
        let ratio = found.grad_norm / expected.gradient_norm;
        assert!((ratio - 1.0).abs() < 1e-3, "step {step}: gradient norms are as {ratio} to 1");
    }
    for (name, expected) in &fixture.final_tensor_norms {
        let values = outcome.weights.tensor(name).unwrap();
        let norm = values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        assert!((norm / expected - 1.0).abs() < 1e-4, "{name}: {norm} and {expected}");
    }
}

#[test]
fn twenty_steps_follow_pytorch() {
    check(false);
}

#[test]
fn twenty_steps_follow_pytorch_with_each_sequence_accumulated_by_itself() {
    check(true);
}
