//! From documents to batches of token ids.
//!
//! Nouns: a [`Tokenizer`] turns text into ids; a [`ChatTemplate`] turns a conversation into ids with a
//! mask of what is learned; a [`mixture`] chooses documents by shares in tokens and writes them as
//! [`shards`]; [`pack`](pack::pack) puts sequences of unequal length into rows of one capacity; a
//! [`Loader`] reads windows of the shards in an order that is a pure function of seed and position.
//!
//! This crate knows no model and no corpus.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alphabet;
mod bpe;
pub mod chat;
mod error;
pub mod file;
mod loader;
pub mod mixture;
pub mod pack;
mod parallel;
mod permutation;
mod sample;
pub mod shards;
mod special;
pub mod split;
mod stream;
mod tokenizer;
mod train;

pub use chat::{ChatTemplate, Cut, Encoded, Part};
pub use error::Error;
pub use loader::{Loader, Window};
pub use mixture::{Extra, MixJob, MixtureSettings, Shares, mix};
pub use sample::{SampleSummary, TokenizerJob, TokenizerSummary, build_tokenizer};
pub use special::Special;
pub use stream::StreamDecoder;
pub use tokenizer::{BatchEncoder, Tokenizer, TokenizerSettings};
