//! Token shards in Megatron's layout (`megatron/core/datasets/indexed_dataset.py`, version 1): `NAME.bin`
//! holds the ids of all sequences end to end, `NAME.idx` says where each starts.
//!
//! The index: the 9 bytes `MMIDIDX\0\0`; u64 version 1; u8 type code (8 for u16, 4 for i32); u64
//! sequences; u64 document boundaries (documents + 1); an i32 length per sequence; an i64 byte offset per
//! sequence; an i64 boundary per document, counted in sequences. All little-endian. Here a sequence is a
//! document, so boundary i is i.
//!
//! Ids are u16 where the vocabulary allows it. Shards are called `PREFIX-00000` and on.

use crate::Error;
use base::{AtomicFile, FsError};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 9] = b"MMIDIDX\0\0";
const VERSION: u64 = 1;
const HEADER: usize = 9 + 8 + 1 + 8 + 8;

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

fn index_bytes(width: Width, lengths: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + lengths.len() * 20 + 8);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.push(width.code());
    bytes.extend((lengths.len() as u64).to_le_bytes());
    bytes.extend((lengths.len() as u64 + 1).to_le_bytes());
    lengths.iter().for_each(|length| bytes.extend(length.to_le_bytes()));
    let mut offset = 0i64;
    for &length in lengths {
        bytes.extend(offset.to_le_bytes());
        offset += i64::from(length) * width.bytes() as i64;
    }
    (0..=lengths.len() as i64).for_each(|boundary| bytes.extend(boundary.to_le_bytes()));
    bytes
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

/// Takes numbers off the front of an index.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

/// The width and the starts, if every number of the index is what it must be.
fn read_index(path: &Path) -> Result<(Width, Vec<u64>), Error> {
    let bytes = base::read(path)?;
    let wrong = |expected: &str, found: String| Error::Shard {
        path: path.to_owned(),
        expected: expected.to_owned(),
        found,
    };
    let cut = || wrong("a header of 34 bytes", format!("{} bytes", bytes.len()));
    let mut reader = Reader(&bytes);
    let magic: [u8; 9] = reader.take().ok_or_else(cut)?;
    if &magic != MAGIC {
        return Err(wrong(
            "MMIDIDX at the start",
            format!("{:?}", magic.escape_ascii().to_string()),
        ));
    }
    let version = reader.number().ok_or_else(cut)?;
    if version != VERSION {
        return Err(wrong("version 1", version.to_string()));
    }
    let [code] = reader.take().ok_or_else(cut)?;
    let width = [Width::U16, Width::I32].into_iter().find(|width| width.code() == code);
    let width = width.ok_or_else(|| wrong("type code 8 or 4", code.to_string()))?;
    let sequences = reader.number().ok_or_else(cut)?;
    let boundaries = reader.number().ok_or_else(cut)?;
    let needed = u128::from(sequences) * 12 + u128::from(boundaries) * 8;
    if boundaries == 0 || needed != reader.0.len() as u128 {
        let expected =
            format!("{needed} bytes for {sequences} sequences and {boundaries} boundaries");
        return Err(wrong(&expected, reader.0.len().to_string()));
    }
    read_starts(&mut reader, sequences, boundaries, width)
        .map(|starts| (width, starts))
        .map_err(|(expected, found)| wrong(expected, found))
}

fn read_starts(
    reader: &mut Reader<'_>,
    sequences: u64,
    boundaries: u64,
    width: Width,
) -> Result<Vec<u64>, (&'static str, String)> {
    let mut starts = vec![0u64];
    let mut total = 0;
    for index in 0..sequences {
        let length = reader.take().map_or(-1, i32::from_le_bytes);
        let length = u64::try_from(length)
            .map_err(|_| ("lengths of 0 or more", format!("{length} for sequence {index}")))?;
        total += length;
        starts.push(total);
    }
    for (index, &start) in starts.iter().take(sequences as usize).enumerate() {
        let (expected, found) = (start * width.bytes() as u64, reader.number().unwrap_or(u64::MAX));
        if expected != found {
            let found = format!("{found} instead of {expected} for sequence {index}");
            return Err(("each sequence after the one before", found));
        }
    }
    let mut last = 0;
    for index in 0..boundaries {
        let boundary = reader.number().unwrap_or(u64::MAX);
        let is_right =
            if index == 0 { boundary == 0 } else { (last..=sequences).contains(&boundary) };
        if !is_right {
            return Err(("rising document boundaries", format!("boundary {index} at {boundary}")));
        }
        last = boundary;
    }
    if last == sequences {
        Ok(starts)
    } else {
        Err(("a last boundary at the end", last.to_string()))
    }
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
