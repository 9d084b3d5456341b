//! Removing what is no longer needed.

use crate::find::look;
use crate::names::{self, Kind};
use crate::{Error, Found};
use base::FsError;
use std::fs;
use std::path::{Path, PathBuf};

/// A removal that did not succeed. The run can go on.
#[derive(Debug)]
pub struct Failed {
    /// What should have been removed.
    pub path: PathBuf,
    /// Why it was not.
    pub error: FsError,
}

/// What was removed, and what could not be.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Removed checkpoints, newest first.
    pub removed: Vec<Found>,
    /// Removals that failed.
    pub failed: Vec<Failed>,
}

/// Removes checkpoints so that the `keep` newest stay (at least one). To be called after [`crate::save`]
/// returned, when the new one is durable.
///
/// Damaged ones do not count among those kept, and are not removed: they may be evidence.
///
/// # Errors
/// The directory cannot be listed. A removal that fails is reported in [`Pruned::failed`].
pub fn prune(directory: &Path, keep: usize) -> Result<Pruned, Error> {
    let whole = names::checkpoints(directory)?.into_iter().filter(|e| look(e).is_ok());
    let mut pruned = Pruned::default();
    for entry in whole.skip(keep.max(1)) {
        match remove(directory, entry.step, &entry.path) {
            Ok(()) => pruned.removed.push(Found { step: entry.step, path: entry.path }),
            Err(error) => pruned.failed.push(Failed { path: entry.path, error }),
        }
    }
    Ok(pruned)
}

/// Sweeps what earlier processes left when they were cut off: unfinished writes and removals go, and a
/// checkpoint that was set aside for a newer one of the same step comes back if that never arrived.
/// To be called when no other process uses the directory.
///
/// Only names that this crate gives are touched. A checkpoint copied by hand is never one of them.
///
/// # Errors
/// The directory cannot be listed. What cannot be removed is given back.
pub fn clean(directory: &Path) -> Result<Vec<Failed>, Error> {
    let mut failed = Vec::new();
    for entry in names::entries(directory)? {
        let place = names::place(directory, entry.step);
        let result = match entry.kind {
            Kind::Checkpoint => continue,
            Kind::Replaced if !place.exists() => fs::rename(&entry.path, &place),
            Kind::Writing | Kind::Replaced | Kind::Removing => fs::remove_dir_all(&entry.path),
        };
        if let Err(source) = result {
            let error = FsError::io("remove", &entry.path)(source);
            failed.push(Failed { path: entry.path, error });
        }
    }
    Ok(failed)
}

/// Takes the name away first, so that a cut leaves no half a checkpoint.
fn remove(directory: &Path, step: u64, path: &Path) -> Result<(), FsError> {
    let aside = names::aside(directory, step, Kind::Removing);
    fs::rename(path, &aside).map_err(FsError::io("rename", path))?;
    fs::remove_dir_all(&aside).map_err(FsError::io("remove", &aside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TensorView, latest_good, save};

    #[test]
    fn a_checkpoint_set_aside_comes_back_unless_it_was_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let save = |value: f32| {
            let tensor = TensorView { name: "w", shape: &[1], data: &[value] };
            save(directory, 7, &[tensor], &serde_json::json!({})).unwrap()
        };
        let value = || latest_good(directory).unwrap().good.unwrap().tensors["w"].data[0];
        // Cut off between the two renames of a replacement.
        fs::rename(save(1.0), names::aside(directory, 7, Kind::Replaced)).unwrap();
        assert!(clean(directory).unwrap().is_empty());
        assert_eq!(value(), 1.0);
        // Cut off after both.
        fs::rename(save(1.0), names::aside(directory, 7, Kind::Replaced)).unwrap();
        save(2.0);
        assert!(clean(directory).unwrap().is_empty());
        assert_eq!(value(), 2.0);
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
    }
}
