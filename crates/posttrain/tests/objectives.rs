//! The objectives on a real engine: values against sums computed apart, gradients against finite
//! differences, and independence from the batch.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Rating, Seed};
use common::World;
use kernels::Pool;
use model::{Engine, Weights};
use posttrain::objective::dpo::{Answer, Dpo, DpoLoss, Pair, log_probs};
use posttrain::objective::reward_model::{Comparison, RewardLoss, RewardModel, rewards};
use posttrain::objective::{Margins, PairLoss, Reduction};
use std::sync::Arc;
use train::{Objective, Sums};

fn answer(first: u32, length: usize, prompt: usize) -> Answer {
    let tokens = (0..length as u32).map(|i| 5 + (first * 31 + i * 17) % 290).collect();
    Answer { tokens, scored: (0..length).map(|i| i >= prompt).collect() }
}

fn pairs() -> Vec<Pair> {
    (0..3)
        .map(|i| Pair {
            chosen: answer(i, 9 + i as usize, 4),
            rejected: answer(i + 7, 7, 4),
            reference: [-27.0 - f64::from(i), -19.0],
        })
        .collect()
}

fn engine(weights: &Weights) -> Engine {
    Engine::new(weights.config(), 256, Arc::new(Pool::new(1))).unwrap()
}

/// Compares the gradient of the mean loss in several directions with finite differences.
fn check_gradient<O: Objective<Work = Vec<usize>>>(objective: &mut O, weights: &Weights) -> Sums {
    let mut engine = engine(weights);
    let work = objective.work(0).unwrap();
    let total: f64 = work.iter().map(|w| objective.weight(w)).sum();
    let loss = |objective: &mut O, weights: &Weights, engine: &mut Engine| {
        let mut sums = Sums::default();
        for micro_batch in &work {
            sums.add(&objective.accumulate(engine, weights, micro_batch, 1.0 / total).unwrap());
        }
        sums
    };
    engine.zero_gradients();
    let sums = loss(objective, weights, &mut engine);
    let gradient = engine.gradients().to_vec();
    for direction in 0..6u64 {
        let mut rng = Seed(direction).rng();
        let along: Vec<f32> = (0..gradient.len()).map(|_| rng.normal() as f32).collect();
        let h = 3e-3 / (gradient.len() as f32).sqrt();
        let mut at = |sign: f32| {
            let mut moved = weights.clone();
            let values = moved.as_mut_slice().iter_mut().zip(&along);
            values.for_each(|(w, d)| *w += sign * h * d);
            loss(objective, &moved, &mut engine).loss / total
        };
        let numeric = (at(1.0) - at(-1.0)) / (2.0 * f64::from(h));
        let exact: f64 =
            gradient.iter().zip(&along).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        let scale = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        assert!((numeric - exact).abs() < 0.02 * scale, "{numeric} {exact} of {scale}");
    }
    sums
}

#[test]
fn gradients_of_dpo_agree_with_finite_differences() {
    let weights = World::new().weights();
    for pair in [
        PairLoss::Sigmoid { beta: 0.1 },
        PairLoss::Ipo { beta: 0.1, reduction: Reduction::Mean },
        PairLoss::LengthNormalised { beta: 5.0 },
        PairLoss::SimPo { beta: 2.0, gamma_over_beta: 0.3 },
    ] {
        let loss = DpoLoss { pair, nll_weight: 0.2 };
        check_gradient(&mut Dpo::new(loss, pairs(), 40, 9, Seed(1)), &weights);
    }
}

#[test]
fn gradients_of_the_reward_model_agree_with_finite_differences() {
    let mut weights = World::new().weights().with_reward_head();
    // The head starts at zero, where the body has no gradient.
    weights
        .as_mut_slice()
        .iter_mut()
        .enumerate()
        .for_each(|(i, w)| *w += ((i % 7) as f32 - 3.0) * 0.01);
    let comparisons = vec![
        Comparison { best_first: vec![answer(1, 8, 3), answer(2, 6, 3)], rating: Rating::Better },
        Comparison {
            best_first: vec![answer(3, 8, 3), answer(4, 9, 3), answer(5, 5, 3)],
            rating: Rating::SignificantlyBetter,
        },
    ];
    let loss = RewardLoss { margins: Margins::Small, centring: 0.01 };
    check_gradient(&mut RewardModel::new(loss, comparisons, 30, 9, Seed(1)), &weights);
}

#[test]
fn the_policy_that_is_its_own_reference_has_no_margin() {
    let weights = World::new().weights();
    let mut engine = engine(&weights);
    let mut pairs = pairs();
    for pair in &mut pairs {
        let sums = log_probs(&mut engine, &weights, &[&pair.chosen, &pair.rejected]).unwrap();
        pair.reference = [sums[0], sums[1]];
    }
    let chosen: f64 = pairs.iter().map(|pair| pair.reference[0]).sum();
    let nll: f64 = pairs.iter().map(|p| -p.reference[0] / p.chosen.num_scored() as f64).sum();
    let mut objective = Dpo::new(DpoLoss::default(), pairs, 500, 1, Seed(2));
    let work = objective.work(0).unwrap().remove(0);
    engine.zero_gradients();
    let sums = objective.accumulate(&mut engine, &weights, &work, 1.0).unwrap();
    // The same sums in another batch: the margin is 0 to the bit, and the loss is -log sigmoid(0).
    assert_eq!(sums.measures["margin"], 0.0);
    assert!((sums.loss - (3.0 * std::f64::consts::LN_2 + 0.2 * nll)).abs() < 1e-9, "{}", sums.loss);
    assert!((sums.measures["chosen-log-prob"] - chosen).abs() < 1e-9);
}

#[test]
fn rewards_are_the_same_alone_and_in_any_batch() {
    let weights = World::new().weights().with_reward_head();
    let mut weights = weights;
    weights
        .as_mut_slice()
        .iter_mut()
        .enumerate()
        .for_each(|(i, w)| *w += ((i % 5) as f32 - 2.0) * 0.02);
    let mut engine = engine(&weights);
    let answers: Vec<Answer> = (0..9).map(|i| answer(i, 5 + 3 * i as usize % 17, 2)).collect();
    let all: Vec<&Answer> = answers.iter().collect();
    let together = rewards(&mut engine, &weights, &all).unwrap();
    let reversed: Vec<&Answer> = all.iter().rev().copied().collect();
    let mut back = rewards(&mut engine, &weights, &reversed).unwrap();
    back.reverse();
    assert_eq!(together, back);
    for (answer, reward) in all.iter().zip(&together) {
        assert_eq!(rewards(&mut engine, &weights, &[answer]).unwrap(), [*reward]);
    }
    assert!(together.iter().any(|r| *r != together[0]), "{together:?}");
}

#[test]
fn an_answer_without_scored_tokens_keeps_the_update_finite() {
    let weights = World::new().weights();
    let silent = Answer { tokens: vec![9, 10, 11], scored: vec![false; 3] };
    let pair = Pair { chosen: silent, rejected: answer(1, 6, 2), reference: [0.0, -20.0] };
    let mut objective = Dpo::new(DpoLoss::default(), vec![pair], 99, 1, Seed(1));
    let mut engine = engine(&weights);
    engine.zero_gradients();
    let sums = objective.accumulate(&mut engine, &weights, &vec![0], 1.0).unwrap();
    assert!(sums.loss.is_finite() && engine.gradients().iter().all(|g| g.is_finite()));
}
