//! What may go wrong in post-training.

use base::{FsError, Interrupted};
use std::path::PathBuf;

/// A failure of post-training, with its evidence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The work was asked to stop; what was finished is saved.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A line of a JSON-lines file is not what it should be.
    #[error("{path}, line {line}: expected {expected}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What a line of this file holds.
        expected: &'static str,
        /// How it differs.
        #[source]
        source: serde_json::Error,
    },
    /// There is nothing to learn from.
    #[error("no {what} left: {reason}")]
    NothingLeft {
        /// What was to be made: `items`, `conversations`, `pairs`…
        what: &'static str,
        /// Counts that tell where all of it went.
        reason: String,
    },
}

/// The result of post-training's functions.
pub type Result<T> = std::result::Result<T, Error>;
