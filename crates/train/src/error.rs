//! What can go wrong in training.

use crate::objective::ObjectiveError;
use base::{FsError, Interrupted};
use std::path::PathBuf;

/// Training could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was asked to stop; a checkpoint is saved.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A setting has a value with which no training is possible.
    #[error("{name} is {found}, expected {expected}")]
    Setting {
        /// The setting, as it is written in a recipe.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The loss, the gradient or a measure became infinite or not a number.
    #[error(
        "{what} is {value} in step {step} of {objective}; the last good checkpoint is that of step \
         {checkpoint}"
    )]
    NonFinite {
        /// The objective's name.
        objective: String,
        /// `loss`, `grad_norm` or a measure's name.
        what: String,
        /// Its value.
        value: f64,
        /// The step, counted from 1.
        step: u64,
        /// The step of the newest checkpoint, 0 where there is none.
        checkpoint: u64,
    },
    /// No target is counted in a whole step.
    #[error("step {step} of {objective} counts no target: its loss is undefined")]
    NothingCounted {
        /// The objective's name.
        objective: String,
        /// The step, counted from 1.
        step: u64,
    },
    /// The data give no work at all.
    #[error("{objective} has no data: {reason}")]
    NoData {
        /// The objective's name.
        objective: &'static str,
        /// Why.
        reason: String,
    },
    /// There is a checkpoint, but it belongs to another training.
    #[error("{path} holds a checkpoint of another training: {name} was {found}, is {expected} now")]
    OtherTraining {
        /// The directory of checkpoints.
        path: PathBuf,
        /// What differs, as a path of keys.
        name: String,
        /// Its value in the checkpoint.
        found: String,
        /// Its value now.
        expected: String,
    },
    /// There are checkpoints, but every one of them is damaged.
    #[error("every checkpoint in {path} is damaged; the newest: {newest}")]
    NoGoodCheckpoint {
        /// The directory of checkpoints.
        path: PathBuf,
        /// What is wrong with the newest.
        newest: Box<checkpoint::Error>,
    },
    /// A checkpoint is whole, but not one of this crate's.
    #[error("the checkpoint of step {step} in {path} has no usable {what}")]
    BadCheckpoint {
        /// The directory of checkpoints.
        path: PathBuf,
        /// Its step.
        step: u64,
        /// The tensor or field at fault.
        what: String,
    },
    /// The metrics do not begin with what was written before the checkpoint.
    #[error(
        "{path} was changed: its first {expected} bytes are not those that were there at the \
         checkpoint of step {step}"
    )]
    MetricsChanged {
        /// The file.
        path: PathBuf,
        /// How many bytes belong to the checkpoint.
        expected: u64,
        /// The checkpoint's step.
        step: u64,
    },
    /// The checkpoints would not fit on the disk.
    #[error("checkpoints in {path} need {needed} bytes, the disk has {free} free")]
    NoSpace {
        /// The directory of checkpoints.
        path: PathBuf,
        /// Bytes that the checkpoints on the disk at one time take.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The objective could not give its work or its gradients.
    #[error("{objective} failed in step {step}")]
    Objective {
        /// The objective's name.
        objective: String,
        /// The step, counted from 1.
        step: u64,
        /// Why.
        #[source]
        source: ObjectiveError,
    },
    /// An evaluation failed.
    #[error("the evaluation after step {step} failed")]
    Evaluation {
        /// The step, counted from 1.
        step: u64,
        /// Why.
        #[source]
        source: ObjectiveError,
    },
    /// A checkpoint could not be saved or loaded.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// The model refused.
    #[error(transparent)]
    Model(#[from] model::Error),
    /// A file could not be read or written.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl Error {
    /// True when the disk, or the user's share of it, is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Fs(error) => error.is_disk_full(),
            Self::Checkpoint(error) => error.is_disk_full(),
            Self::NoSpace { .. } => true,
            _ => false,
        }
    }
}
