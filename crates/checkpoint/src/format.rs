//! The description that stands beside the payloads.

use crate::Error;
use base::Digest;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file of payloads in a checkpoint's directory.
pub const PAYLOAD_FILE: &str = "tensors.bin";
/// The file with the step, the tensors' names, shapes and digests, and the caller's state.
pub const STATE_FILE: &str = "checkpoint.json";

const LAYOUT: u32 = 1;

/// One tensor's entry. Payloads lie in the order of the entries, without gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub name: String,
    pub shape: Vec<usize>,
    pub bytes: u64,
    pub digest: Digest,
}

/// All but the payloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub layout: u32,
    pub step: u64,
    pub tensors: Vec<Entry>,
    pub state: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    digest: Digest,
    #[serde(flatten)]
    description: Description,
}

impl Description {
    pub fn new(step: u64, tensors: Vec<Entry>, state: serde_json::Value) -> Self {
        Self { layout: LAYOUT, step, tensors, state }
    }

    /// Size of the file of payloads.
    pub fn payload_bytes(&self) -> u64 {
        self.tensors.iter().fold(0, |sum, entry| sum.saturating_add(entry.bytes))
    }

    /// The digest over everything in the description, and so over every payload's digest.
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        Ok(Digest::of_bytes(&serde_json::to_vec(self)?))
    }

    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let sealed = Sealed { digest: self.digest()?, description: self.clone() };
        let mut bytes = serde_json::to_vec_pretty(&sealed)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads the description of the checkpoint in `directory` and compares its digest.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(STATE_FILE);
        if !path.is_file() {
            return Err(Error::Missing { path: directory.to_owned() });
        }
        let Sealed { digest: expected, description } = base::read_json(&path)?;
        if description.layout != LAYOUT {
            return Err(Error::Layout { path, expected: LAYOUT, found: description.layout });
        }
        let json = |source| base::FsError::Json { path: path.clone(), source };
        let found = description.digest().map_err(json)?;
        if found != expected {
            return Err(Error::Description { path, expected, found });
        }
        Ok(description)
    }
}
