//! The line rule of Llama 3 (section 3.1.1): in a bucket of documents, a line that appears more than six
//! times is deleted everywhere.

use crate::lines::{LineKind, lines};
use crate::settings::{Exempt, LineRule};
use base::{Category, Digest, Document};
use std::collections::{HashMap, HashSet};

/// How often each line of some documents appears, by hash of the line without the white space around
/// it.
#[derive(Default)]
pub(crate) struct LineCounts(HashMap<u64, u32>);

/// The lines of a bucket that are to be deleted.
#[derive(Default)]
pub(crate) struct RepeatedLines(HashSet<u64>);

impl LineCounts {
    /// Counts the lines of a document that the rule looks at.
    pub(crate) fn count(&mut self, document: &Document, rule: &LineRule) {
        for (line, counted) in counted_lines(document, rule) {
            if counted {
                let count = self.0.entry(line_hash(line)).or_default();
                *count = count.saturating_add(1);
            }
        }
    }

    /// Adds the counts of other documents of the bucket.
    pub(crate) fn add(&mut self, other: Self) {
        for (hash, count) in other.0 {
            let sum = self.0.entry(hash).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The lines that appear too often.
    pub(crate) fn repeated(self, rule: &LineRule) -> RepeatedLines {
        let often = self.0.into_iter().filter(|(_, count)| *count > rule.max_repeats);
        RepeatedLines(often.map(|(hash, _)| hash).collect())
    }
}

/// What the rule did to a document.
pub(crate) struct Deleted {
    /// The new text, where something was deleted.
    pub(crate) text: Option<String>,
    /// Lines that the rule looked at.
    pub(crate) lines_in: u64,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// The first deleted line.
    pub(crate) example: Option<String>,
}

/// Deletes the repeated lines of a document, and of blank lines that thereby follow each other all
/// but one.
pub(crate) fn delete_lines(
    document: &Document,
    repeated: &RepeatedLines,
    rule: &LineRule,
) -> Deleted {
    let mut deleted = Deleted { text: None, lines_in: 0, lines: 0, bytes: 0, example: None };
    let mut kept: Vec<&str> = Vec::new();
    for (line, counted) in counted_lines(document, rule) {
        deleted.lines_in += u64::from(counted);
        if counted && repeated.0.contains(&line_hash(line)) {
            deleted.lines += 1;
            deleted.bytes += line.len() as u64 + 1;
            deleted.example.get_or_insert_with(|| line.to_owned());
            continue;
        }
        let second_blank =
            deleted.lines > 0 && line.is_empty() && kept.last().is_none_or(|last| last.is_empty());
        // The dashes under a table's header go with the header.
        let headless = deleted.lines > 0
            && line.starts_with("|---")
            && kept.last().is_none_or(|last| last.is_empty());
        if !second_blank && !headless {
            kept.push(line);
        }
    }
    if deleted.lines > 0 {
        deleted.text = Some(kept.join("\n").trim_matches('\n').to_owned());
    }
    deleted
}

/// The lines of a document, and whether the rule looks at each.
fn counted_lines<'a>(
    document: &'a Document,
    rule: &LineRule,
) -> impl Iterator<Item = (&'a str, bool)> {
    let exempt = |what| rule.exempt.contains(&what);
    let code = document.category == Category::Code && exempt(Exempt::CodeDocuments);
    let math = document.category == Category::Math && exempt(Exempt::MathDocuments);
    let whole = code || math || rule.max_repeats == 0;
    let (fenced, blank, headings) =
        (exempt(Exempt::FencedCode), exempt(Exempt::BlankLines), exempt(Exempt::Headings));
    lines(&document.text).map(move |(line, kind)| {
        let spared = match kind {
            LineKind::Prose => false,
            LineKind::Heading => headings,
            LineKind::Blank => blank,
            LineKind::Fenced => fenced,
        };
        (line, !whole && !spared)
    })
}

fn line_hash(line: &str) -> u64 {
    Digest::of_bytes(line.trim().as_bytes()).prefix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Split;

    fn document(text: &str, category: Category) -> Document {
        Document {
            id: String::new(),
            source: String::new(),
            url: String::new(),
            category,
            language: "en".into(),
            licence: String::new(),
            fetched: 0,
            split: Split::Train,
            title: String::new(),
            text: text.into(),
        }
    }

    fn after(documents: &[Document], rule: &LineRule) -> Vec<String> {
        let mut counts = LineCounts::default();
        documents.iter().for_each(|d| counts.count(d, rule));
        let repeated = counts.repeated(rule);
        let text =
            |d: &Document| delete_lines(d, &repeated, rule).text.unwrap_or_else(|| d.text.clone());
        documents.iter().map(text).collect()
    }

    #[test]
    fn six_times_stay_and_seven_go() {
        let rule = LineRule::default();
        let with = |n: usize| -> Vec<Document> {
            (0..n)
                .map(|i| document(&format!("own {i}\n\n  Home \n\nend {i}"), Category::General))
                .collect()
        };
        assert_eq!(after(&with(6), &rule)[0], "own 0\n\n  Home \n\nend 0");
        assert_eq!(after(&with(7), &rule)[3], "own 3\n\nend 3");
    }

    #[test]
    fn repeats_inside_one_document_count() {
        let text = after(
            &[document("a\n\n\n\na\na\na\na\na\na\nb", Category::General)],
            &LineRule::default(),
        );
        assert_eq!(text, ["b"]);
    }

    #[test]
    fn a_tables_dashes_go_with_its_header() {
        let table =
            |i: usize| document(&format!("a {i}\n\n| h |\n|---|\n| {i} |"), Category::General);
        let documents: Vec<Document> = (0..7).map(table).collect();
        assert_eq!(after(&documents, &LineRule::default())[2], "a 2\n\n| 2 |");
    }

    #[test]
    fn exemptions_are_settings() {
        let text = "# H\n\n```\nx\n```\np".to_owned();
        let documents: Vec<Document> = (0..8).map(|_| document(&text, Category::General)).collect();
        let rule = LineRule::default();
        assert_eq!(after(&documents, &rule)[0], "```\nx\n```");
        let sparing = LineRule {
            exempt: vec![Exempt::Headings, Exempt::FencedCode, Exempt::BlankLines],
            ..rule.clone()
        };
        assert_eq!(after(&documents, &sparing)[0], "# H\n\n```\nx\n```");
        let bare = LineRule { exempt: vec![], ..rule.clone() };
        assert_eq!(after(&documents, &bare)[0], "");
        let code: Vec<Document> = (0..8).map(|_| document("fn a() {}", Category::Code)).collect();
        assert_eq!(after(&code, &rule)[0], "fn a() {}");
        assert_eq!(after(&code, &bare)[0], "");
        let off = LineRule { max_repeats: 0, ..bare };
        assert_eq!(after(&code, &off)[0], "fn a() {}");
    }
}
