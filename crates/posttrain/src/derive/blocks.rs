//! A cleaned document cut into headings, paragraphs and fenced code, and prose cut into sentences.

/// One block of a Markdown-like text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// A line that starts with `#`, without the marks.
    Heading(String),
    /// Prose or a list entry, on one line.
    Paragraph(String),
    /// Fenced code with the language that the fence names, empty where it names none.
    Fence { language: String, code: String },
}

/// Cuts a text into blocks. A fence that is never closed ends with the text.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut paragraph = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if let Some(info) = trimmed.strip_prefix("```") {
            flush(&mut paragraph, &mut found);
            let code: Vec<&str> =
                lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
            found.push(Block::Fence { language: fence_language(info), code: code.join("\n") });
        } else if let Some(heading) = heading(trimmed) {
            flush(&mut paragraph, &mut found);
            found.push(Block::Heading(heading.to_owned()));
        } else if trimmed.is_empty() {
            flush(&mut paragraph, &mut found);
        } else {
            if is_list_entry(trimmed) {
                flush(&mut paragraph, &mut found);
            }
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(trimmed);
        }
    }
    flush(&mut paragraph, &mut found);
    found
}

fn flush(paragraph: &mut String, found: &mut Vec<Block>) {
    if !paragraph.is_empty() {
        found.push(Block::Paragraph(std::mem::take(paragraph)));
    }
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let text = rest.strip_prefix(' ')?.trim_matches(|c: char| c == '§' || c.is_whitespace());
    ((1..=6).contains(&level) && !text.is_empty()).then_some(text)
}

fn is_list_entry(line: &str) -> bool {
    line.starts_with("- ") || line.starts_with("* ")
}

/// The language of an info string such as `rust,ignore` or `{.toml}`.
fn fence_language(info: &str) -> String {
    let first = info.split([',', ' ', '{', '}']).find(|word| !word.is_empty()).unwrap_or_default();
    first.trim_start_matches('.').to_ascii_lowercase()
}

/// Words after which a full stop ends no sentence.
const ABBREVIATIONS: [&str; 7] = ["e.g.", "i.e.", "etc.", "vs.", "cf.", "no.", "approx."];

/// Cuts a paragraph into sentences. A full stop ends one where a space and no small letter follows,
/// outside backticks and not after an abbreviation.
pub(crate) fn sentences(paragraph: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    for (position, character) in paragraph.char_indices() {
        in_code ^= character == '`';
        if in_code || !matches!(character, '.' | '!' | '?') {
            continue;
        }
        let end = position + character.len_utf8();
        let rest = &paragraph[end..];
        let next = rest.trim_start().chars().next();
        let spaced = rest.is_empty() || rest.starts_with(' ');
        let last = paragraph[start..end].rsplit(' ').next().unwrap_or_default();
        let abbreviated =
            ABBREVIATIONS.contains(&last.trim_start_matches('(').to_lowercase().as_str());
        if spaced && !abbreviated && !next.is_some_and(char::is_lowercase) {
            found.push(paragraph[start..end].trim());
            start = end;
        }
    }
    if !paragraph[start..].trim().is_empty() {
        found.push(paragraph[start..].trim());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_into_its_blocks() {
        let text =
            "# Title §\nOne\ntwo.\n\n- a\n- b\n```rust,ignore\nfn f() {\n\n}\n```\n#not\n```\nopen";
        let fence = |language: &str, code: &str| Block::Fence {
            language: language.into(),
            code: code.into(),
        };
        let expected = [
            Block::Heading("Title".into()),
            Block::Paragraph("One two.".into()),
            Block::Paragraph("- a".into()),
            Block::Paragraph("- b".into()),
            fence("rust", "fn f() {\n\n}"),
            Block::Paragraph("#not".into()),
            fence("", "open"),
        ];
        assert_eq!(blocks(text), expected);
    }

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        let check = |text: &str, expected: &[&str]| assert_eq!(sentences(text), expected, "{text}");
        check("One. Two! Three?", &["One.", "Two!", "Three?"]);
        check("See `a. B` here. Yes", &["See `a. B` here.", "Yes"]);
        check(
            "Types, e.g. Vec, grow. Version 1.0 is out.",
            &["Types, e.g. Vec, grow.", "Version 1.0 is out."],
        );
        check("Call x.len() now. it goes on.", &["Call x.len() now. it goes on."]);
        check("", &[]);
        check("Ünï. Ça va.", &["Ünï.", "Ça va."]);
    }
}
