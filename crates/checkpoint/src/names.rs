//! How the entries of a directory of checkpoints are called.

use base::FsError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What stands between a step and what its directory is for while it is not in its place.
const WRITING: &str = "writing";
const REPLACED: &str = "replaced";
const REMOVING: &str = "removing";

static NEXT: AtomicU64 = AtomicU64::new(0);

/// An entry's part in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A checkpoint in its place.
    Checkpoint,
    /// A write that was not finished.
    Writing,
    /// The earlier checkpoint of a step that was saved again.
    Replaced,
    /// A checkpoint that was being removed.
    Removing,
}

/// An entry that this crate named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub step: u64,
    pub kind: Kind,
    pub path: PathBuf,
}

/// The place of a step's checkpoint.
pub(crate) fn place(directory: &Path, step: u64) -> PathBuf {
    directory.join(format!("step-{step:08}"))
}

/// A new name for a step's directory while it is not in its place. It begins with a dot and ends in
/// `.tmp`, which nothing that a person would copy by hand does.
pub(crate) fn aside(directory: &Path, step: u64, kind: Kind) -> PathBuf {
    let word = match kind {
        Kind::Replaced => REPLACED,
        Kind::Removing => REMOVING,
        Kind::Checkpoint | Kind::Writing => WRITING,
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    directory.join(format!(".step-{step:08}.{word}.{}-{number}.tmp", std::process::id()))
}

/// All entries with names of ours, newest step first; a directory that does not exist has none.
pub(crate) fn entries(directory: &Path) -> Result<Vec<Entry>, FsError> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let failed = || FsError::io("list", directory);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let parsed = entry.file_name().to_str().and_then(parse);
        if let Some((step, kind)) = parsed {
            entries.push(Entry { step, kind, path: entry.path() });
        }
    }
    // Two names may mean one step (`step-5`, copied by hand, and `step-00000005`): the longer is ours.
    entries.sort_by(|a, b| (b.step, &a.path).cmp(&(a.step, &b.path)));
    Ok(entries)
}

/// The checkpoints in their places, newest step first.
pub(crate) fn checkpoints(directory: &Path) -> Result<Vec<Entry>, FsError> {
    let mut entries = entries(directory)?;
    entries.retain(|entry| entry.kind == Kind::Checkpoint && entry.path.is_dir());
    Ok(entries)
}

fn parse(name: &str) -> Option<(u64, Kind)> {
    if let Some(digits) = name.strip_prefix("step-") {
        return number(digits).map(|step| (step, Kind::Checkpoint));
    }
    let (digits, rest) = name.strip_prefix(".step-")?.strip_suffix(".tmp")?.split_once('.')?;
    let kind = match rest.split_once('.')?.0 {
        WRITING => Kind::Writing,
        REPLACED => Kind::Replaced,
        REMOVING => Kind::Removing,
        _ => return None,
    };
    number(digits).map(|step| (step, kind))
}

fn number(digits: &str) -> Option<u64> {
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let directory = Path::new("x");
        assert_eq!(parse(&name(place(directory, 7))), Some((7, Kind::Checkpoint)));
        for kind in [Kind::Writing, Kind::Replaced, Kind::Removing] {
            assert_eq!(
                parse(&name(aside(directory, 123_456_789, kind))),
                Some((123_456_789, kind))
            );
        }
    }

    #[test]
    fn foreign_names_are_left_alone() {
        for name in ["step-", "step-5-copy", "step-+5", "step 5", "notes.tmp", ".step-5.tmp", ".x"]
        {
            assert_eq!(parse(name), None, "{name}");
        }
        assert_eq!(parse("step-5"), Some((5, Kind::Checkpoint)));
    }
}
