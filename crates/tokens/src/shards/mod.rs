//! Token shards in Megatron's layout (`megatron/core/datasets/indexed_dataset.py`, version 1): `NAME.bin`
//! holds the ids of all sequences end to end, `NAME.idx` says where each starts.
//!
//! Ids are u16 where the vocabulary allows it. Shards are called `PREFIX-00000` and on.

mod index;

use crate::Error;
use base::{AtomicFile, FsError};
use index::{index_bytes, read_index};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How wide an id is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Unsigned, 16 bits: vocabularies of up to 65,536 tokens.
    U16,
    /// Signed, 32 bits.
    I32,
}

impl Width {
    /// The narrowest width for a vocabulary.
    pub fn of(vocab_size: usize) -> Self {
        if vocab_size <= 1 << 16 { Self::U16 } else { Self::I32 }
    }

    /// Bytes of an id.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U16 => 2,
            Self::I32 => 4,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::U16 => 8,
            Self::I32 => 4,
        }
    }

    fn encode(self, ids: &[u32], bytes: &mut Vec<u8>) {
        match self {
            Self::U16 => ids.iter().for_each(|&id| bytes.extend((id as u16).to_le_bytes())),
            Self::I32 => ids.iter().for_each(|&id| bytes.extend(id.to_le_bytes())),
        }
    }

    fn decode(self, bytes: &[u8]) -> Vec<u32> {
        let id = |piece: &[u8]| piece.iter().rev().fold(0, |id, &byte| id << 8 | u32::from(byte));
        bytes.chunks_exact(self.bytes()).map(id).collect()
    }
}

/// Writes sequences to shards of at most about `shard_tokens` tokens. Nothing has its name before it is
/// whole; dropped without [`ShardWriter::finish`], the open shard leaves nothing behind.
pub struct ShardWriter {
    directory: PathBuf,
    prefix: String,
    width: Width,
    shard_tokens: u64,
    open: Option<(AtomicFile, Vec<i32>)>,
    tokens_in_open: u64,
    names: Vec<String>,
    buffer: Vec<u8>,
}

impl ShardWriter {
    /// A writer of `PREFIX-00000.bin`, `PREFIX-00000.idx` and so on in `directory`.
    pub fn new(directory: &Path, prefix: &str, width: Width, shard_tokens: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            prefix: prefix.to_owned(),
            width,
            shard_tokens: shard_tokens.max(1),
            open: None,
            tokens_in_open: 0,
            names: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Appends one sequence.
    ///
    /// # Errors
    /// The shard cannot be written, or the sequence has 2^31 tokens or more.
    pub fn push(&mut self, ids: &[u32]) -> Result<(), Error> {
        let length =
            i32::try_from(ids.len()).map_err(|_| Error::DocumentTooLong { tokens: ids.len() })?;
        if self.open.is_some() && self.tokens_in_open + ids.len() as u64 > self.shard_tokens {
            self.close()?;
        }
        let path = self.path("bin");
        if self.open.is_none() {
            self.open = Some((AtomicFile::create(&path)?, Vec::new()));
            self.tokens_in_open = 0;
        }
        self.buffer.clear();
        self.width.encode(ids, &mut self.buffer);
        if let Some((file, lengths)) = &mut self.open {
            file.write_all(&self.buffer).map_err(FsError::io("write", &path))?;
            lengths.push(length);
        }
        self.tokens_in_open += ids.len() as u64;
        Ok(())
    }

    /// Closes the last shard and gives the names of all, without extension.
    ///
    /// # Errors
    /// The shard cannot be written.
    pub fn finish(mut self) -> Result<Vec<String>, Error> {
        if self.open.is_none() && self.names.is_empty() {
            self.open = Some((AtomicFile::create(&self.path("bin"))?, Vec::new()));
        }
        self.close()?;
        Ok(self.names)
    }

    fn name(&self) -> String {
        format!("{}-{:05}", self.prefix, self.names.len())
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.name()))
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some((file, lengths)) = self.open.take() else { return Ok(()) };
        file.commit()?;
        base::write_atomic(&self.path("idx"), &index_bytes(self.width, &lengths))?;
        self.names.push(self.name());
        Ok(())
    }
}

