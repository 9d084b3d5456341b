//! Files that are one document each: web pages, plain text, program sources.

use super::{Raw, Sink, compressed};
use crate::error::Error;
use crate::ledger::Tally;
use crate::resolve::InputFile;
use crate::settings::Source;
use std::io::Read;

/// Reads a web page or a text.
pub(super) fn read(
    source: &Source,
    file: &InputFile,
    tally: &mut Tally,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let Some(text) = content(source, file, tally) else { return Ok(()) };
    let url = address(source, &file.relative);
    sink(Raw { url, place: file.relative.clone(), text, ..Raw::default() }, tally)
}

/// The address of a file: the site and its path, without the ending of its compression.
pub(super) fn address(source: &Source, relative: &str) -> String {
    let relative = compressed::without_compression(relative);
    match source.site.trim_end_matches('/') {
        "" => relative.to_owned(),
        site => format!("{site}/{relative}"),
    }
}

/// A file's whole text; nothing, and a count, where it cannot be had.
pub(super) fn content(source: &Source, file: &InputFile, tally: &mut Tally) -> Option<String> {
    let path = file.path();
    let limit = source.max_document_bytes;
    let mut bytes = Vec::new();
    let mut refuse = |rule, bytes: &[u8], reason: String| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
        tally.drop_text(("read", rule), &source.name, &file.relative, &text, reason);
    };
    let mut reader = match compressed::open(&path) {
        Ok(reader) => reader.take(limit.saturating_add(1)),
        Err(error) => {
            refuse("unreadable", &[], error.to_string());
            return None;
        }
    };
    if let Err(error) = reader.read_to_end(&mut bytes) {
        let rule =
            if compressed::is_compressed(&file.relative) { "truncated" } else { "unreadable" };
        refuse(rule, &bytes, format!("{error} after {} bytes", bytes.len()));
        return None;
    }
    if bytes.len() as u64 > limit {
        refuse("too-large", &bytes, format!("more than {limit} bytes"));
        return None;
    }
    decode(bytes, source, &file.relative, tally)
}

/// UTF-8 text of bytes. Up to one bad sequence per hundred bytes is replaced by U+FFFD and counted as a
/// change; more is taken for another encoding or for binary data and dropped.
fn decode(bytes: Vec<u8>, source: &Source, place: &str, tally: &mut Tally) -> Option<String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Some(text),
        Err(error) => error.into_bytes(),
    };
    let bad = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let rule = ("read", "invalid-utf8");
    if bad * 100 > bytes.len() {
        let reason = format!("{bad} bad sequences in {} bytes", bytes.len());
        tally.drop_text(rule, &source.name, place, &text, reason);
        return None;
    }
    tally.replaced(rule, bad as u64);
    Some(text)
}
