//! The mathematics of preference losses: from the log-probabilities of two answers to a loss and its
//! gradient. No engine and no tokens here; [`super::dpo`] supplies both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a pairwise loss needs to know of one answer. Sums run over the scored tokens only: never
/// over padding, the prompt, or masked formatting tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Sum of the policy's log-probabilities, in nats.
    pub policy: f64,
    /// Sum of the reference policy's log-probabilities, in nats.
    pub reference: f64,
    /// Number of scored tokens.
    pub tokens: f64,
}

impl Side {
    /// Log-ratio of policy and reference, summed over the scored tokens.
    fn log_ratio(&self) -> f64 {
        self.policy - self.reference
    }

    /// A mean over scored tokens; an answer without any has mean 0, so that the update stays finite.
    fn per_token(&self, sum: f64) -> f64 {
        sum / self.tokens.max(1.0)
    }
}

/// Which log-ratio IPO compares. The two differ in value, so results must name theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// Log-ratios summed over the answer, as in the paper.
    #[default]
    Sum,
    /// Log-ratios divided by the answer's scored tokens.
    Mean,
}

/// A loss over a preferred and a rejected answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "kind")]
pub enum PairLoss {
    /// DPO (arXiv 2305.18290, equation 7): `-log sigmoid(beta * delta)`.
    Sigmoid {
        /// Strength of the pull towards the reference policy.
        beta: f64,
    },
    /// Conservative DPO (Mitchell 2023): labels are wrong with probability `epsilon`.
    Conservative {
        /// Strength of the pull towards the reference policy.
        beta: f64,
        /// Assumed share of wrong labels, below a half.
        epsilon: f64,
    },
    /// Robust DPO (arXiv 2403.00409, equation 7): unbiased under labels flipped with `epsilon`.
    Robust {
        /// Strength of the pull towards the reference policy.
        beta: f64,
        /// Assumed share of wrong labels, below a half.
        epsilon: f64,
    },
    /// IPO (arXiv 2310.12036, equation 17): `(delta - 1 / (2 beta))^2`.
    Ipo {
        /// Strength of the pull towards the reference policy.
        beta: f64,
        /// Summed or per-token log-ratios.
        reduction: Reduction,
    },
    /// Length-normalised DPO (Tülu 3 and OLMo 2): each log-ratio divided by its scored tokens.
    LengthNormalised {
        /// Strength of the pull towards the reference policy; larger than DPO's (5 in OLMo 2).
        beta: f64,
    },
    /// SimPO (arXiv 2405.14734, equation 6): mean log-probabilities, no reference policy.
    SimPo {
        /// Scale of the reward.
        beta: f64,
        /// Target margin as a share of `beta` (the paper's gamma / beta).
        gamma_over_beta: f64,
    },
}

impl Default for PairLoss {
    /// Llama 3's: the sigmoid loss with beta 0.1.
    fn default() -> Self {
        Self::Sigmoid { beta: 0.1 }
    }
}

/// A loss with its derivatives by the policy's two summed log-probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairValue {
    /// The loss, in nats for the logistic losses.
    pub loss: f64,
    /// Derivative by [`Side::policy`] of the chosen answer.
    pub d_chosen: f64,
    /// Derivative by [`Side::policy`] of the rejected answer.
    pub d_rejected: f64,
    /// How much more reward the chosen answer has: beta times the compared difference.
    pub margin: f64,
}

impl PairLoss {
    /// Whether the loss compares with a reference policy.
    pub fn needs_reference(&self) -> bool {
        !matches!(self, Self::SimPo { .. })
    }

