//! Entries of an interface's documentation: a signature, what it does, and what may go wrong.

use super::blocks::{Block, sentences};
use base::Document;

/// A function, method or macro as its page describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// `Vec::with_capacity`: the page's type or module, and the name.
    pub path: String,
    /// `with_capacity`.
    pub name: String,
    /// `(capacity: usize)`.
    pub arguments: String,
    /// `Vec<T>`, empty where nothing is returned.
    pub returns: String,
    /// The first sentence about it.
    pub purpose: String,
    /// The first sentence on panics or errors, empty where there is none.
    pub failure: String,
}

impl Entry {
    /// `Vec::with_capacity(capacity: usize) -> Vec<T>`.
    pub fn signature(&self) -> String {
        let Self { path, arguments, returns, .. } = self;
        if returns.is_empty() {
            format!("{path}{arguments}")
        } else {
            format!("{path}{arguments} -> {returns}")
        }
    }

    /// The passage that questions quote: signature, purpose and failure, a line each.
    pub fn passage(&self) -> String {
        let mut passage = format!("{}\n{}", self.signature(), self.purpose);
        if !self.failure.is_empty() {
            passage.push('\n');
            passage.push_str(&self.failure);
        }
        passage
    }
}

/// The entries of a page, in order. An entry runs from its signature to the next one.
pub(crate) fn entries(document: &Document, blocks: &[Block]) -> Vec<Entry> {
    let Some(owner) = owner(document) else { return Vec::new() };
    let mut found: Vec<Entry> = Vec::new();
    let mut open = false;
    for block in blocks {
        if let Some((name, arguments, returns)) = signature_of(block) {
            let path = if name == owner { name.clone() } else { format!("{owner}::{name}") };
            let (purpose, failure) = (String::new(), String::new());
            found.push(Entry { path, name, arguments, returns, purpose, failure });
            open = true;
            continue;
        }
        match (block, found.last_mut()) {
            (Block::Paragraph(text), Some(entry)) if open => read_paragraph(entry, text),
            // A heading that is not part of an entry's own documentation ends it.
            (Block::Heading(text), _) if !is_inner_heading(text) => open = false,
            _ => {}
        }
    }
    found.retain(|entry| !entry.purpose.is_empty());
    found
}

fn read_paragraph(entry: &mut Entry, text: &str) {
    for (position, sentence) in sentences(text).into_iter().enumerate() {
        if is_failure(sentence) {
            if entry.failure.is_empty() {
                entry.failure = sentence.to_owned();
            }
        } else if position == 0
            && entry.purpose.is_empty()
            && entry.failure.is_empty()
            && sentence.ends_with('.')
        {
            entry.purpose = sentence.to_owned();
        }
    }
}

/// Whether a sentence says what may go wrong. The headings `Panics` and `Errors` are on so many pages
/// that line deduplication may have taken them, so the sentence must speak for itself.
fn is_failure(sentence: &str) -> bool {
    const SIGNS: [&str; 11] = [
        "Panics ",
        " panics",
        "will panic",
        "ay panic",
        "can panic",
        "might panic",
        "undefined behavior",
        "return an error",
        "eturns an error",
        "`Err` if",
        "`Err` is returned",
    ];
    // What never happens is no failure.
    let denied = [" never ", " not panic", "n’t panic", "instead of panicking"];
    SIGNS.iter().any(|sign| sentence.contains(sign))
        && !denied.iter().any(|denial| sentence.contains(denial))
        && sentence.ends_with('.')
}

fn is_inner_heading(text: &str) -> bool {
    const INNER: [&str; 5] = ["Panics", "Errors", "Examples", "Example", "Safety"];
    INNER.contains(&text)
}

/// The type or module that a page is about: `struct.Vec.html` gives `Vec`, `mem/fn.swap.html` gives
/// `mem`; pages that are not of rustdoc's naming give nothing.
fn owner(document: &Document) -> Option<String> {
    let mut parts = document.url.rsplit('/');
    let file = parts.next()?;
    let directory = parts.next();
    let mut words = file.split('.');
    let (kind, name) = (words.next()?, words.next()?);
    match kind {
        "struct" | "enum" | "trait" | "union" | "primitive" | "type" => Some(name.to_owned()),
        "fn" => directory.map(str::to_owned),
        _ => None,
    }
}

/// Name, arguments and return type of a block that is a function's signature: a heading or a fence of
/// one declaration.
fn signature_of(block: &Block) -> Option<(String, String, String)> {
    match block {
        Block::Heading(text) => signature(text),
        Block::Fence { language, code } if language.is_empty() || language == "rust" => {
            let declares =
                code.trim_start().starts_with("pub ") || code.trim_start().starts_with("fn ");
            (declares && !code.contains('{') && !code.contains(';')).then(|| signature(code))?
        }
        _ => None,
    }
}

