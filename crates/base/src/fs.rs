//! Files that are whole or absent. A file is written under a temporary name, flushed to the disk and
//! renamed, and then the directory is flushed too: a crash leaves the old content or the new one.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A failed operation on a file, with what was tried and where.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The operating system refused.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was tried: `read`, `write`, `rename`…
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The file is there, but its content is not what it should be.
    #[error("{path} is not valid JSON of the expected form")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and how it differs.
        #[source]
        source: serde_json::Error,
    },
}

impl FsError {
    /// Names the operation and the file of an I/O error: `.map_err(FsError::io("read", path))`.
    pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { operation, path, source }
    }

    /// True when the disk, or the user's share of it, is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file being written; it appears under its name only with [`AtomicFile::commit`].
/// Dropped without a commit, nothing of it remains.
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts a file that will be called `target`. Its directory is made where it is missing.
    ///
    /// # Errors
    /// The directory or the temporary file cannot be made.
    pub fn create(target: &Path) -> Result<Self, FsError> {
        let directory = parent(target);
        fs::create_dir_all(directory).map_err(FsError::io("create", directory))?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{name}.{}-{number}.tmp", std::process::id()));
        let file = File::create(&temporary).map_err(FsError::io("create", &temporary))?;
        Ok(Self { target: target.to_owned(), temporary, writer: Some(BufWriter::new(file)) })
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// Flushing or renaming failed; the old content, if any, is still in place.
    pub fn commit(mut self) -> Result<(), FsError> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let failed = FsError::io("write", &self.target);
        let file = writer.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(FsError::io("write", &self.target))?;
        fs::rename(&self.temporary, &self.target).map_err(FsError::io("rename", &self.target))?;
        sync_directory(parent(&self.target))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().map_or(Ok(0), |w| w.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        drop(self.writer.take());
        // After a commit there is nothing under this name; before one, nobody needs it.
        fs::remove_file(&self.temporary).ok();
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    }
}

/// Flushes a directory's entries to the disk.
///
/// # Errors
/// The directory cannot be opened or flushed.
pub fn sync_directory(directory: &Path) -> Result<(), FsError> {
    File::open(directory).and_then(|d| d.sync_all()).map_err(FsError::io("flush", directory))
}

/// Removes what a killed program has left of unfinished [`AtomicFile`]s under `directory`. Only for
/// directories that no other program writes into now.
///
/// # Errors
/// A directory cannot be read or a file cannot be removed.
pub fn remove_unfinished(directory: &Path) -> Result<(), FsError> {
    let entries = fs::read_dir(directory).map_err(FsError::io("read", directory))?;
    for entry in entries {
        let entry = entry.map_err(FsError::io("read", directory))?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_unfinished(&path)?;
        } else if name.starts_with('.') && name.ends_with(".tmp") {
            fs::remove_file(&path).map_err(FsError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Writes a whole file atomically.
///
/// # Errors
/// Anything that [`AtomicFile`] reports.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(FsError::io("write", path))?;
    file.commit()
}

/// Writes a value as indented JSON, atomically.
///
/// # Errors
/// The value does not serialize, or the file cannot be written.
pub fn write_json<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<(), FsError> {
    let json = |source| FsError::Json { path: path.to_owned(), source };
    let mut bytes = serde_json::to_vec_pretty(value).map_err(json)?;
    bytes.push(b'\n');
    write_atomic(path, &bytes)
}

/// Reads a whole file.
///
/// # Errors
/// The file is missing or unreadable.
pub fn read(path: &Path) -> Result<Vec<u8>, FsError> {
    fs::read(path).map_err(FsError::io("read", path))
}

/// Reads a JSON file.
///
/// # Errors
/// The file is missing, unreadable or not of the expected form.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FsError> {
    serde_json::from_slice(&read(path)?)
        .map_err(|source| FsError::Json { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_files_leave_the_old_content_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b.txt");
        write_atomic(&path, b"old").unwrap();
        let mut unfinished = AtomicFile::create(&path).unwrap();
        unfinished.write_all(b"new").unwrap();
        drop(unfinished);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_kill_has_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("a/notes.tmp");
        write_atomic(&kept, b"kept").unwrap();
        let unfinished = AtomicFile::create(&directory.path().join("a/b.txt")).unwrap();
        let left = unfinished.temporary.clone();
        std::mem::forget(unfinished);
        assert!(left.exists());
        remove_unfinished(directory.path()).unwrap();
        assert!(kept.exists() && !left.exists());
    }

    #[test]
    fn errors_name_the_file() {
        let error = read_json::<u32>(Path::new("/nowhere/x.json")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/x.json"), "{error}");
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let Ok(mut file) = File::options().write(true).open("/dev/full") else { return };
        let source = file.write_all(b"x").unwrap_err();
        assert!(FsError::io("write", Path::new("/dev/full"))(source).is_disk_full());
    }
}