    /// Loss and gradient of one pair.
    pub fn of(&self, chosen: &Side, rejected: &Side) -> PairValue {
        let summed = chosen.log_ratio() - rejected.log_ratio();
        let mean = chosen.per_token(chosen.log_ratio()) - rejected.per_token(rejected.log_ratio());
        match *self {
            Self::Sigmoid { beta } => logistic(beta, summed, [1.0, 0.0]).by_sums(beta, 1.0, 1.0),
            Self::Conservative { beta, epsilon } => {
                logistic(beta, summed, [1.0 - epsilon, epsilon]).by_sums(beta, 1.0, 1.0)
            }
            Self::Robust { beta, epsilon } => {
                let scale = 1.0 - 2.0 * epsilon;
                let shares = [(1.0 - epsilon) / scale, -epsilon / scale];
                logistic(beta, summed, shares).by_sums(beta, 1.0, 1.0)
            }
            Self::Ipo { beta, reduction: Reduction::Sum } => {
                squared(beta, summed).by_sums(1.0, 1.0, 1.0)
            }
            Self::Ipo { beta, reduction: Reduction::Mean } => {
                let (c, r) = (chosen.tokens.max(1.0), rejected.tokens.max(1.0));
                squared(beta, mean).by_sums(1.0, c, r)
            }
            Self::LengthNormalised { beta } => {
                let (c, r) = (chosen.tokens.max(1.0), rejected.tokens.max(1.0));
                logistic(beta, mean, [1.0, 0.0]).by_sums(beta, c, r)
            }
            Self::SimPo { beta, gamma_over_beta } => {
                let (c, r) = (chosen.tokens.max(1.0), rejected.tokens.max(1.0));
                let difference = chosen.policy / c - rejected.policy / r - gamma_over_beta;
                logistic(beta, difference, [1.0, 0.0]).by_sums(beta, c, r)
            }
        }
    }
}

/// A loss with its derivative by the argument that it was computed from.
struct Slope {
    loss: f64,
    slope: f64,
    margin: f64,
}

impl Slope {
    /// Chain rule down to the two policy sums: the argument is `scale * (chosen/c - rejected/r)`.
    fn by_sums(self, scale: f64, c: f64, r: f64) -> PairValue {
        PairValue {
            loss: self.loss,
            d_chosen: self.slope * scale / c,
            d_rejected: -self.slope * scale / r,
            margin: self.margin,
        }
    }
}

/// `-shares[0] log sigmoid(x) - shares[1] log sigmoid(-x)` at `x = beta * difference`.
fn logistic(beta: f64, difference: f64, shares: [f64; 2]) -> Slope {
    let x = beta * difference;
    Slope {
        loss: shares[0] * softplus(-x) + shares[1] * softplus(x),
        slope: -shares[0] * sigmoid(-x) + shares[1] * sigmoid(x),
        margin: x,
    }
}

/// `(difference - 1 / (2 beta))^2`, whose slope is by the difference itself.
fn squared(beta: f64, difference: f64) -> Slope {
    let distance = difference - 0.5 / beta;
    Slope { loss: distance * distance, slope: 2.0 * distance, margin: beta * difference }
}

