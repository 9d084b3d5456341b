//! Writing a checkpoint.

use crate::format::{Description, Entry, PAYLOAD_FILE, STATE_FILE};
use crate::names::{self, Kind};
use crate::{Error, load};
use base::{FsError, Hasher};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Values converted to bytes at a time.
const PIECE: usize = 1 << 14;

/// A tensor to be saved.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Its name, unique in the checkpoint.
    pub name: &'a str,
    /// Its shape; the product is the number of values.
    pub shape: &'a [usize],
    /// Its values, row by row.
    pub data: &'a [f32],
}

/// How many bytes the payloads of these tensors take on the disk.
pub fn size(tensors: &[TensorView<'_>]) -> u64 {
    tensors.iter().map(|tensor| 4 * tensor.data.len() as u64).sum()
}

/// Saves a checkpoint as `directory/step-N` and returns its path once it is durable.
///
/// It is written under a temporary name and renamed, so a cut leaves either nothing of it or all of it.
/// Where the same checkpoint is there already it is kept; another one of the same step is replaced.
///
/// # Errors
/// A tensor's shape or name is wrong, or a file cannot be written (see [`Error::is_disk_full`]); earlier
/// checkpoints are untouched then.
pub fn save(
    directory: &Path,
    step: u64,
    tensors: &[TensorView<'_>],
    state: &serde_json::Value,
) -> Result<PathBuf, Error> {
    save_through(directory, step, tensors, state, |path| File::create(path))
}

/// [`save`] with the way of making a file left open, so that tests can make the disk full.
pub(crate) fn save_through(
    directory: &Path,
    step: u64,
    tensors: &[TensorView<'_>],
    state: &serde_json::Value,
    create: impl Fn(&Path) -> io::Result<File>,
) -> Result<PathBuf, Error> {
    check(tensors)?;
    fs::create_dir_all(directory).map_err(FsError::io("create", directory))?;
    let unfinished = Unfinished::new(directory, step)?;
    let payloads = unfinished.path.join(PAYLOAD_FILE);
    let entries = write_durably(&payloads, &create, |file| write_payloads(file, tensors))?;
    let description = Description::new(step, entries, state.clone());
    let path = unfinished.path.join(STATE_FILE);
    let json =
        description.to_json().map_err(|source| FsError::Json { path: path.clone(), source })?;
    write_durably(&path, &create, |file| file.write_all(&json))?;
    base::fs::sync_directory(&unfinished.path)?;
    put_in_place(directory, step, &unfinished, &description)
}

fn check(tensors: &[TensorView<'_>]) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    for &TensorView { name, shape, data } in tensors {
        if shape.iter().product::<usize>() != data.len() {
            let (tensor, shape) = (name.to_owned(), shape.to_owned());
            return Err(Error::Shape { tensor, shape, found: data.len() });
        }
        if !names.insert(name) {
            return Err(Error::Duplicate { tensor: name.to_owned() });
        }
    }
    Ok(())
}

fn write_payloads(file: &mut File, tensors: &[TensorView<'_>]) -> io::Result<Vec<Entry>> {
    let mut bytes = Vec::with_capacity(4 * PIECE);
    let mut entries = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let mut hasher = Hasher::new();
        for piece in tensor.data.chunks(PIECE) {
            bytes.clear();
            bytes.extend(piece.iter().flat_map(|value| value.to_le_bytes()));
            hasher.write_all(&bytes)?;
            file.write_all(&bytes)?;
        }
        entries.push(Entry {
            name: tensor.name.to_owned(),
            shape: tensor.shape.to_owned(),
            bytes: 4 * tensor.data.len() as u64,
            digest: hasher.finish(),
        });
    }
    Ok(entries)
}

fn write_durably<T>(
    path: &Path,
    create: &impl Fn(&Path) -> io::Result<File>,
    write: impl FnOnce(&mut File) -> io::Result<T>,
) -> Result<T, FsError> {
    let mut file = create(path).map_err(FsError::io("create", path))?;
    let written = write(&mut file).map_err(FsError::io("write", path))?;
    file.sync_all().map_err(FsError::io("flush", path))?;
    Ok(written)
}

/// A directory that is removed again unless it was renamed.
struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    fn new(directory: &Path, step: u64) -> Result<Self, FsError> {
        let path = names::aside(directory, step, Kind::Writing);
        fs::create_dir(&path).map_err(FsError::io("create", &path))?;
        Ok(Self { path })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the renaming there is nothing under this name; before it, nobody needs what is there.
        fs::remove_dir_all(&self.path).ok();
    }
}

fn put_in_place(
    directory: &Path,
    step: u64,
    unfinished: &Unfinished,
    description: &Description,
) -> Result<PathBuf, Error> {
    let place = names::place(directory, step);
    let mut replaced = None;
    if place.exists() {
        if Description::read(&place).is_ok_and(|there| there == *description)
            && load(&place).is_ok()
        {
            return Ok(place);
        }
        // A cut between the two renames leaves the step without a checkpoint in its place: `clean`
        // brings the earlier one back.
        let aside = names::aside(directory, step, Kind::Replaced);
        fs::rename(&place, &aside).map_err(FsError::io("rename", &place))?;
        replaced = Some(aside);
    }
    if let Err(source) = fs::rename(&unfinished.path, &place) {
        if let Some(aside) = &replaced {
            fs::rename(aside, &place).map_err(FsError::io("rename", aside))?;
        }
        return Err(FsError::io("rename", &place)(source).into());
    }
    base::fs::sync_directory(directory)?;
    if let Some(aside) = replaced {
        // If this fails, `clean` tries again; the new checkpoint is durable either way.
        fs::remove_dir_all(&aside).ok();
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latest_good;

    fn tensor(data: &[f32]) -> [TensorView<'_>; 1] {
        [TensorView { name: "w", shape: &[3], data }]
    }

    /// The disk fills up while the named file is written.
    fn full_disk(name: &'static str) -> impl Fn(&Path) -> io::Result<File> {
        move |path| {
            let full = path.file_name().is_some_and(|n| n == name);
            File::options().write(true).create(!full).open(if full {
                Path::new("/dev/full")
            } else {
                path
            })
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_leaves_the_earlier_checkpoint_and_nothing_else() {
        for name in [PAYLOAD_FILE, STATE_FILE] {
            let directory = tempfile::tempdir().unwrap();
            let directory = directory.path();
            let state = serde_json::json!({});
            save(directory, 1, &tensor(&[1.0, 2.0, 3.0]), &state).unwrap();
            for step in [1, 2] {
                let tensors = tensor(&[4.0, 5.0, 6.0]);
                let error =
                    save_through(directory, step, &tensors, &state, full_disk(name)).unwrap_err();
                assert!(error.is_disk_full(), "{error}");
                assert!(error.to_string().contains(name), "{error}");
            }
            let latest = latest_good(directory).unwrap();
            assert_eq!(latest.good.unwrap().tensors["w"].data, [1.0, 2.0, 3.0]);
            assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
        }
    }
}
