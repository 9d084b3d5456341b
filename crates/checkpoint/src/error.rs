//! What can go wrong with a checkpoint.

use base::{Digest, FsError};
use std::path::PathBuf;

/// A checkpoint could not be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, written, renamed or understood.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// There is no checkpoint under this path.
    #[error("there is no checkpoint at {path}")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The checkpoint was written by a version with another layout.
    #[error("{path} has layout {found}; this program reads layout {expected}")]
    Layout {
        /// The description's file.
        path: PathBuf,
        /// The layout that this program writes.
        expected: u32,
        /// The layout found.
        found: u32,
    },
    /// The description's own checksum does not match: it was changed after it was written.
    #[error("{path} is corrupted: expected digest {expected}, found {found}")]
    Description {
        /// The description's file.
        path: PathBuf,
        /// The digest written into it.
        expected: Digest,
        /// The digest of what is there now.
        found: Digest,
    },
    /// The file of payloads is shorter or longer than described.
    #[error("{path} is corrupted: expected {expected} bytes, found {found}")]
    Length {
        /// The file of payloads.
        path: PathBuf,
        /// The size by the description.
        expected: u64,
        /// The size found.
        found: u64,
    },
    /// A tensor's checksum does not match.
    #[error("{path} is corrupted in tensor {tensor}: expected digest {expected}, found {found}")]
    Payload {
        /// The file of payloads.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The digest when it was saved.
        expected: Digest,
        /// The digest of what is there now.
        found: Digest,
    },
    /// A directory's name and the checkpoint in it disagree on the step.
    #[error("{path} holds the checkpoint of step {found}: a copy must keep its name")]
    Misnamed {
        /// The directory.
        path: PathBuf,
        /// The step of the checkpoint in it.
        found: u64,
    },
    /// A tensor to be saved has another number of values than its shape says.
    #[error("tensor {tensor} has shape {shape:?} but {found} values")]
    Shape {
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// How many values came with it.
        found: usize,
    },
    /// Two tensors to be saved have one name.
    #[error("two tensors are called {tensor}")]
    Duplicate {
        /// The name.
        tensor: String,
    },
}

impl Error {
    /// True when the disk, or the user's share of it, is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Fs(error) if error.is_disk_full())
    }

    /// True when the checkpoint itself is damaged or unreadable as such, so that an older one may be
    /// used; false for errors that would meet every checkpoint.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Description { .. }
            | Self::Length { .. }
            | Self::Payload { .. }
            | Self::Missing { .. }
            | Self::Misnamed { .. }
            | Self::Fs(_) => true,
            Self::Layout { .. } | Self::Shape { .. } | Self::Duplicate { .. } => false,
        }
    }
}
