//! The list of documents beside the shards: which document is which sequence.

use super::mix::rows_path;
use crate::shards::{Shard, open_all};
use crate::{Error, Tokenizer};
use base::{AtomicFile, Category, Document, FsError};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// Where a document comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The corpus.
    Corpus,
    /// Added as given, outside the shares.
    Extra,
}

/// One document in the shards: a line of `train-documents.jsonl` or `held-out-documents.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRow {
    /// The document's id.
    pub id: String,
    /// The source it is from.
    pub source: String,
    /// Its address in the source.
    pub url: String,
    /// Its category.
    pub category: Category,
    /// From the corpus or added.
    pub origin: Origin,
    /// Bytes of its text.
    pub bytes: u64,
    /// Its tokens, with the one that starts it.
    pub tokens: u64,
    /// How often it is in the shards.
    pub times: u32,
    /// The first sequence that it is, counted through all shards of the split; none where it was not
    /// chosen.
    pub sequence: Option<u64>,
}

impl DocumentRow {
    pub(super) fn new(document: &Document, origin: Origin, tokens: usize) -> Self {
        Self {
            id: document.id.clone(),
            source: document.source.clone(),
            url: document.url.clone(),
            category: document.category,
            origin,
            bytes: document.text.len() as u64,
            tokens: tokens as u64,
            times: 0,
            sequence: None,
        }
    }
}

pub(super) fn write_rows(path: &Path, rows: &[DocumentRow]) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    for row in rows {
        let json = |source| FsError::Json { path: path.to_owned(), source };
        let mut line = serde_json::to_vec(row).map_err(json)?;
        line.push(b'\n');
        file.write_all(&line).map_err(FsError::io("write", path))?;
    }
    Ok(file.commit()?)
}

/// The documents of a split (`train` or `held-out`), in the corpus's order, those that were not chosen
/// included.
///
/// # Errors
/// The list is missing or damaged.
pub fn read_rows(directory: &Path, split: &str) -> Result<Vec<DocumentRow>, Error> {
    let path = rows_path(directory, split);
    let bytes = base::read(&path)?;
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let row = |(number, line)| {
        serde_json::from_slice(line).map_err(|source: serde_json::Error| Error::Shard {
            path: path.clone(),
            expected: format!("a document on line {}", number + 1),
            found: source.to_string(),
        })
    };
    lines.enumerate().map(row).collect()
}

/// The text of each document of a split that is read at all, once each, in the order of the first
/// reading, decoded from the shards: exactly what the model reads.
///
/// # Errors
/// At once: the list or the shards are missing or damaged. Later: a shard cannot be read.
pub fn read_text<'a>(
    directory: &Path,
    split: &str,
    tokenizer: &'a Tokenizer,
) -> Result<impl Iterator<Item = Result<String, Error>> + 'a, Error> {
    let mut rows = read_rows(directory, split)?;
    rows.sort_by_key(|row| row.sequence);
    let sequences = Sequences::open(directory, split)?;
    let sequences_read = rows.into_iter().filter_map(|row| row.sequence);
    Ok(sequences_read.map(move |sequence| Ok(tokenizer.decode(&sequences.get(sequence)?))))
}

/// Sequences counted through all shards of a split.
pub(super) struct Sequences(Vec<Shard>);

impl Sequences {
    pub(super) fn open(directory: &Path, split: &str) -> Result<Self, Error> {
        Ok(Self(open_all(directory, split)?))
    }

    pub(super) fn get(&self, mut index: u64) -> Result<Vec<u32>, Error> {
        for shard in &self.0 {
            let here = shard.num_sequences() as u64;
            if index < here {
                return shard.sequence(index as usize);
            }
            index -= here;
        }
        Ok(Vec::new())
    }
}
