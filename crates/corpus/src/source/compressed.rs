//! Files as streams of bytes, decompressed by the ending of their names.

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a file; `.gz` and `.zst` are decompressed, members after the first included.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => Ok(Box::new(MultiGzDecoder::new(io::BufReader::new(file)))),
        Some("zst") => Ok(Box::new(zstd::Decoder::new(file)?)),
        _ => Ok(Box::new(file)),
    }
}

/// A file's name without the ending of its compression.
pub(crate) fn without_compression(name: &str) -> &str {
    name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name)
}

/// Whether the file's name says that it is compressed.
pub(crate) fn is_compressed(name: &str) -> bool {
    without_compression(name).len() != name.len()
}
