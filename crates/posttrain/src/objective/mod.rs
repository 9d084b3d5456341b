//! Losses of post-training. [`pair`] and [`ranking`] hold the mathematics on plain numbers, each with
//! its worked values as tests; [`dpo`] and [`reward_model`] put them on the engine.

pub mod dpo;
pub mod pair;
pub mod plan;
pub mod ranking;
pub mod reward_model;

pub use pair::{PairLoss, PairValue, Reduction, Side};
pub use ranking::{Margins, RankingValue, ranking, ranking_of_all};

/// Length-normalised negative log-likelihood of an answer, in nats per scored token (the regulariser of
/// arXiv 2404.19733 that Llama 3 adds to DPO with weight 0.2). Its derivative by
/// [`Side::policy`] is `-1 / tokens`.
pub fn nll(side: &Side) -> f64 {
    -side.policy / side.tokens.max(1.0)
}
