//! What a stage read, was told and wrote: the link between one stage and the next.
//!
//! A manifest says nothing of time, place or machine, so the same inputs, settings and seed give the
//! same manifest, byte for byte. Times are kept in a file of their own beside it.

use crate::digest::{Digest, Hasher};
use crate::fs::{FsError, read_json, write_json};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the manifest in a stage's directory.
pub const FILE_NAME: &str = "manifest.json";

/// One file that a stage wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Path relative to the stage's directory, with `/`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Digest of the content.
    pub digest: Digest,
}

impl Artifact {
    /// Describes a file under `directory`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(directory: &Path, path: &str) -> Result<Self, FsError> {
        let full = directory.join(path);
        let bytes = std::fs::metadata(&full).map_err(FsError::io("read", &full))?.len();
        let digest = Digest::of_file(&full).map_err(FsError::io("read", &full))?;
        Ok(Self { path: path.to_owned(), bytes, digest })
    }
}

/// The record of a finished stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The stage's name.
    pub stage: String,
    /// Version of the stage's algorithm: raised when the same inputs would give other outputs.
    pub algorithm: u32,
    /// The stage's seed.
    pub seed: u64,
    /// Resolved settings.
    pub settings: serde_json::Value,
    /// Digest of each input, by name.
    pub inputs: BTreeMap<String, Digest>,
    /// Each file written, sorted by path.
    pub outputs: Vec<Artifact>,
    /// What was counted (documents, tokens, steps…).
    pub counts: BTreeMap<String, u64>,
    /// What was measured and is the same on every run (losses, shares…).
    pub measures: BTreeMap<String, f64>,
}

/// A stage's output that is not what its manifest says.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The manifest or an output cannot be read.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// An output was changed after the stage ended.
    #[error("{path} is corrupted: expected digest {expected}, found {found}")]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// What the manifest says.
        expected: Digest,
        /// What is on the disk.
        found: Digest,
    },
}

impl Manifest {
    /// Digest of the manifest, and through it of all that the stage wrote.
    pub fn digest(&self) -> Digest {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Digest::of_bytes(&bytes)
    }

    /// What decides a stage's output: its name, algorithm, seed, settings and inputs.
    pub fn key(
        stage: &str,
        algorithm: u32,
        seed: u64,
        settings: &serde_json::Value,
        inputs: &BTreeMap<String, Digest>,
    ) -> Digest {
        let mut hasher = Hasher::new();
        hasher.field(stage.as_bytes()).field(&algorithm.to_le_bytes()).field(&seed.to_le_bytes());
        hasher.field(settings.to_string().as_bytes());
        for (name, digest) in inputs {
            hasher.field(name.as_bytes()).field(&digest.0);
        }
        hasher.finish()
    }

    /// The key that this manifest was made under.
    pub fn own_key(&self) -> Digest {
        Self::key(&self.stage, self.algorithm, self.seed, &self.settings, &self.inputs)
    }

    /// The digest of one output.
    pub fn output(&self, path: &str) -> Option<&Artifact> {
        self.outputs.iter().find(|artifact| artifact.path == path)
    }

    /// Reads the manifest of a stage's directory; `None` when the stage has not finished.
    ///
    /// # Errors
    /// The file is there but cannot be read or parsed.
    pub fn read(directory: &Path) -> Result<Option<Self>, FsError> {
        let path = directory.join(FILE_NAME);
        if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
    }

    /// Writes the manifest into a stage's directory, which thereby is finished.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), FsError> {
        write_json(&directory.join(FILE_NAME), self)
    }

    /// Reads every output again and compares its digest.
    ///
    /// # Errors
    /// The first output that is missing, unreadable or changed.
    pub fn verify(&self, directory: &Path) -> Result<(), ManifestError> {
        for artifact in &self.outputs {
            let found = Artifact::of(directory, &artifact.path)?;
            if found != *artifact {
                return Err(ManifestError::Corrupted {
                    path: directory.join(&artifact.path),
                    expected: artifact.digest,
                    found: found.digest,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::write_atomic;

    fn manifest(directory: &Path) -> Manifest {
        write_atomic(&directory.join("a.txt"), b"alpha").unwrap();
        Manifest {
            stage: "corpus".into(),
            algorithm: 1,
            seed: 7,
            settings: serde_json::json!({"size": 1}),
            inputs: BTreeMap::from([("source".into(), Digest::of_bytes(b"s"))]),
            outputs: vec![Artifact::of(directory, "a.txt").unwrap()],
            counts: BTreeMap::from([("documents".into(), 3)]),
            measures: BTreeMap::from([("loss".into(), 0.1)]),
        }
    }

    #[test]
    fn round_trip_keeps_the_digest() {
        let directory = tempfile::tempdir().unwrap();
        let written = manifest(directory.path());
        written.write(directory.path()).unwrap();
        let read = Manifest::read(directory.path()).unwrap().unwrap();
        assert_eq!(read, written);
        assert_eq!(read.digest(), written.digest());
    }

    #[test]
    fn a_changed_output_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = manifest(directory.path());
        manifest.verify(directory.path()).unwrap();
        std::fs::write(directory.path().join("a.txt"), b"alphb").unwrap();
        let error = manifest.verify(directory.path()).unwrap_err().to_string();
        assert!(error.contains("a.txt is corrupted"), "{error}");
    }

    #[test]
    fn the_key_follows_what_decides_the_output() {
        let directory = tempfile::tempdir().unwrap();
        let one = manifest(directory.path());
        let mut other = one.clone();
        other.counts.clear();
        assert_eq!(one.own_key(), other.own_key());
        other.seed = 8;
        assert_ne!(one.own_key(), other.own_key());
    }
}
