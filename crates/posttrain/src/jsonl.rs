//! JSON-lines files: one record a line, whole or absent, with errors that name the line.

use crate::{Error, Result};
use base::FsError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Writes the records, one a line, atomically.
///
/// # Errors
/// A record does not serialize, or the file cannot be written.
pub fn write<'a, T: Serialize + 'a>(
    path: &Path,
    records: impl IntoIterator<Item = &'a T>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for record in records {
        serde_json::to_writer(&mut bytes, record)
            .map_err(|source| FsError::Json { path: path.to_owned(), source })?;
        bytes.push(b'\n');
    }
    Ok(base::write_atomic(path, &bytes)?)
}

/// Reads all records of a file. `expected` says what a line holds, for the message about a bad one.
///
/// # Errors
/// The file cannot be read, or a line is no such record: the message names file and line.
pub fn read<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<Vec<T>> {
    parse(&base::read(path)?, path, expected)
}

/// Parses records from bytes; `path` serves for messages. Empty lines and a byte order mark are skipped.
///
/// # Errors
/// A line is no such record.
pub fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    path: &Path,
    expected: &'static str,
) -> Result<Vec<T>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|source| Error::Line {
                path: path.to_owned(),
                line: index + 1,
                expected,
                source,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/x.jsonl");
        write(&path, &[1, 2, 3]).unwrap();
        assert_eq!(read::<u32>(&path, "a number").unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let check = |bytes: &[u8], place: &str| {
            let error = parse::<u32>(bytes, Path::new("data.jsonl"), "a number").unwrap_err();
            assert!(error.to_string().contains(place), "{error}");
        };
        check(b"1\nx\n", "data.jsonl, line 2: expected a number");
        check(b"1\n\n\n{\"a\":1}", "line 4");
        check(b"1\n\xff\xfe", "line 2");
        check(b"\"\\ud800\"", "line 1");
        assert_eq!(
            parse::<u32>(b"\xef\xbb\xbf1\r\n2", Path::new("x"), "a number").unwrap(),
            [1, 2]
        );
        assert!(parse::<u32>(b"", Path::new("x"), "a number").unwrap().is_empty());
    }
}
