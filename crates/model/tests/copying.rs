//! Planted heads copy before any training.
#![allow(clippy::unwrap_used)]

use base::Seed;
use kernels::Pool;
use model::{Batch, Engine, ModelConfig, Weights};
use std::sync::Arc;

/// Mean log-probability of the second half of random runs that are read twice, without its first token.
fn repeated(weights: &Weights, length: usize) -> f64 {
    let config = weights.config();
    let mut engine = Engine::for_scoring(config, 2 * length, Arc::new(Pool::new(2))).unwrap();
    let mut sum = 0.0;
    for number in 0..8 {
        let mut rng = Seed(5).at(number).rng();
        let mut tokens: Vec<u32> =
            (0..length).map(|_| rng.below(config.vocab_size) as u32).collect();
        tokens.extend_from_within(..);
        let scores = engine.scores(weights, &Batch::from_sequences(&[&tokens])).unwrap();
        let known = &scores.log_prob[length..];
        sum += known.iter().map(|&value| f64::from(value)).sum::<f64>() / known.len() as f64;
    }
    sum / 8.0
}

#[test]
fn what_stood_before_is_more_likely_after_its_predecessor() {
    let config = ModelConfig::from_depth(3, 1000, 256).for_copying();
    let planted = Weights::init_copying(&config, Seed(1)).unwrap();
    let random = Weights::init(&config, Seed(1)).unwrap();
    for length in [20, 100] {
        let (with, without) = (repeated(&planted, length), repeated(&random, length));
        assert!(with > without + 0.2, "{length}: {with} {without}");
    }
}

#[test]
fn shapes_without_room_start_at_random() {
    let one_head = ModelConfig::from_depth(0, 50, 16).for_copying();
    let tied = ModelConfig::from_depth(3, 50, 16);
    for config in [one_head, tied] {
        let start = |init: fn(&ModelConfig, Seed) -> _| -> Weights {
            let weights: Result<Weights, model::Error> = init(&config, Seed(1));
            weights.unwrap()
        };
        assert_eq!(start(Weights::init_copying).as_slice(), start(Weights::init).as_slice());
    }
}
