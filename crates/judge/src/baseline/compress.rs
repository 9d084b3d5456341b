//! Bits per byte of `zstd -19` with the text that the model read as its dictionary.
//!
//! The dictionary is a raw prefix (`ZSTD_CCtx_refPrefix`, the command line's `--patch-from`). Two
//! things are changed from the plain level, both in the compressor's favour, because without them it
//! would see only the end of a large dictionary: the window spans dictionary and text, and the match
//! finder's tables are as large as that. The held-out documents are one stream, so the compressor may
//! also refer from one to another, which the model may not.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::io::Write;
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder;

/// The level that is compared with.
const LEVEL: i32 = 19;
/// zstd's greatest window on 64-bit machines is 2^31 bytes; its match finder's tables end earlier.
const MAX_WINDOW_LOG: u32 = 31;
/// Largest tables: 2^27 entries of 4 bytes each.
const MAX_TABLE_LOG: u32 = 27;

/// What the compressor made of the held-out text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compressed {
    /// Bytes of the dictionary.
    pub dictionary_bytes: u64,
    /// Bytes of the held-out text.
    pub bytes: u64,
    /// Bytes of the compressed held-out text.
    pub compressed_bytes: u64,
    /// Compressed bits for each byte of the text.
    pub bits_per_byte: f64,
}

/// Compresses `text` with `dictionary` in front of it.
///
/// # Errors
/// The text is empty, or the compressor fails (too little memory).
pub fn zstd_bits(dictionary: &[u8], text: &[u8]) -> Result<Compressed, Error> {
    if text.is_empty() {
        return Err(Error::NothingToJudge { what: "held-out text for the compressor" });
    }
    let compressed_bytes =
        compressed_size(dictionary, text).map_err(|source| Error::Compressor { source })?;
    Ok(Compressed {
        dictionary_bytes: dictionary.len() as u64,
        bytes: text.len() as u64,
        compressed_bytes,
        bits_per_byte: compressed_bytes as f64 * 8.0 / text.len() as f64,
    })
}

fn compressed_size(dictionary: &[u8], text: &[u8]) -> std::io::Result<u64> {
    let span = (dictionary.len() + text.len()).max(1 << 19);
    let log = span.next_power_of_two().trailing_zeros();
    let mut encoder = Encoder::with_ref_prefix(Count(0), LEVEL, dictionary)?;
    encoder.set_pledged_src_size(Some(text.len() as u64))?;
    encoder.window_log(log.min(MAX_WINDOW_LOG))?;
    encoder.long_distance_matching(true)?;
    // The binary tree of this level keeps two entries for a position.
    encoder.set_parameter(CParameter::ChainLog((log + 1).min(MAX_TABLE_LOG)))?;
    encoder.set_parameter(CParameter::HashLog(log.clamp(22, MAX_TABLE_LOG - 1)))?;
    encoder.include_checksum(false)?;
    encoder.include_contentsize(false)?;
    encoder.write_all(text)?;
    Ok(encoder.finish()?.0)
}

/// Counts what is written and keeps nothing.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let mut rng = Seed(seed).rng();
        (0..bytes).map(|_| rng.next_u64() as u8).collect()
    }

    #[test]
    fn a_text_at_the_beginning_of_a_big_dictionary_costs_almost_nothing() {
        // Beyond the 8 MiB window of the plain level, and beyond its tables.
        let dictionary = noise(1, 10 << 20);
        let found = zstd_bits(&dictionary, &dictionary[100..60_100]).unwrap();
        assert!(found.bits_per_byte < 0.01, "{found:?}");
        let other = zstd_bits(&dictionary, &noise(2, 60_000)).unwrap();
        assert!(other.bits_per_byte > 7.9, "{other:?}");
    }

    #[test]
    fn short_repeats_from_the_beginning_are_found_too() {
        // Words of 24 bytes, too short for the long-distance matcher, met once, far away.
        let mut dictionary = noise(3, 9 << 20);
        let text: Vec<u8> =
            (0..2_000).flat_map(|i| dictionary[i * 100..i * 100 + 24].to_vec()).collect();
        let found = zstd_bits(&dictionary, &text).unwrap();
        assert!(found.bits_per_byte < 3.0, "{found:?}");
        dictionary.drain(..300_000);
        assert!(zstd_bits(&dictionary, &text).unwrap().bits_per_byte > 7.9);
    }

    #[test]
    fn the_dictionary_only_helps() {
        let text = "fn main() { println!(\"hello\"); }\n".repeat(3);
        let alone = zstd_bits(b"", text.as_bytes()).unwrap();
        let helped = zstd_bits(text.as_bytes(), text.as_bytes()).unwrap();
        assert!(helped.compressed_bytes < alone.compressed_bytes, "{helped:?} {alone:?}");
        assert!(zstd_bits(b"x", b"").is_err());
    }
}
