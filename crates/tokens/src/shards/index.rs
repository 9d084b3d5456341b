//! The index of a shard, written and read.
//!
//! The index: the 9 bytes `MMIDIDX\0\0`; u64 version 1; u8 type code (8 for u16, 4 for i32); u64
//! sequences; u64 document boundaries (documents + 1); an i32 length per sequence; an i64 byte offset per
//! sequence; an i64 boundary per document, counted in sequences. All little-endian. Here a sequence is a
//! document, so boundary i is i.

use super::Width;
use crate::Error;
use std::path::Path;

const MAGIC: &[u8; 9] = b"MMIDIDX\0\0";
const VERSION: u64 = 1;
const HEADER: usize = 9 + 8 + 1 + 8 + 8;

/// The bytes of an index.
pub(super) fn index_bytes(width: Width, lengths: &[i32]) -> Vec<u8> {
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
pub(super) fn read_index(path: &Path) -> Result<(Width, Vec<u64>), Error> {
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
