//! The engine against a naive twin in double precision: its scores, and its gradients against the
//! twin's central differences, tensor by tensor.
#![allow(clippy::unwrap_used)]

mod common;

use base::Seed;
use common::naive::Naive;
use common::{batch, config, pool, weights};
use model::{Batch, Embeddings, Engine, Tensor, TokenGradients, Weights};

/// Single-precision sums of a few hundred terms against double precision.
const TOLERANCE: f64 = 2e-4;
/// Step of the differences: its square is far below the tolerance, and double precision leaves
/// 1e-16 / 1e-5 of noise.
const STEP: f64 = 1e-5;

/// Fixed coefficients of a loss that uses everything a head gives.
fn coefficients(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = Seed(seed).derive("coefficients").rng();
    (0..n).map(|_| rng.normal() as f32).collect()
}

/// The slope of `loss` along `direction`, by central differences.
fn slope(naive: &mut Naive, direction: &[(usize, f64)], loss: impl Fn(&Naive) -> f64) -> f64 {
    let mut at = |step: f64| {
        direction.iter().for_each(|&(i, u)| naive.values[i] += step * u);
        let value = loss(naive);
        direction.iter().for_each(|&(i, u)| naive.values[i] -= step * u);
        value
    };
    (at(STEP) - at(-STEP)) / (2.0 * STEP)
}

/// Compares gradients with slopes: along a random direction of each tensor, and along single
/// coordinates of it. Differences count relative to the gradient's size along such a direction.
fn compare(weights: &Weights, gradients: &[f32], seed: u64, loss: impl Fn(&Naive) -> f64) {
    let mut naive = Naive::new(weights);
    let mut rng = Seed(seed).derive("directions").rng();
    for Tensor { name, range, .. } in weights.tensors() {
        let size = range.len();
        let whole: Vec<(usize, f64)> =
            range.clone().map(|i| (i, rng.normal() / (size as f64).sqrt())).collect();
        let single = (0..4).map(|_| vec![(range.start + rng.below(size), 1.0)]);
        let norm =
            gradients[range.clone()].iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        for direction in [whole].into_iter().chain(single.collect::<Vec<_>>()) {
            let expected = slope(&mut naive, &direction, &loss);
            let found: f64 = direction.iter().map(|&(i, u)| u * f64::from(gradients[i])).sum();
            let difference = (found - expected).abs();
            let allowed = TOLERANCE * (expected.abs() + norm / (size as f64).sqrt()) + 1e-6;
            assert!(difference <= allowed, "{name}: engine {found}, differences {expected}");
        }
    }
}

fn cases() -> [(Embeddings, Batch); 3] {
    [
        (Embeddings::Tied, batch(&[7, 1, 12], 37, 1)),
        (Embeddings::Untied, batch(&[5, 9], 37, 2)),
        (Embeddings::Untied, batch(&[33, 2], 37, 3)),
    ]
}

#[test]
fn scores_agree_with_the_naive_model() {
    for (embeddings, batch) in cases() {
        let config = config(embeddings);
        let weights = weights(&config, 5);
        let mut engine = Engine::new(&config, 64, pool(2)).unwrap();
        let found = engine.scores(&weights, &batch).unwrap();
        for (i, expected) in Naive::new(&weights).scores(&batch).iter().enumerate() {
            let close = |found: f32, expected: f64| (f64::from(found) - expected).abs() < 2e-5;
            assert!(close(found.log_prob[i], expected.log_prob), "target {i}");
            assert!(close(found.log_sum_exp[i], expected.log_sum_exp), "target {i}");
            assert!(close(found.entropy[i], expected.entropy), "target {i}");
        }
    }
}

#[test]
fn gradients_by_scores_agree_with_differences_in_every_tensor() {
    for (embeddings, batch) in cases() {
        let config = config(embeddings);
        let weights = weights(&config, 6);
        let mut engine = Engine::new(&config, 64, pool(2)).unwrap();
        let n = batch.targets.len();
        let [a, b, c] = [1, 2, 3].map(|seed| coefficients(n, seed));
        let gradients = TokenGradients {
            d_log_prob: a.clone(),
            d_log_sum_exp: b.clone(),
            d_entropy: c.clone(),
        };
        engine.scores(&weights, &batch).unwrap();
        engine.backward(&weights, &batch, &gradients).unwrap();
        compare(&weights, engine.gradients(), 8, |naive| {
            let scores = naive.scores(&batch);
            let term = |(i, s): (usize, &common::naive::Score)| {
                f64::from(a[i]) * s.log_prob
                    + f64::from(b[i]) * s.log_sum_exp
                    + f64::from(c[i]) * s.entropy
            };
            scores.iter().enumerate().map(term).sum()
        });
    }
}

#[test]
fn gradients_of_next_token_agree_with_differences_in_every_tensor() {
    for (embeddings, batch) in cases() {
        let config = config(embeddings);
        let weights = weights(&config, 7);
        let mut engine = Engine::new(&config, 64, pool(2)).unwrap();
        let per_target = coefficients(batch.targets.len(), 4);
        let loss = |naive: &Naive| -> f64 {
            let scores = naive.scores(&batch);
            per_target.iter().zip(scores).map(|(&w, s)| -f64::from(w) * s.log_prob).sum()
        };
        let found = engine.next_token(&weights, &batch, &per_target, 0.25).unwrap();
        assert!((found - loss(&Naive::new(&weights))).abs() < 1e-4);
        compare(&weights, engine.gradients(), 9, |naive| 0.25 * loss(naive));
    }
}

#[test]
fn gradients_of_rewards_agree_with_differences_in_every_tensor() {
    for (embeddings, batch) in cases() {
        let config = config(embeddings);
        let weights = weights(&config, 8);
        let mut engine = Engine::new(&config, 64, pool(2)).unwrap();
        // Rows may repeat and need not be last.
        let rows: Vec<u32> = batch.last_rows().into_iter().chain([0, 3, 3]).collect();
        let coefficients = coefficients(rows.len(), 5);
        let rewards = engine.rewards(&weights, &batch, &rows).unwrap();
        for (found, expected) in rewards.iter().zip(Naive::new(&weights).rewards(&batch, &rows)) {
            assert!((f64::from(*found) - expected).abs() < 2e-5, "{found} {expected}");
        }
        engine.rewards_backward(&weights, &batch, &rows, &coefficients).unwrap();
        compare(&weights, engine.gradients(), 10, |naive| {
            let rewards = naive.rewards(&batch, &rows);
            rewards.iter().zip(&coefficients).map(|(r, &c)| r * f64::from(c)).sum()
        });
    }
}

#[test]
fn gradients_add_up_over_batches() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 9);
    let mut engine = Engine::new(&config, 64, pool(1)).unwrap();
    let (one, two) = (batch(&[9], 37, 11), batch(&[4, 6], 37, 12));
    let mut gradients_of = |batches: &[&Batch]| {
        engine.zero_gradients();
        for batch in batches {
            let ones = vec![1.0; batch.targets.len()];
            engine.next_token(&weights, batch, &ones, 1.0).unwrap();
        }
        engine.gradients().to_vec()
    };
    let (a, b, both) = (gradients_of(&[&one]), gradients_of(&[&two]), gradients_of(&[&one, &two]));
    for i in 0..a.len() {
        assert!((a[i] + b[i] - both[i]).abs() <= 1e-5 * (1.0 + both[i].abs()), "{i}");
    }
}
