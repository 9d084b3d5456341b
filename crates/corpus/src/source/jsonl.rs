//! One JSON object a line, with the field names that dolma, C4 and datatrove use. A bad line is counted
//! and the next one read.

use super::{Raw, Sink, compressed, dates};
use crate::error::Error;
use crate::ledger::Tally;
use crate::resolve::InputFile;
use crate::settings::Source;
use base::Category;
use serde_json::{Map, Value};
use std::io::{self, BufRead, BufReader};

/// Reads a file of JSON lines.
pub(super) fn read(
    source: &Source,
    file: &InputFile,
    tally: &mut Tally,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let stream = match compressed::open(&file.path()) {
        Ok(stream) => stream,
        Err(error) => {
            tally.drop_text(
                ("read", "unreadable"),
                &source.name,
                &file.relative,
                "",
                error.to_string(),
            );
            return Ok(());
        }
    };
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    for number in 1u64.. {
        let place = format!("{}:{number}", file.relative);
        let refused = match next_line(&mut reader, source.max_document_bytes) {
            Ok(None) => return Ok(()),
            Ok(Some(line)) if line.length > source.max_document_bytes => {
                Some(("too-large", line.bytes, format!("a line of {} bytes", line.length)))
            }
            Ok(Some(line)) if line.bytes.iter().all(u8::is_ascii_whitespace) => None,
            Ok(Some(line)) => match parse(&line.bytes, &place) {
                Ok(raw) => {
                    sink(raw, tally)?;
                    None
                }
                Err((rule, reason)) => Some((rule, line.bytes, reason)),
            },
            Err(error) => {
                let rule = if compressed::is_compressed(&file.relative) {
                    "truncated"
                } else {
                    "unreadable"
                };
                tally.drop_text(("read", rule), &source.name, &place, "", error.to_string());
                return Ok(());
            }
        };
        if let Some((rule, bytes, reason)) = refused {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
            tally.drop_text(("read", rule), &source.name, &place, &text, reason);
        }
    }
    Ok(())
}

struct Line {
    /// The line's beginning, up to the limit.
    bytes: Vec<u8>,
    /// Its whole length.
    length: u64,
}

/// The next line, of which no more than `limit` bytes are held.
fn next_line(reader: &mut impl BufRead, limit: u64) -> io::Result<Option<Line>> {
    let mut line = Line { bytes: Vec::new(), length: 0 };
    let mut any = false;
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(any.then_some(line));
        }
        any = true;
        let end = available.iter().position(|&b| b == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        let room = limit.saturating_sub(line.bytes.len() as u64) as usize;
        line.bytes.extend_from_slice(&part[..part.len().min(room)]);
        line.length += part.len() as u64;
        let used = end.map_or(available.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

type Refused = (&'static str, String);

fn parse(bytes: &[u8], place: &str) -> Result<Raw, Refused> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let object: Map<String, Value> =
        serde_json::from_slice(bytes).map_err(|error| ("bad-json", error.to_string()))?;
    let text = match object.get("text").or_else(|| object.get("content")) {
        Some(Value::String(text)) => text.clone(),
        other => {
            let found = object.keys().cloned().collect::<Vec<_>>().join(", ");
            let what = if other.is_some() { "\"text\" is not a string" } else { "no \"text\"" };
            return Err((
                "missing-text",
                format!("{what}; expected text, url, timestamp…; found {found}"),
            ));
        }
    };
    let word = |names: &[&str]| {
        names.iter().find_map(|name| lookup(&object, name)?.as_str().map(str::to_owned))
    };
    let category = word(&["category", "metadata.category"]);
    Ok(Raw {
        url: word(&["url", "metadata.url", "metadata.source", "id"]).unwrap_or_default(),
        place: place.to_owned(),
        text,
        title: word(&["title", "metadata.title"]).unwrap_or_default(),
        fetched: fetched(&object),
        language: word(&["language", "lang", "metadata.language"]),
        licence: word(&["license", "licence", "metadata.license"]),
        category: category.and_then(|name| Category::ALL.into_iter().find(|c| c.name() == name)),
        ..Raw::default()
    })
}

/// A field by its name, or inside an object by `object.name`.
fn lookup<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    match name.split_once('.') {
        None => object.get(name),
        Some((outer, inner)) => object.get(outer)?.as_object()?.get(inner),
    }
}

fn fetched(object: &Map<String, Value>) -> i64 {
    let names = [
        "timestamp",
        "date",
        "added",
        "created",
        "metadata.timestamp",
        "metadata.date",
        "metadata.added",
    ];
    let value = |name: &&str| match lookup(object, name)? {
        Value::String(text) => dates::seconds(text),
        Value::Number(number) => {
            number.as_i64().or_else(|| number.as_f64().map(|f| f as i64)).map(dates::epoch)
        }
        _ => None,
    };
    names.iter().find_map(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_under_the_names_of_each_data_set() {
        let check = |line: &str, url: &str, fetched: i64| {
            let raw = parse(line.as_bytes(), "f:1").unwrap();
            assert_eq!(
                (raw.text.as_str(), raw.url.as_str(), raw.fetched),
                ("t", url, fetched),
                "{line}"
            );
        };
        check(r#"{"text":"t","url":"u","timestamp":"2019-04-25T12:57:54Z"}"#, "u", 1_556_197_074);
        check(r#"{"id":"i","text":"t","metadata":{"url":"u","date":"1970-01-02"}}"#, "u", 86_400);
        check(r#"{"id":"i","text":"t","added":"1970-01-01","source":"s"}"#, "i", 0);
        check("\u{feff}{\"text\":\"t\",\"timestamp\":12}", "", 12);
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        let check = |line: &[u8], rule: &str, words: &str| {
            let (found, reason) = parse(line, "f:1").unwrap_err();
            assert!(found == rule && reason.contains(words), "{found}: {reason}");
        };
        check(b"{\"a\":1,\"b\":2}", "missing-text", "found a, b");
        check(b"{\"text\":5}", "missing-text", "not a string");
        check(b"[1]", "bad-json", "expected a map");
        check(b"{\"text\":\"\\ud800\"}", "bad-json", "hex escape");
        check(b"{\"text\":\"\xff\"}", "bad-json", "unicode");
    }

    #[test]
    fn long_lines_are_measured_but_not_held() {
        let mut reader = BufReader::with_capacity(4, &b"0123456789\nab\n\nc"[..]);
        let mut next = || next_line(&mut reader, 5).unwrap().map(|line| (line.bytes, line.length));
        assert_eq!(next(), Some((b"01234".to_vec(), 10)));
        assert_eq!(next(), Some((b"ab".to_vec(), 2)));
        assert_eq!(next(), Some((Vec::new(), 0)));
        assert_eq!(next(), Some((b"c".to_vec(), 1)));
        assert_eq!(next(), None);
    }
}
