//! Content digests (BLAKE3, 256 bits), written as 64 hexadecimal digits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;

/// The BLAKE3 digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Digest of a byte string.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Digest of a file's content, read in pieces.
    ///
    /// # Errors
    /// Whatever opening or reading the file gives.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = std::fs::File::open(path)?;
        let mut hasher = Hasher::new();
        let mut buffer = vec![0u8; 1 << 18];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok(hasher.finish());
            }
            hasher.write_all(&buffer[..count])?;
        }
    }

    /// The first eight bytes as a number, for hash partitions and splits.
    pub fn prefix(&self) -> u64 {
        let mut first = [0u8; 8];
        first.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(first)
    }

    /// The first twelve hexadecimal digits: enough to tell digests apart on a screen.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A string that is not 64 hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("expected a digest of 64 hexadecimal digits, found {0:?}")]
pub struct BadDigest(String);

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let bad = || BadDigest(text.to_owned());
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        let mut bytes = [0u8; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Digests a sequence of fields; each is preceded by its length, so that fields cannot run together.
#[derive(Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// An empty hasher.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one field.
    pub fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// The digest of all that was added.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

/// Raw bytes, without a length in front.
impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_input_has_the_published_digest() {
        let expected = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Digest::of_bytes(b"").to_string(), expected);
        assert_eq!(expected.parse::<Digest>().unwrap(), Digest::of_bytes(b""));
    }

    #[test]
    fn fields_do_not_run_together() {
        let one = Hasher::new().field(b"ab").field(b"c").finish();
        let other = Hasher::new().field(b"a").field(b"bc").finish();
        assert_ne!(one, other);
    }

    #[test]
    fn malformed_digests_are_refused() {
        for text in ["", "abc", &"g".repeat(64), &"é".repeat(32)] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
