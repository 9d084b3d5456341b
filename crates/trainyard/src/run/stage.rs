//! The rule by which a stage is skipped, resumed or done.
//!
//! A stage's key is the digest of its name, algorithm, seed, settings and inputs. A directory with a
//! manifest under that key, whose files are as the manifest says, is finished. One without a
//! manifest but begun under that key goes on. One that was made under another key is set aside
//! under `superseded/`, never deleted.

use super::RunDirectory;
use super::events::What;
use crate::error::{Failure, Kind, Result};
use base::manifest::ManifestError;
use base::{Artifact, Digest, FsError, Manifest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What decides a stage's output.
pub struct Stage {
    /// Name and directory, such as `04-pretrain`.
    pub name: &'static str,
    /// Version of the algorithm.
    pub algorithm: u32,
    /// The stage's seed.
    pub seed: base::Seed,
    /// Resolved settings.
    pub settings: Value,
    /// Digest of each input.
    pub inputs: BTreeMap<String, Digest>,
}

/// What a stage made.
#[derive(Default)]
pub struct Yield {
    /// Files, relative to the stage's directory, that later stages and people read.
    pub outputs: Vec<String>,
    /// What was counted.
    pub counts: BTreeMap<String, u64>,
    /// What was measured.
    pub measures: BTreeMap<String, f64>,
    /// One line on what came in and what went out.
    pub summary: String,
}

/// A finished stage.
pub struct Finished {
    /// Where it is.
    pub directory: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// What was written beside the manifest.
    pub timing: Timing,
    /// Whether it was already there.
    pub skipped: bool,
}

impl Finished {
    /// The digest by which later stages name it.
    pub fn digest(&self) -> Digest {
        self.manifest.digest()
    }

    /// The path of one of its files.
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }
}

/// What is true of one execution only, kept outside the digest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Seconds of work, over all attempts.
    pub seconds: f64,
    /// How often the work was begun.
    pub attempts: u32,
    /// The program's version.
    pub program: String,
    /// One line on what came in and what went out.
    pub summary: String,
    /// When it ended: seconds since 1970.
    pub ended: i64,
}

const KEY_FILE: &str = "key";
const TIMING_FILE: &str = "timing.json";

/// The timing kept beside a stage's manifest.
pub fn timing(directory: &Path) -> Timing {
    base::read_json(&directory.join(TIMING_FILE)).unwrap_or_default()
}

/// Does the stage unless it is done.
pub fn perform(
    run: &RunDirectory,
    stage: &Stage,
    work: impl FnOnce(&Path) -> Result<Yield>,
) -> Result<Finished> {
    let key =
        Manifest::key(stage.name, stage.algorithm, stage.seed.0, &stage.settings, &stage.inputs);
    let directory = run.stage(stage.name);
    set_aside_others(run, stage.name, &directory, key)?;
    if let Some(manifest) = finished(&directory)? {
        let timing = timing(&directory);
        return Ok(Finished { directory, manifest, timing, skipped: true });
    }
    begin(&directory, key)?;
    run.record(What::Stage, stage.name, "")?;
    let mut timing = begin_attempt(&directory)?;
    let before = timing.seconds;
    let started = Instant::now();
    let result = work(&directory);
    timing.seconds = before + started.elapsed().as_secs_f64();
    let made = match result {
        Ok(made) => made,
        Err(failure) => {
            // The time spent is a courtesy; the failure is what matters.
            base::write_json(&directory.join(TIMING_FILE), &timing).ok();
            return Err(failure);
        }
    };
    timing.summary = made.summary;
    timing.ended = super::events::now();
    base::write_json(&directory.join(TIMING_FILE), &timing)?;
    let manifest = manifest(stage, &directory, made.outputs, made.counts, made.measures)?;
    manifest.write(&directory)?;
    Ok(Finished { directory, manifest, timing, skipped: false })
}

fn manifest(
    stage: &Stage,
    directory: &Path,
    mut outputs: Vec<String>,
    counts: BTreeMap<String, u64>,
    measures: BTreeMap<String, f64>,
) -> Result<Manifest, FsError> {
    outputs.sort();
    outputs.dedup();
    let outputs = outputs.iter().map(|path| Artifact::of(directory, path));
    Ok(Manifest {
        stage: stage.name.to_owned(),
        algorithm: stage.algorithm,
        seed: stage.seed.0,
        settings: stage.settings.clone(),
        inputs: stage.inputs.clone(),
        outputs: outputs.collect::<Result<_, _>>()?,
        counts,
        measures: measures.into_iter().filter(|(_, value)| value.is_finite()).collect(),
    })
}