/// `log(1 + exp(x)) = -log sigmoid(-x)`, without overflow.
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// `1 / (1 + exp(-x))`, without overflow.
pub fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::nll;
    use proptest::prelude::*;

    const CHOSEN: [[f64; 4]; 2] = [[-1.0, -0.5, -0.25, -0.25], [-1.2, -0.7, -0.3, -0.3]];
    const REJECTED: [[f64; 2]; 2] = [[-2.0, -1.5], [-1.5, -1.25]];

    fn side(policy: &[f64], reference: &[f64]) -> Side {
        Side {
            policy: policy.iter().sum(),
            reference: reference.iter().sum(),
            tokens: policy.len() as f64,
        }
    }

    fn fixture() -> (Side, Side) {
        (side(&CHOSEN[0], &CHOSEN[1]), side(&REJECTED[0], &REJECTED[1]))
    }

    fn check(loss: PairLoss, expected: f64) {
        let (chosen, rejected) = fixture();
        let found = loss.of(&chosen, &rejected).loss;
        assert!((found - expected).abs() < 1e-6, "{loss:?}: expected {expected}, found {found}");
    }

    #[test]
    fn losses_have_their_worked_values() {
        check(PairLoss::default(), 0.632599);
        check(PairLoss::Conservative { beta: 0.1, epsilon: 0.1 }, 0.645099);
        check(PairLoss::Robust { beta: 0.1, epsilon: 0.1 }, 0.616974);
        check(PairLoss::Ipo { beta: 0.1, reduction: Reduction::Sum }, 14.0625);
        check(PairLoss::Ipo { beta: 0.1, reduction: Reduction::Mean }, 20.25);
        check(PairLoss::LengthNormalised { beta: 5.0 }, 0.078890);
        check(PairLoss::SimPo { beta: 2.0, gamma_over_beta: 0.3 }, 0.139387);
    }

    #[test]
    fn dpo_has_its_worked_gradient() {
        let (chosen, rejected) = fixture();
        let value = PairLoss::default().of(&chosen, &rejected);
        assert!((value.d_chosen + 0.046879).abs() < 1e-6, "{value:?}");
        assert!((value.d_rejected - 0.046879).abs() < 1e-6, "{value:?}");
        assert!((value.margin - 0.125).abs() < 1e-12, "{value:?}");
    }

    #[test]
    fn llama_3_adds_a_share_of_the_chosen_answers_loss() {
        let (chosen, rejected) = fixture();
        let total = PairLoss::default().of(&chosen, &rejected).loss + 0.2 * nll(&chosen);
        assert!((total - 0.732599).abs() < 1e-6, "{total}");
    }

    #[test]
    fn masked_formatting_tokens_leave_both_sums() {
        let chosen = side(&CHOSEN[0][..3], &CHOSEN[1][..3]);
        let rejected = side(&REJECTED[0][..1], &REJECTED[1][..1]);
        let loss = PairLoss::default().of(&chosen, &rejected).loss;
        assert!((loss - 0.646775).abs() < 1e-6, "{loss}");
    }

    #[test]
    fn an_answer_without_scored_tokens_stays_finite() {
        let (chosen, _) = fixture();
        for loss in losses(0.1, 0.2) {
            let value = loss.of(&chosen, &Side::default());
            assert!(value.loss.is_finite() && value.d_rejected.is_finite(), "{loss:?} {value:?}");
        }
    }

    fn losses(beta: f64, epsilon: f64) -> [PairLoss; 7] {
        [
            PairLoss::Sigmoid { beta },
            PairLoss::Conservative { beta, epsilon },
            PairLoss::Robust { beta, epsilon },
            PairLoss::Ipo { beta, reduction: Reduction::Sum },
            PairLoss::Ipo { beta, reduction: Reduction::Mean },
            PairLoss::LengthNormalised { beta },
            PairLoss::SimPo { beta, gamma_over_beta: epsilon },
        ]
    }

    proptest! {
        #[test]
        fn gradients_agree_with_finite_differences(
            policy in prop::array::uniform2(-30.0..0.0f64),
            reference in prop::array::uniform2(-30.0..0.0f64),
            tokens in prop::array::uniform2(1u8..20),
            beta in 0.05..2.0f64,
            epsilon in 0.0..0.4f64,
        ) {
            let at = |i: usize, nudge: f64| Side {
                policy: policy[i] + nudge, reference: reference[i], tokens: f64::from(tokens[i]),
            };
            let h = 1e-5;
            for loss in losses(beta, epsilon) {
                let value = loss.of(&at(0, 0.0), &at(1, 0.0));
                let chosen = (loss.of(&at(0, h), &at(1, 0.0)).loss
                    - loss.of(&at(0, -h), &at(1, 0.0)).loss) / (2.0 * h);
                let rejected = (loss.of(&at(0, 0.0), &at(1, h)).loss
                    - loss.of(&at(0, 0.0), &at(1, -h)).loss) / (2.0 * h);
                prop_assert!((value.d_chosen - chosen).abs() < 1e-5 * (1.0 + chosen.abs()), "{loss:?}");
                prop_assert!((value.d_rejected - rejected).abs() < 1e-5 * (1.0 + rejected.abs()), "{loss:?}");
            }
        }
    }
}