/// Reads `pub const fn name<T>(arguments) -> Type where …`.
pub(crate) fn signature(text: &str) -> Option<(String, String, String)> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "");
    let start = if text.starts_with("fn ") { 0 } else { text.find(" fn ")? + 1 };
    const BEFORE: [&str; 6] = ["pub", "const", "unsafe", "async", "extern", "\"C\""];
    if !text[..start].split_whitespace().all(|word| BEFORE.contains(&word)) {
        return None;
    }
    let rest = &text[start + 3..];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, rest) = rest.split_at(end);
    let rest = if rest.starts_with('<') { rest.get(balanced(rest, '<', '>')?..)? } else { rest };
    if name.is_empty() || !rest.starts_with('(') {
        return None;
    }
    let (arguments, rest) = rest.split_at(balanced(rest, '(', ')')?);
    let arguments = arguments.replace(", )", ")").replace("( ", "(").replace(",)", ")");
    let returns = rest.trim_start().strip_prefix("->").unwrap_or_default();
    let returns = returns.split(" where").next().unwrap_or_default();
    let returns = returns.trim_matches([' ', '{', ';', ',']);
    Some((name.to_owned(), arguments, returns.to_owned()))
}

/// Length of the bracketed text at the start. `->` closes no angle bracket.
fn balanced(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0usize;
    let mut previous = ' ';
    for (position, character) in text.char_indices() {
        if character == open {
            depth += 1;
        } else if character == close && !(close == '>' && previous == '-') {
            depth -= 1;
            if depth == 0 {
                return Some(position + character.len_utf8());
            }
        }
        previous = character;
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::blocks::blocks;
    use super::*;
    use base::{Category, Split};

    pub(crate) fn document(url: &str, text: &str) -> Document {
        Document {
            id: url.into(),
            source: "test".into(),
            url: url.into(),
            category: Category::General,
            language: "en".into(),
            licence: "MIT".into(),
            fetched: 0,
            split: Split::Train,
            title: String::new(),
            text: text.into(),
        }
    }

    #[test]
    fn signatures_are_read_part_by_part() {
        let check = |text: &str, expected: Option<(&str, &str, &str)>| {
            let found = signature(text);
            let found = found.as_ref().map(|(n, a, r)| (n.as_str(), a.as_str(), r.as_str()));
            assert_eq!(found, expected, "{text}");
        };
        check("pub const fn new() -> Vec<T>", Some(("new", "()", "Vec<T>")));
        check("fn clear(&mut self)", Some(("clear", "(&mut self)", "")));
        check(
            "pub fn map<U, F: FnOnce(T) -> U>(self, f: F) -> Option<U> where F: FnOnce(T) -> U",
            Some(("map", "(self, f: F)", "Option<U>")),
        );
        check(
            "`pub unsafe fn get(\n    index: usize,\n) -> &T`",
            Some(("get", "(index: usize)", "&T")),
        );
        check("The fn keyword", None);
        check("Implementations", None);
        check("fn broken(", None);
        check("fn > odd", None);
    }

    #[test]
    fn a_page_gives_its_entries() {
        let text = "# Struct Vec\nA growable array.\n\n#### pub fn with_capacity(capacity: usize) -> Vec<T>\n\
            Constructs a new, empty `Vec<T>`. More.\n\n##### Panics\nPanics if it is too large. Also.\n\n\
            #### pub fn clear(&mut self)\nClears the vector.\n\n## Trait Implementations\nPanics if odd.\n\n\
            #### fn bare(&self)\n";
        let page = document("std/vec/struct.Vec.html", text);
        let found = entries(&page, &blocks(text));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(
            found[0].passage(),
            "Vec::with_capacity(capacity: usize) -> Vec<T>\nConstructs a new, empty `Vec<T>`.\n\
             Panics if it is too large."
        );
        assert_eq!(found[1].passage(), "Vec::clear(&mut self)\nClears the vector.");
    }

    #[test]
    fn failures_speak_for_themselves() {
        let check =
            |sentence: &str, expected| assert_eq!(is_failure(sentence), expected, "{sentence}");
        check("Panics if the index is out of bounds.", true);
        check("This function will panic if `n` is 0.", true);
        check("Calling this method with an out-of-bounds index is undefined behavior.", true);
        check("Returns an error if the file is missing.", true);
        check("This function will return an error if it is closed.", true);
        check("Returns `Err` if the lock is held.", true);
        check("This function never panics.", false);
        check("Returns the length.", false);
        check("Sets the panic hook.", false);
    }

    #[test]
    fn functions_belong_to_their_module_and_other_pages_to_nothing() {
        assert_eq!(owner(&document("std/mem/fn.swap.html", "")), Some("mem".into()));
        assert_eq!(owner(&document("book/ch01.html", "")), None);
        assert_eq!(owner(&document("", "")), None);
    }
}
