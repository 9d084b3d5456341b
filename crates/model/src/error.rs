//! What can go wrong in this crate.

use base::{Digest, FsError, Interrupted};
use std::path::PathBuf;

/// A failed operation on a model, with the evidence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configuration that no model can have.
    #[error("invalid model configuration: {setting} is {found}, expected {expected}")]
    Config {
        /// The setting, by the glossary's name.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// More than the memory plan has room for.
    #[error("the batch has {found} {what}, the memory plan has room for {planned}")]
    TooLarge {
        /// `tokens` or `targets`.
        what: &'static str,
        /// How many the batch has.
        found: usize,
        /// How many were planned for.
        planned: usize,
    },
    /// A token id outside the vocabulary.
    #[error("token id {found} at {place} is outside the vocabulary of {vocab_size}")]
    TokenOutOfRange {
        /// Where it stands: `position 7`, `target 3`…
        place: String,
        /// The id.
        found: u32,
        /// Ids run from 0 to below this.
        vocab_size: usize,
    },
    /// A batch that is not well formed.
    #[error("malformed batch: {what} is {found}, expected {expected}")]
    MalformedBatch {
        /// The part at fault.
        what: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// A sequence longer than the model's positions reach.
    #[error("sequence {sequence} has {found} tokens, the model reads at most {max_seq_len}")]
    SequenceTooLong {
        /// Its index in the batch or list of requests.
        sequence: usize,
        /// Its length in tokens.
        found: usize,
        /// The configuration's limit.
        max_seq_len: usize,
    },
    /// Weights of another configuration than the engine's.
    #[error("the engine and the weights have different configurations: {engine} and {weights}")]
    OtherConfiguration {
        /// The engine's, as JSON.
        engine: String,
        /// The weights', as JSON.
        weights: String,
    },
    /// A backward pass without the forward pass that it belongs to.
    #[error("backward needs a forward pass over the same batch just before it")]
    NoForward,
    /// Gradients were asked of an engine whose memory plan has none.
    #[error("this engine only scores; make one for training to get gradients")]
    NoGradients,
    /// Rewards were asked of weights that have no reward head.
    #[error("these weights have no reward head; add one with Weights::with_reward_head")]
    NoRewardHead,
    /// A file whose content does not have the digest that it names.
    #[error("{path} is corrupted: expected digest {expected}, found {found}")]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// The digest in its header.
        expected: Digest,
        /// The digest of its tensors.
        found: Digest,
    },
    /// A file that is no safetensors file.
    #[error("{path} is not a readable safetensors file")]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: safetensors::SafeTensorError,
    },
    /// A file of tensors that is not what it should be.
    #[error("{path}: {what}: expected {expected}, found {found}")]
    UnexpectedContent {
        /// The file.
        path: PathBuf,
        /// The tensor or field.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The stop was asked for.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}
