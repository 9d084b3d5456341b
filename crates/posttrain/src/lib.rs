//! From a model that continues text to one that answers, and then to one that answers better.
//!
//! Nouns: an *item* is a question with a known answer; a *conversation* is turns to learn from; a
//! *rollout* is a sampled answer; a *preference* is a judgement between two answers with a rating; a
//! *round* goes from the best model so far to a better one.
//!
//! ```text
//! documents -> derive -> items -+
//! hand-made ----------> conversations -+-> sft -> weights
//! items + weights -> round: rollouts -> preferences -> reward model -> winners -> tuned -> dpo
//! ```
//!
//! [`objective`] holds the losses: their mathematics on plain numbers, and on the engine.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod conversations;
pub mod derive;
mod encode;
mod error;
pub mod jsonl;
pub mod objective;
pub mod round;
pub mod sft;

pub use encode::{Encoder, Formatting, PairCounts, PairSettings};
pub use error::{Error, Result};