/// One shard, its index read and checked, its ids on the disk.
///
/// Ids are read where they are asked for, through the page cache. (A memory map would save a copy, and
/// turn a file that is cut off under it into a dead process instead of an error.)
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    file: File,
    width: Width,
    /// Where each sequence starts, in tokens, and then the number of tokens.
    starts: Vec<u64>,
}

impl Shard {
    /// Opens `NAME.bin` and `NAME.idx`, given the path of either.
    ///
    /// # Errors
    /// A file is missing, unreadable, truncated, or its parts contradict each other.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let index_path = path.with_extension("idx");
        let path = path.with_extension("bin");
        let (width, starts) = read_index(&index_path)?;
        let file = File::open(&path).map_err(FsError::io("open", &path))?;
        let found = file.metadata().map_err(FsError::io("read", &path))?.len();
        let expected = starts.last().copied().unwrap_or(0) * width.bytes() as u64;
        if found != expected {
            let (expected, found) =
                (format!("{expected} bytes, as its index says"), found.to_string());
            return Err(Error::Shard { path, expected, found });
        }
        Ok(Self { path, file, width, starts })
    }

    /// The file of ids.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tokens in the shard.
    pub fn num_tokens(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Sequences in the shard.
    pub fn num_sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where each sequence starts, in tokens, and at the end the number of tokens.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The ids of one sequence. An index outside the shard gives none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn sequence(&self, index: usize) -> Result<Vec<u32>, Error> {
        match self.starts.get(index..index.saturating_add(2)) {
            Some(&[start, end]) => self.tokens(start, (end - start) as usize),
            _ => Ok(Vec::new()),
        }
    }

    /// `count` ids from the token at `start` on; fewer at the shard's end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tokens(&self, start: u64, count: usize) -> Result<Vec<u32>, Error> {
        let count = (count as u64).min(self.num_tokens().saturating_sub(start)) as usize;
        let mut bytes = vec![0; count * self.width.bytes()];
        let offset = start * self.width.bytes() as u64;
        read_exact_at(&self.file, &mut bytes, offset).map_err(FsError::io("read", &self.path))?;
        Ok(self.width.decode(&bytes))
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = &mut bytes[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}

/// Opens all shards of one prefix in order: `PREFIX.idx` alone, or `PREFIX-00000.idx` and on.
///
/// # Errors
/// There is none, one is missing in the row, or one is corrupted.
pub fn open_all(directory: &Path, prefix: &str) -> Result<Vec<Shard>, Error> {
    let single = directory.join(format!("{prefix}.idx"));
    if single.exists() {
        return Ok(vec![Shard::open(&single)?]);
    }
    let mut shards = Vec::new();
    loop {
        let path = directory.join(format!("{prefix}-{:05}.idx", shards.len()));
        match path.exists() {
            true => shards.push(Shard::open(&path)?),
            false if shards.is_empty() => {
                return Err(Error::NoShards {
                    directory: directory.to_owned(),
                    prefix: prefix.to_owned(),
                });
            }
            false => return Ok(shards),
        }
    }
}

/// Removes the shards of a prefix from number `from` on: those that an earlier, longer row has left.
///
/// # Errors
/// A file cannot be removed.
pub(crate) fn remove_from(directory: &Path, prefix: &str, from: usize) -> Result<(), Error> {
    for number in from.. {
        let mut found = false;
        for extension in ["idx", "bin"] {
            let path = directory.join(format!("{prefix}-{number:05}.{extension}"));
            if path.exists() {
                std::fs::remove_file(&path).map_err(FsError::io("remove", &path))?;
                found = true;
            }
        }
        if !found {
            break;
        }
    }
    Ok(())
}
