//! Append-only files of JSON lines. A line torn by a crash is dropped when the file is read and
//! replaced when the next one is written.

use base::FsError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Appends one record durably.
pub fn append<T: Serialize>(path: &Path, record: &T) -> Result<(), FsError> {
    let json = |source| FsError::Json { path: path.to_owned(), source };
    let mut line = serde_json::to_vec(record).map_err(json)?;
    line.push(b'\n');
    let open = File::options().create(true).truncate(false).read(true).write(true).open(path);
    let mut file = open.map_err(FsError::io("open", path))?;
    let write = |file: &mut File| -> std::io::Result<()> {
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let whole = content.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&line)?;
        file.sync_all()
    };
    write(&mut file).map_err(FsError::io("write", path))
}

/// Reads all whole records; a missing file has none.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, FsError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let content = base::read(path)?;
    let whole = content.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    content[..whole]
        .split(|&b| b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            serde_json::from_slice(line)
                .map_err(|source| FsError::Json { path: path.to_owned(), source })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_dropped_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j.jsonl");
        append(&path, &1u32).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"22").unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), [1]);
        append(&path, &3u32).unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), [1, 3]);
    }
}
