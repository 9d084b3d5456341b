//! Attempts: one prompt with its answer and what the detector said, and the files they are kept in.

use crate::Error;
use crate::answer::{Finish, Prompt};
use crate::redteam::{Detector, ProbeName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where a secret's log-probability stands among alternatives of its form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// 1 when no alternative is as probable.
    pub rank: u64,
    /// How many alternatives were scored.
    pub alternatives: u64,
    /// log2 of (alternatives + 1) / rank, in bits (Carlini et al. 2019, section 4.2, estimated by
    /// sampling). Without memorisation its mean is about 1.44.
    pub bits: f64,
}

impl Exposure {
    /// The exposure of a secret by its own log-probability and those of the alternatives. A tie counts
    /// against the secret.
    pub fn of(own: f64, others: &[f64]) -> Self {
        let rank = 1 + others.iter().filter(|&&other| other >= own).count() as u64;
        let all = others.len() as u64 + 1;
        Self { rank, alternatives: others.len() as u64, bits: (all as f64 / rank as f64).log2() }
    }
}

/// One try of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Unique in the campaign: the probe and a number.
    pub id: String,
    /// The probe.
    pub probe: ProbeName,
    /// Who attacked.
    pub attacker: String,
    /// What the model was given.
    pub prompt: Prompt,
    /// What it answered; empty where texts were scored.
    pub answer: String,
    /// Why the answer ended; none where texts were scored.
    pub finish: Option<Finish>,
    /// What would be a hit.
    pub detector: Detector,
    /// Whether it is one.
    pub hit: bool,
    /// The canary that it is about.
    pub canary: Option<String>,
    /// The canary's exposure, where it was measured.
    pub exposure: Option<Exposure>,
}

/// Reads a file of attempts.
///
/// # Errors
/// The file cannot be read, or a line is no attempt (the line is named).
pub fn read_attempts(path: &Path) -> Result<Vec<Attempt>, Error> {
    read_lines(path)
}

/// Reads records, one a line; blank lines are skipped.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let bytes = base::read(path)?;
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| Error::Record {
                path: path.to_owned(),
                line: index + 1,
                message: error.to_string(),
            })
        })
        .collect()
}

/// Writes records, one a line, atomically.
pub(crate) fn write_lines<T: Serialize>(path: &Path, records: &[T]) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for record in records {
        serde_json::to_writer(&mut bytes, record)
            .map_err(|source| base::FsError::Json { path: path.to_owned(), source })?;
        bytes.push(b'\n');
    }
    Ok(base::write_atomic(path, &bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exposure_counts_ranks_in_bits() {
        let found = Exposure::of(-1.0, &[-2.0, -3.0, -4.0]);
        assert_eq!((found.rank, found.bits), (1, 2.0));
        let found = Exposure::of(-9.0, &[-2.0, -3.0, -4.0]);
        assert_eq!((found.rank, found.bits), (4, 0.0));
        assert_eq!(Exposure::of(-1.0, &[-1.0]).rank, 2);
    }

    #[test]
    fn a_bad_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("attempts.jsonl");
        std::fs::write(&path, "\n{\"id\": 3}\n").unwrap();
        let message = read_attempts(&path).unwrap_err().to_string();
        assert!(message.contains("attempts.jsonl, line 2"), "{message}");
    }
}
