//! Which checkpoint to go on from.

use crate::format::{Description, PAYLOAD_FILE};
use crate::load::{check_length, load};
use crate::names::{self, Entry};
use crate::{Error, Loaded};
use base::FsError;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A checkpoint in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The step after which it was saved.
    pub step: u64,
    /// Its directory.
    pub path: PathBuf,
}

/// A checkpoint that was not used, and why.
#[derive(Debug)]
pub struct Refused {
    /// Its directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: Error,
}

/// What a search for the newest good checkpoint gave.
#[derive(Debug)]
pub struct Latest {
    /// The newest that passed every checksum; `None` where there is none.
    pub good: Option<Loaded>,
    /// Newer ones that did not, newest first.
    pub refused: Vec<Refused>,
}

/// The newest checkpoint that looks whole: its description passes its checksum and its payloads have the
/// right size. The payloads are not read.
///
/// # Errors
/// The directory cannot be listed.
pub fn latest(directory: &Path) -> Result<Option<Found>, Error> {
    for entry in names::checkpoints(directory)? {
        if look(&entry).is_ok() {
            return Ok(Some(Found { step: entry.step, path: entry.path }));
        }
    }
    Ok(None)
}

/// Loads the newest checkpoint that passes every checksum, passing over damaged ones.
///
/// A directory that does not exist holds none. What is damaged is left where it is.
///
/// # Errors
/// The directory cannot be listed, or a checkpoint was written by another version of this program.
pub fn latest_good(directory: &Path) -> Result<Latest, Error> {
    let mut refused = Vec::new();
    for entry in names::checkpoints(directory)? {
        let loaded = load(&entry.path).and_then(|loaded| {
            check_step(&entry, loaded.step)?;
            Ok(loaded)
        });
        match loaded {
            Ok(loaded) => return Ok(Latest { good: Some(loaded), refused }),
            Err(error) if error.is_damage() => refused.push(Refused { path: entry.path, error }),
            Err(error) => return Err(error),
        }
    }
    Ok(Latest { good: None, refused })
}

/// Whether a checkpoint looks whole.
pub(crate) fn look(entry: &Entry) -> Result<(), Error> {
    let description = Description::read(&entry.path)?;
    let payloads = entry.path.join(PAYLOAD_FILE);
    let file = File::open(&payloads).map_err(FsError::io("open", &payloads))?;
    check_length(&payloads, &file, &description)?;
    check_step(entry, description.step)
}

/// A copy under another step's name would be taken for the newest again and again.
fn check_step(entry: &Entry, found: u64) -> Result<(), Error> {
    if entry.step == found {
        Ok(())
    } else {
        Err(Error::Misnamed { path: entry.path.clone(), found })
    }
}
