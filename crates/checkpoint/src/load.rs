//! Reading a checkpoint, every byte of it against its checksum.

use crate::Error;
use crate::format::{Description, Entry, PAYLOAD_FILE, STATE_FILE};
use base::{FsError, Hasher};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Bytes read at a time; a multiple of four.
const PIECE: usize = 1 << 16;

/// A tensor that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values, row by row.
    pub data: Vec<f32>,
}

/// A checkpoint in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The step after which it was saved.
    pub step: u64,
    /// The tensors by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// The state that was saved with them.
    pub state: serde_json::Value,
}

/// Loads the checkpoint in the directory `path`.
///
/// # Errors
/// There is none, a file cannot be read, or a checksum does not match: the error names the file and the
/// tensor. Nothing is given back in part.
pub fn load(path: &Path) -> Result<Loaded, Error> {
    let description = Description::read(path)?;
    let payloads = path.join(PAYLOAD_FILE);
    let mut file = File::open(&payloads).map_err(FsError::io("open", &payloads))?;
    check_length(&payloads, &file, &description)?;
    let mut tensors = BTreeMap::new();
    for entry in description.tensors {
        check_shape(path, &entry)?;
        let data = read_payload(&mut file, &payloads, &entry)?;
        tensors.insert(entry.name, Tensor { shape: entry.shape, data });
    }
    Ok(Loaded { step: description.step, tensors, state: description.state })
}

/// Compares the size of the file of payloads with the description, before anything is allocated.
pub(crate) fn check_length(
    path: &Path,
    file: &File,
    description: &Description,
) -> Result<(), Error> {
    let found = file.metadata().map_err(FsError::io("read", path))?.len();
    let expected = description.payload_bytes();
    if found != expected {
        return Err(Error::Length { path: path.to_owned(), expected, found });
    }
    Ok(())
}

fn check_shape(path: &Path, entry: &Entry) -> Result<(), Error> {
    let values = entry.shape.iter().try_fold(4u64, |size, &d| size.checked_mul(d as u64));
    if values != Some(entry.bytes) {
        let path = path.join(STATE_FILE);
        return Err(Error::Length {
            path,
            expected: values.unwrap_or(u64::MAX),
            found: entry.bytes,
        });
    }
    Ok(())
}

fn read_payload(file: &mut File, path: &Path, entry: &Entry) -> Result<Vec<f32>, Error> {
    let failed = || FsError::io("read", path);
    let mut hasher = Hasher::new();
    let mut data = Vec::with_capacity(entry.bytes as usize / 4);
    let mut bytes = vec![0u8; PIECE];
    let mut left = entry.bytes as usize;
    while left > 0 {
        let piece = &mut bytes[..left.min(PIECE)];
        file.read_exact(piece).map_err(failed())?;
        hasher.write_all(piece).map_err(failed())?;
        data.extend(piece.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        left -= piece.len();
    }
    let found = hasher.finish();
    if found != entry.digest {
        let (path, tensor) = (path.to_owned(), entry.name.clone());
        return Err(Error::Payload { path, tensor, expected: entry.digest, found });
    }
    Ok(data)
}
