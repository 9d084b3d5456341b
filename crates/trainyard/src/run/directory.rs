//! Where the things of a run are, and the lock that keeps two programs from working in one place.

use crate::error::{Failure, Kind, Result};
use base::FsError;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A run's directory.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    root: PathBuf,
}

impl RunDirectory {
    /// The directory `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// An existing run: the one given, or the latest under `runs/`.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        if let Some(root) = given {
            let found = Self::new(root);
            if found.recipe().exists() {
                return Ok(found);
            }
            let message = format!("{} is not the directory of a run", root.display());
            return Err(Failure::new(Kind::Usage, message)
                .hint("`trainyard run --dir DIR` makes one; `ls runs` lists those that are here"));
        }
        let mut runs: Vec<_> = fs::read_dir("runs")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| Self::new(entry.path()))
            .filter_map(|run| Some((fs::metadata(run.events()).ok()?.modified().ok()?, run)))
            .collect();
        runs.sort_by_key(|(modified, _)| *modified);
        runs.pop().map(|(_, run)| run).ok_or_else(|| {
            Failure::new(Kind::Usage, "there is no run under runs/")
                .hint("start one with `trainyard run`, or name its directory with --dir")
        })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A stage's directory.
    pub fn stage(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The recipe as it was resolved.
    pub fn recipe(&self) -> PathBuf {
        self.root.join("recipe.json")
    }

    /// The recipe as it was written, comments included.
    pub fn recipe_text(&self) -> PathBuf {
        self.root.join("recipe.toml")
    }

    /// The command that began the run last and goes on with it.
    pub fn command(&self) -> PathBuf {
        self.root.join("command")
    }

    /// The log of decisions.
    pub fn decisions(&self) -> PathBuf {
        self.root.join("decisions.jsonl")
    }

    /// The log of starts, ends and interruptions.
    pub fn events(&self) -> PathBuf {
        self.root.join("events.jsonl")
    }

    /// The report.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// How the directory is written on a command line.
    pub fn display(&self) -> String {
        self.root.display().to_string()
    }

    /// Makes the directory and takes its lock, which is held until the result is dropped or the
    /// program ends in any way.
    pub fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.root).map_err(FsError::io("create", &self.root))?;
        let path = self.root.join("lock");
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let mut file = open.map_err(FsError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = holder.trim();
                let message = format!("{} is in use by process {holder}", self.root.display());
                return Err(Failure::new(Kind::Usage, message)
                    .hint("wait until it ends, or start this run elsewhere with --dir"));
            }
            Err(TryLockError::Error(source)) => {
                return Err(FsError::io("lock", &path)(source).into());
            }
        }
        file.set_len(0).map_err(FsError::io("write", &path))?;
        writeln!(file, "{}", std::process::id()).map_err(FsError::io("write", &path))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_a_dropped_one_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(directory.path().join("r"));
        let held = run.lock().unwrap();
        let refused = run.lock().unwrap_err();
        assert_eq!(refused.kind, Kind::Usage);
        assert!(refused.to_string().contains("is in use by process"), "{refused}");
        drop(held);
        run.lock().unwrap();
    }
}
