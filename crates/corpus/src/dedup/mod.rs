//! Three passes against repetition: by address, by whole text, by line.
//!
//! The first two look at a small side table alone (address, date, digest of the text); text never
//! travels. The third counts hashes of lines, bucket by bucket.

mod line;
mod url;

pub(crate) use line::{LineCounts, RepeatedLines, delete_lines};
pub(crate) use url::normalise_url;

use base::{Document, Hasher};
use std::collections::HashMap;

/// What the first two passes know of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Hash of the normalised address.
    url: u128,
    /// Hash of the normalised text.
    text: u128,
    fetched: i64,
}

impl Row {
    pub(crate) fn of(document: &Document) -> Self {
        let url = normalise_url(&document.url);
        // Relative addresses of different sources name different things.
        let key = if url.contains("://") { url } else { format!("{} {url}", document.source) };
        Self { url: hash(&key), text: text_hash(&document.text), fetched: document.fetched }
    }
}

/// What becomes of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays.
    Keep,
    /// Another document of the same address is newer, or as new and earlier in order: its index.
    SameUrl(usize),
    /// An earlier document has the same text: its index.
    SameText(usize),
}

/// The fate of each document, in order.
pub(crate) fn fates(rows: &[Row], by_url: bool, by_document: bool) -> Vec<Fate> {
    let mut fates = vec![Fate::Keep; rows.len()];
    if by_url {
        let mut newest: HashMap<u128, usize> = HashMap::new();
        for (i, row) in rows.iter().enumerate() {
            let best = newest.entry(row.url).or_insert(i);
            if row.fetched > rows[*best].fetched {
                *best = i;
            }
        }
        for (i, row) in rows.iter().enumerate() {
            let best = newest.get(&row.url).copied().unwrap_or(i);
            if best != i {
                fates[i] = Fate::SameUrl(best);
            }
        }
    }
    if by_document {
        let mut first: HashMap<u128, usize> = HashMap::new();
        for (i, row) in rows.iter().enumerate() {
            if fates[i] != Fate::Keep {
                continue;
            }
            let kept = *first.entry(row.text).or_insert(i);
            if kept != i {
                fates[i] = Fate::SameText(kept);
            }
        }
    }
    fates
}

fn hash(text: &str) -> u128 {
    let digest = Hasher::new().field(text.as_bytes()).finish();
    let mut first = [0; 16];
    first.copy_from_slice(&digest.0[..16]);
    u128::from_le_bytes(first)
}

/// The hash of a text in lower case with single spaces.
fn text_hash(text: &str) -> u128 {
    let mut normal = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.extend(word.chars().flat_map(char::to_lowercase));
    }
    hash(&normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(url: u128, text: u128, fetched: i64) -> Row {
        Row { url, text, fetched }
    }

    #[test]
    fn the_newest_of_an_address_and_the_first_of_a_text_stay() {
        let rows = [row(1, 1, 5), row(1, 2, 9), row(1, 3, 9), row(2, 2, 0), row(3, 4, 0)];
        let expected =
            [Fate::SameUrl(1), Fate::Keep, Fate::SameUrl(1), Fate::SameText(1), Fate::Keep];
        assert_eq!(fates(&rows, true, true), expected);
        assert_eq!(fates(&rows, false, false), [Fate::Keep; 5]);
    }

    #[test]
    fn a_document_lost_by_address_hides_no_other() {
        // The older copy has the text of a third document, which therefore must stay.
        let rows = [row(1, 7, 0), row(1, 8, 1), row(2, 7, 0)];
        assert_eq!(fates(&rows, true, true), [Fate::SameUrl(1), Fate::Keep, Fate::Keep]);
    }

    #[test]
    fn case_and_spacing_do_not_make_a_text_different() {
        assert_eq!(text_hash("A  b\n\nc"), text_hash("a b c\n"));
        assert_ne!(text_hash("a b c"), text_hash("a bc"));
    }
}
