//! From one row of logits to a token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// How answers are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Sampling {
    /// Divides the logits before drawing; 0 takes the most likely token (the lowest id of equals).
    pub temperature: f32,
    /// Draw among this many most likely tokens only; among all where absent.
    pub top_k: Option<usize>,
    /// Draw among the fewest most likely tokens whose probabilities reach this sum (after `top-k`);
    /// 1 keeps all (nucleus sampling, arXiv 1904.09751).
    pub top_p: f32,
    /// The longest answer, in tokens.
    pub max_new_tokens: usize,
    /// Token ids that end an answer.
    pub stop: Vec<u32>,
}

impl Default for Sampling {
    /// Plain draws from the model's own distribution, up to 256 tokens.
    fn default() -> Self {
        Self { temperature: 1.0, top_k: None, top_p: 1.0, max_new_tokens: 256, stop: Vec::new() }
    }
}

impl Sampling {
    /// The most likely token each time, up to `max_new_tokens` or one of `stop`.
    pub fn greedy(max_new_tokens: usize, stop: Vec<u32>) -> Self {
        Self { temperature: 0.0, max_new_tokens, stop, ..Self::default() }
    }

    /// The token that `uniform`, in [0, 1), draws from a row of logits.
    pub(crate) fn choose(&self, logits: &[f32], uniform: f64) -> u32 {
        if self.temperature <= 0.0 || self.top_k == Some(1) {
            return most_likely(logits);
        }
        let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let temperature = f64::from(self.temperature);
        let weight = |z: f32| (f64::from(z - highest) / temperature).exp();
        let top_k = self.top_k.filter(|&k| k < logits.len());
        if top_k.is_none() && self.top_p >= 1.0 {
            let weights = logits.iter().enumerate().map(|(id, &z)| (id as u32, weight(z)));
            return draw(&weights.collect::<Vec<_>>(), uniform);
        }
        let mut candidates: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
        if let Some(k) = top_k {
            keep_best(&mut candidates, k.max(1));
            candidates.truncate(k.max(1));
        }
        let total = candidates.iter().map(|&(_, z)| weight(z)).sum::<f64>();
        let kept = nucleus(&mut candidates, f64::from(self.top_p) * total, weight);
        draw(&kept, uniform)
    }
}

/// The highest logit's token, the lowest id of equals.
fn most_likely(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (id, &z) in logits.iter().enumerate() {
        if z > logits[best] {
            best = id;
        }
    }
    best as u32
}

/// Higher logits first, then lower ids.
fn by_rank(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// Brings the best `count` to the front, in order of rank.
fn keep_best(candidates: &mut [(u32, f32)], count: usize) {
    if count < candidates.len() {
        candidates.select_nth_unstable_by(count, by_rank);
    }
    let count = count.min(candidates.len());
    candidates[..count].sort_unstable_by(by_rank);
}

/// The fewest best candidates whose weights reach `mass`, with their weights; at least one. Sorts only
/// as many as it needs.
fn nucleus(
    candidates: &mut [(u32, f32)],
    mass: f64,
    weight: impl Fn(f32) -> f64,
) -> Vec<(u32, f64)> {
    let mut sorted = 32;
    loop {
        keep_best(candidates, sorted);
        let mut kept = Vec::new();
        let mut sum = 0.0;
        for &(id, z) in candidates.iter().take(sorted) {
            kept.push((id, weight(z)));
            sum += weight(z);
            if sum >= mass {
                return kept;
            }
        }
        if sorted >= candidates.len() {
            return kept;
        }
        sorted *= 4;
    }
}

/// The token on which `uniform` of the summed weights falls.
fn draw(weights: &[(u32, f64)], uniform: f64) -> u32 {
    let total: f64 = weights.iter().map(|(_, w)| w).sum();
    let mut left = uniform * total;
    for &(id, weight) in weights {
        left -= weight;
        if left < 0.0 {
            return id;
        }
    }
    // Rounding may leave a little beyond the last token that has any weight.
    let last = weights.iter().rev().find(|(_, w)| *w > 0.0);
    last.or(weights.first()).map_or(0, |&(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    fn sampling(temperature: f32, top_k: Option<usize>, top_p: f32) -> Sampling {
        Sampling { temperature, top_k, top_p, ..Sampling::default() }
    }

    #[test]
    fn greedy_takes_the_lowest_id_of_equals() {
        let check = |logits: &[f32], expected| {
            assert_eq!(sampling(0.0, None, 1.0).choose(logits, 0.9), expected);
            assert_eq!(sampling(1.0, Some(1), 1.0).choose(logits, 0.9), expected);
        };
        check(&[1.0, 3.0, 3.0, 2.0], 1);
        check(&[-1.0], 0);
        check(&[f32::NEG_INFINITY, -5.0], 1);
    }

    /// Share of draws per token.
    fn shares(sampling: &Sampling, logits: &[f32]) -> Vec<f64> {
        let mut counts = vec![0.0; logits.len()];
        let mut rng = Seed(4).rng();
        (0..20_000).for_each(|_| counts[sampling.choose(logits, rng.uniform()) as usize] += 1.0);
        counts.iter().map(|count| count / 20_000.0).collect()
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0.5f32, 0.25, 0.125, 0.125].map(f32::ln);
        let check = |sampling: Sampling, expected: [f64; 4]| {
            for (found, expected) in shares(&sampling, &logits).iter().zip(expected) {
                assert!((found - expected).abs() < 0.015, "{sampling:?}: {found} {expected}");
            }
        };
        check(sampling(1.0, None, 1.0), [0.5, 0.25, 0.125, 0.125]);
        check(sampling(1.0, Some(2), 1.0), [2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
        check(sampling(1.0, Some(3), 1.0), [4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0, 0.0]);
        check(sampling(1.0, None, 0.7), [2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
        check(sampling(1.0, None, 0.0), [1.0, 0.0, 0.0, 0.0]);
        check(sampling(0.5, None, 1.0), [16.0 / 22.0, 4.0 / 22.0, 1.0 / 22.0, 1.0 / 22.0]);
        check(sampling(1.0, Some(99), 1.0), [0.5, 0.25, 0.125, 0.125]);
    }

    #[test]
    fn a_nucleus_wider_than_the_first_sort_is_found() {
        let logits = vec![0.0; 500];
        let found = shares(&sampling(1.0, None, 0.5), &logits);
        assert!(found[249] > 0.0 && found[251..].iter().all(|&share| share == 0.0));
    }

    #[test]
    fn not_a_number_is_survived() {
        let logits = [f32::NAN, 1.0, f32::NAN];
        for sampling in [sampling(0.0, None, 1.0), sampling(1.0, None, 1.0)] {
            assert!(sampling.choose(&logits, 0.5) < 3);
        }
        assert!(sampling(1.0, Some(2), 0.9).choose(&logits, 0.5) < 3);
    }
}
