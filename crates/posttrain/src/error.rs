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
    /// The tokenizer or the chat template does not fit the conversations.
    #[error(transparent)]
    Tokens(tokens::Error),
    /// The model refused its work.
    #[error(transparent)]
    Model(model::Error),
    /// A training failed.
    #[error(transparent)]
    Train(train::Error),
    /// The model could not be asked.
    #[error(transparent)]
    Judge(judge::Error),
    /// There is nothing to learn from.
    #[error("no {what} left: {reason}")]
    NothingLeft {
        /// What was to be made: `items`, `conversations`, `pairs`…
        what: &'static str,
        /// Counts that tell where all of it went.
        reason: String,
    },
}

/// An interruption is one, whichever crate noticed it: the program looks for one variant.
macro_rules! from_crate {
    ($variant:ident, $error:path, $interrupted:path) => {
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                match error {
                    $interrupted(interrupted) => Self::Interrupted(interrupted),
                    error => Self::$variant(error),
                }
            }
        }
    };
}

from_crate!(Tokens, tokens::Error, tokens::Error::Interrupted);
from_crate!(Model, model::Error, model::Error::Interrupted);
from_crate!(Train, train::Error, train::Error::Interrupted);
from_crate!(Judge, judge::Error, judge::Error::Interrupted);

/// The result of post-training's functions.
pub type Result<T> = std::result::Result<T, Error>;