/// Moves a directory that was made under another key out of the way.
fn set_aside_others(run: &RunDirectory, name: &str, directory: &Path, key: Digest) -> Result<()> {
    let Ok(found) = std::fs::read_to_string(directory.join(KEY_FILE)) else { return Ok(()) };
    let found = found.trim();
    if found == key.to_string() {
        return Ok(());
    }
    let shelf = run.root().join("superseded");
    std::fs::create_dir_all(&shelf).map_err(FsError::io("create", &shelf))?;
    let short = found.get(..12).unwrap_or("unknown");
    let target = (0..)
        .map(|n| shelf.join(format!("{}-{short}-{n}", name.replace('/', "-"))))
        .find(|path| !path.exists())
        .unwrap_or_else(|| shelf.join(short));
    std::fs::rename(directory, &target).map_err(FsError::io("set aside", directory))?;
    Ok(())
}

/// The manifest, if the stage is finished and everything is as it says.
fn finished(directory: &Path) -> Result<Option<Manifest>> {
    let read = Manifest::read(directory).map_err(|error| {
        let hint = format!(
            "restore it from a copy, or delete it to check and finish {} again",
            directory.display()
        );
        Failure::from(error).hint(hint)
    });
    let Some(manifest) = read? else { return Ok(None) };
    match manifest.verify(directory) {
        Ok(()) => Ok(Some(manifest)),
        Err(error) => {
            let path = match &error {
                ManifestError::Corrupted { path, .. } => path.display().to_string(),
                ManifestError::Fs(_) => directory.display().to_string(),
            };
            let failure =
                Failure { kind: Kind::Data, error: anyhow::Error::new(error), hint: None };
            Err(failure.hint(format!(
                "restore {path} from a copy, or move {} away to do this stage again",
                directory.display()
            )))
        }
    }
}

fn begin(directory: &Path, key: Digest) -> Result<(), FsError> {
    std::fs::create_dir_all(directory).map_err(FsError::io("create", directory))?;
    base::fs::remove_unfinished(directory)?;
    base::write_atomic(&directory.join(KEY_FILE), format!("{key}\n").as_bytes())
}

fn begin_attempt(directory: &Path) -> Result<Timing, FsError> {
    let mut timing = timing(directory);
    timing.attempts += 1;
    timing.program = env!("CARGO_PKG_VERSION").to_owned();
    base::write_json(&directory.join(TIMING_FILE), &timing)?;
    Ok(timing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    fn stage(size: u32) -> Stage {
        Stage {
            name: "01-a",
            algorithm: 1,
            seed: Seed(1),
            settings: serde_json::json!({ "size": size }),
            inputs: BTreeMap::new(),
        }
    }

    fn write(directory: &Path) -> Result<Yield> {
        base::write_atomic(&directory.join("out.txt"), b"result")?;
        Ok(Yield { outputs: vec!["out.txt".into()], ..Yield::default() })
    }

    #[test]
    fn done_work_is_skipped_and_changed_settings_set_the_old_aside() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(directory.path());
        assert!(!perform(&run, &stage(1), write).unwrap().skipped);
        assert!(perform(&run, &stage(1), |_| panic!("must be skipped")).unwrap().skipped);
        assert!(!perform(&run, &stage(2), write).unwrap().skipped);
        let shelf: Vec<_> =
            std::fs::read_dir(directory.path().join("superseded")).unwrap().collect();
        assert_eq!(shelf.len(), 1);
        assert!(shelf[0].as_ref().unwrap().path().join("out.txt").exists());
    }

    #[test]
    fn a_changed_output_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(directory.path());
        perform(&run, &stage(1), write).unwrap();
        std::fs::write(directory.path().join("01-a/out.txt"), b"tampered").unwrap();
        let Err(failure) = perform(&run, &stage(1), write) else { panic!("must be refused") };
        assert!(failure.to_string().contains("out.txt is corrupted"), "{failure}");
    }

    #[test]
    fn failed_work_is_not_finished_and_goes_on_in_the_same_place() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(directory.path());
        let failed = perform(&run, &stage(1), |at| {
            base::write_atomic(&at.join("half.txt"), b"half")?;
            Err(Failure::new(Kind::Data, "broke"))
        });
        assert!(failed.is_err());
        let done = perform(&run, &stage(1), |at| {
            assert!(at.join("half.txt").exists());
            write(at)
        });
        assert_eq!(done.unwrap().timing.attempts, 2);
    }
}
