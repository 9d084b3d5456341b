//! What can go wrong while judging.

use base::{FsError, Interrupted};
use std::path::PathBuf;

/// A judgement that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The work was asked to stop; what was finished is saved.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A file of the judgement cannot be read or written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The model that is judged could not answer or score.
    #[error("{model} could not {operation}")]
    Subject {
        /// The model's name.
        model: String,
        /// What was asked of it: `answer`, `score`, `read the prompt`…
        operation: &'static str,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is nothing of something that a judgement needs; a share of nothing would look like a result.
    #[error("nothing to judge: no {what}")]
    NothingToJudge {
        /// What is missing.
        what: &'static str,
    },
    /// Two evaluations that are compared were not made on the same prompts.
    #[error("cannot compare {first} with {second}: item {item} was answered by one of them only")]
    NotPaired {
        /// The first model.
        first: String,
        /// The second model.
        second: String,
        /// An item that only one of them answered.
        item: String,
    },
    /// A token id that the vocabulary does not have.
    #[error("token id {token} is outside the vocabulary of {vocab_size}")]
    Vocabulary {
        /// The id.
        token: u64,
        /// Size of the vocabulary.
        vocab_size: usize,
    },
    /// The compressor of the baseline failed.
    #[error("the compressor of the baseline failed")]
    Compressor {
        /// The compressor's answer.
        #[source]
        source: std::io::Error,
    },
    /// A red-team campaign without probes: it would find nothing and look clean.
    #[error(
        "the red-team campaign has no probes, so it would find nothing; name at least one of {known}"
    )]
    NoProbes {
        /// The names that exist.
        known: String,
    },
    /// A probe that has nothing to try under the given settings.
    #[error("the probe {probe} has nothing to try: {reason}")]
    EmptyProbe {
        /// The probe.
        probe: &'static str,
        /// What its settings lack.
        reason: &'static str,
    },
    /// A word list that cannot be read, or has no words.
    #[error("the word list {path} of the red team is of no use: {reason}")]
    WordList {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A record in a file of one record a line that cannot be read.
    #[error("{path}, line {line}: {message}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What was expected and found.
        message: String,
    },
}
