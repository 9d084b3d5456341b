//! The curves: one JSON line a step. What follows from the data goes to `metrics.jsonl`, which is the
//! same to the byte however often the training was cut off; how long it took goes to `timing.jsonl`.

use crate::Error;
use crate::objective::Measures;
use base::{Digest, FsError, Hasher};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file of records.
pub const METRICS_FILE: &str = "metrics.jsonl";
/// The file of times: a line for every step that was taken, so a step that was taken again after an
/// interruption has two.
pub const TIMING_FILE: &str = "timing.jsonl";

/// One step's line in `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Steps taken, this one included.
    pub step: u64,
    /// Tokens read so far.
    pub tokens_seen: u64,
    /// Mean loss over the step's counted targets (nats per target for the objectives on tokens).
    pub loss: f64,
    /// Norm of the whole gradient before clipping.
    pub grad_norm: f64,
    /// Learning rate of this update.
    pub learning_rate: f64,
    /// The objective's own measures, as means.
    #[serde(default, skip_serializing_if = "Measures::is_empty")]
    pub measures: Measures,
    /// What the evaluation after this step gave, where there was one.
    #[serde(default, skip_serializing_if = "Measures::is_empty")]
    pub evaluation: Measures,
}

/// One step's line in `timing.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Steps taken, this one included.
    pub step: u64,
    /// How long the step took, without evaluation and checkpoint.
    pub seconds: f64,
    /// Tokens read per second.
    pub tokens_per_second: f64,
}

/// How far the records reach, and what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub bytes: u64,
    pub digest: Digest,
}

/// The file of records, open for writing at its end.
pub(crate) struct MetricsFile {
    path: PathBuf,
    file: File,
    hasher: Hasher,
    bytes: u64,
}

impl MetricsFile {
    /// Starts an empty file.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(METRICS_FILE);
        let file = File::create(&path).map_err(FsError::io("create", &path))?;
        Ok(Self { path, file, hasher: Hasher::new(), bytes: 0 })
    }

    /// Opens the file as it was at a checkpoint; what was written later is cut off.
    pub fn resume(directory: &Path, position: Position, step: u64) -> Result<Self, Error> {
        let path = directory.join(METRICS_FILE);
        let changed =
            || Error::MetricsChanged { path: path.clone(), expected: position.bytes, step };
        let mut file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(changed()),
            Err(error) => return Err(FsError::io("open", &path)(error).into()),
        };
        let failed = || FsError::io("read", &path);
        let mut hasher = Hasher::new();
        let mut kept = (&mut file).take(position.bytes);
        let bytes = std::io::copy(&mut kept, &mut hasher).map_err(failed())?;
        if bytes != position.bytes || hasher.finish() != position.digest {
            return Err(changed());
        }
        file.set_len(bytes).map_err(FsError::io("truncate", &path))?;
        file.seek(SeekFrom::End(0)).map_err(failed())?;
        Ok(Self { path, file, hasher, bytes })
    }

    /// Appends a line.
    pub fn append(&mut self, record: &Record) -> Result<(), Error> {
        let line = json_line(record, &self.path)?;
        self.file.write_all(&line).map_err(FsError::io("write", &self.path))?;
        self.hasher.write_all(&line).map_err(FsError::io("digest", &self.path))?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Makes all lines durable and says how far they reach.
    pub fn sync(&mut self) -> Result<Position, Error> {
        self.file.sync_data().map_err(FsError::io("flush", &self.path))?;
        Ok(Position { bytes: self.bytes, digest: self.hasher.finish() })
    }
}

/// The file of times, open for appending.
pub(crate) struct TimingFile {
    path: PathBuf,
    file: File,
}

impl TimingFile {
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(TIMING_FILE);
        let file = File::options().create(true).append(true).open(&path);
        Ok(Self { file: file.map_err(FsError::io("open", &path))?, path })
    }

    pub fn append(&mut self, timing: &Timing) -> Result<(), Error> {
        let line = json_line(timing, &self.path)?;
        Ok(self.file.write_all(&line).map_err(FsError::io("write", &self.path))?)
    }
}

fn json_line<T: Serialize>(value: &T, path: &Path) -> Result<Vec<u8>, FsError> {
    let json = |source| FsError::Json { path: path.to_owned(), source };
    let mut line = serde_json::to_vec(value).map_err(json)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the records of a training's directory, without a last line that was cut off.
///
/// # Errors
/// The file cannot be read, or a whole line is not a record.
pub fn read_metrics(directory: &Path) -> Result<Vec<Record>, FsError> {
    read_lines(&directory.join(METRICS_FILE))
}

/// Reads the times of a training's directory, without a last line that was cut off.
///
/// # Errors
/// The file cannot be read, or a whole line is not a time.
pub fn read_timing(directory: &Path) -> Result<Vec<Timing>, FsError> {
    read_lines(&directory.join(TIMING_FILE))
}

fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, FsError> {
    let bytes = base::read(path)?;
    let end = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
    let lines = bytes[..end].split(|&b| b == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            serde_json::from_slice(line)
                .map_err(|source| FsError::Json { path: path.to_owned(), source })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(step: u64) -> Record {
        Record {
            step,
            tokens_seen: 100 * step,
            loss: 1.0 / step as f64,
            grad_norm: 0.1,
            learning_rate: 1e-3,
            measures: Measures::from([("margin".into(), 0.5)]),
            evaluation: Measures::new(),
        }
    }

    fn write(directory: &Path, steps: std::ops::RangeInclusive<u64>) -> Position {
        let mut file = MetricsFile::create(directory).unwrap();
        steps.for_each(|step| file.append(&record(step)).unwrap());
        file.sync().unwrap()
    }

    #[test]
    fn resuming_cuts_off_what_came_later() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        write(directory, 1..=5);
        let whole = std::fs::read(directory.join(METRICS_FILE)).unwrap();
        let position = write(directory, 1..=3);
        let mut file = MetricsFile::resume(directory, position, 3).unwrap();
        file.append(&record(9)).unwrap();
        drop(file);
        std::fs::OpenOptions::new()
            .append(true)
            .open(directory.join(METRICS_FILE))
            .and_then(|mut f| f.write_all(b"{\"step\": 10, \"tok"))
            .unwrap();
        assert_eq!(read_metrics(directory).unwrap().len(), 4);
        let mut file = MetricsFile::resume(directory, position, 3).unwrap();
        (4..=5).for_each(|step| file.append(&record(step)).unwrap());
        assert_eq!(std::fs::read(directory.join(METRICS_FILE)).unwrap(), whole);
        assert_eq!(read_metrics(directory).unwrap()[4], record(5));
    }

    #[test]
    fn changed_or_missing_metrics_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let position = write(directory, 1..=3);
        let path = directory.join(METRICS_FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let refused = |result: Result<MetricsFile, Error>| {
            matches!(result, Err(Error::MetricsChanged { step: 3, .. }))
        };
        assert!(refused(MetricsFile::resume(directory, position, 3)));
        std::fs::write(&path, &bytes[..20]).unwrap();
        assert!(refused(MetricsFile::resume(directory, position, 3)));
        std::fs::remove_file(&path).unwrap();
        assert!(refused(MetricsFile::resume(directory, position, 3)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_told_apart() {
        let path = PathBuf::from("/dev/full");
        let file = File::options().write(true).open(&path).unwrap();
        let mut metrics = MetricsFile { path, file, hasher: Hasher::new(), bytes: 0 };
        let error = metrics.append(&record(1)).unwrap_err();
        assert!(error.is_disk_full() && error.to_string().contains("/dev/full"), "{error}");
    }
}
