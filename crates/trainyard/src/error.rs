//! How a command fails: the error with its causes, a hint for the next thing to type, and an exit code.

use base::Stop;
use std::fmt;

/// What kind of failure it is; each has an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A gate was not passed.
    Gate,
    /// The command line or the recipe is wrong.
    Usage,
    /// An input, an artifact or the disk is not as it should be.
    Data,
    /// Stopped on request; all that was finished is saved.
    Interrupted,
}

impl Kind {
    /// The program's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Gate => 1,
            Self::Usage => 2,
            Self::Data => 3,
            Self::Interrupted => 130,
        }
    }
}

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    /// What kind of failure.
    pub kind: Kind,
    /// What went wrong, with its causes.
    pub error: anyhow::Error,
    /// What to do next.
    pub hint: Option<String>,
}

/// The result of everything in this crate.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure of a kind, by its message.
    pub fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, error: anyhow::anyhow!("{message}"), hint: None }
    }

    /// After a stop was asked for, whatever error comes out is the answer to it.
    pub fn answering(self, stop: &Stop) -> Self {
        if stop.raised() { Self { kind: Kind::Interrupted, ..self } } else { self }
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Errors of the libraries are about data unless said otherwise.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = anyhow::Error::new(error);
        let full = error.chain().any(|cause| {
            cause.downcast_ref::<std::io::Error>().is_some_and(|e| {
                use std::io::ErrorKind::{QuotaExceeded, StorageFull};
                matches!(e.kind(), StorageFull | QuotaExceeded)
            })
        });
        let hint = full.then(|| {
            "the disk (or your quota) is full: free some space and run the same command again; \
             nothing that was finished is lost"
                .to_owned()
        });
        Self { kind: Kind::Data, error, hint }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.error)?;
        let mut previous = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let text = cause.to_string();
            if text != previous {
                write!(f, "\n  caused by: {text}")?;
            }
            previous = text;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
