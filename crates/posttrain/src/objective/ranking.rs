//! The mathematics of the reward model's loss (Bradley and Terry 1952), on rewards as plain numbers.

use super::pair::{sigmoid, softplus};
use base::Rating;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far apart the rewards of a pair must be, by how clearly people told them apart
/// (Llama 2, arXiv 2307.09288, section 3.2.2 and table 27).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Margins {
    /// No margin: Llama 3's choice.
    #[default]
    None,
    /// 1, 2/3, 1/3 and 0.
    Small,
    /// 3, 2, 1 and 0.
    Large,
}

impl Margins {
    /// The margin of a pair with this rating.
    pub fn of(self, rating: Rating) -> f64 {
        let steps = match rating {
            Rating::MarginallyBetter => 0.0,
            Rating::SlightlyBetter => 1.0,
            Rating::Better => 2.0,
            Rating::SignificantlyBetter => 3.0,
        };
        match self {
            Self::None => 0.0,
            Self::Small => steps / 3.0,
            Self::Large => steps,
        }
    }
}

/// A loss over the rewards of two answers with its derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankingValue {
    /// The loss, in nats.
    pub loss: f64,
    /// Derivative by the better answer's reward.
    pub d_better: f64,
    /// Derivative by the worse answer's reward.
    pub d_worse: f64,
}

/// `-log sigmoid(better - worse - margin) + centring * (better + worse)^2`.
///
/// The second term (arXiv 2312.09244) keeps the rewards, which the first leaves free to drift, near
/// zero; `centring` is 0 for none.
pub fn ranking(better: f64, worse: f64, margin: f64, centring: f64) -> RankingValue {
    let x = better - worse - margin;
    let sum = better + worse;
    let pull = 2.0 * centring * sum;
    RankingValue {
        loss: softplus(-x) + centring * sum * sum,
        d_better: -sigmoid(-x) + pull,
        d_worse: sigmoid(-x) + pull,
    }
}

/// The loss of answers ranked best first (edited > chosen > rejected): the mean over all pairs, with
/// its derivative by each reward. Fewer than two rewards have no pair, and loss 0.
pub fn ranking_of_all(best_first: &[f64], margin: f64, centring: f64) -> (f64, Vec<f64>) {
    let mut gradient = vec![0.0; best_first.len()];
    let pairs = (best_first.len() * best_first.len().saturating_sub(1) / 2).max(1) as f64;
    let mut loss = 0.0;
    for better in 0..best_first.len() {
        for worse in better + 1..best_first.len() {
            let value = ranking(best_first[better], best_first[worse], margin, centring);
            loss += value.loss / pairs;
            gradient[better] += value.d_better / pairs;
            gradient[worse] += value.d_worse / pairs;
        }
    }
    (loss, gradient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "expected {expected}, found {found}");
    }

    #[test]
    fn losses_have_their_worked_values() {
        for (margin, expected) in [
            (0.0, 0.403186),
            (1.0 / 3.0, 0.526526),
            (2.0 / 3.0, 0.676619),
            (1.0, 0.854355),
            (2.0, 1.541008),
            (3.0, 2.395545),
        ] {
            check(ranking(1.2, 0.5, margin, 0.0).loss, expected);
        }
        check(ranking(1.2, 0.5, 0.0, 0.01).loss, 0.403186 + 0.0289);
        check(ranking_of_all(&[2.0, 1.2, 0.5], 0.0, 0.0).0, 0.325233);
    }

    #[test]
    fn margins_are_llama_2s() {
        let ratings = [Rating::SignificantlyBetter, Rating::Better, Rating::SlightlyBetter];
        assert_eq!(ratings.map(|r| Margins::Large.of(r)), [3.0, 2.0, 1.0]);
        assert_eq!(ratings.map(|r| Margins::Small.of(r)), [1.0, 2.0 / 3.0, 1.0 / 3.0]);
        assert_eq!(Margins::Large.of(Rating::MarginallyBetter), 0.0);
        assert_eq!(Margins::None.of(Rating::SignificantlyBetter), 0.0);
    }

    #[test]
    fn no_pair_has_no_loss() {
        assert_eq!(ranking_of_all(&[], 0.0, 0.1), (0.0, vec![]));
        assert_eq!(ranking_of_all(&[4.0], 0.0, 0.1), (0.0, vec![0.0]));
    }

    proptest! {
        #[test]
        fn gradients_agree_with_finite_differences(
            rewards in prop::collection::vec(-5.0..5.0f64, 2..4),
            margin in 0.0..3.0f64,
            centring in 0.0..0.1f64,
        ) {
            let (_, gradient) = ranking_of_all(&rewards, margin, centring);
            for i in 0..rewards.len() {
                let at = |nudge: f64| {
                    let mut moved = rewards.clone();
                    moved[i] += nudge;
                    ranking_of_all(&moved, margin, centring).0
                };
                let numeric = (at(1e-5) - at(-1e-5)) / 2e-5;
                prop_assert!((gradient[i] - numeric).abs() < 1e-6, "{gradient:?} {numeric}");
            }
        }
    }
}
