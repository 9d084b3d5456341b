//! SFT, preferences, reward model, rejection sampling and DPO: one alignment round.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod objective;
