//! Telling the lines of a Markdown-like text apart.

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A line of prose.
    Prose,
    /// A heading: one to six `#` and a space.
    Heading,
    /// A line without a letter or a digit.
    Blank,
    /// A line of a fenced block, the fences included.
    Fenced,
}

/// The lines of a text with their kinds. A fence is closed by a fence at least as long and without a
/// language (CommonMark, section 4.5), or by the end of the text.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (&str, LineKind)> {
    let mut open: Option<usize> = None;
    text.split('\n').map(move |line| {
        let ticks = fence(line);
        let kind = match (open, ticks) {
            (None, Some((length, _))) => {
                open = Some(length);
                LineKind::Fenced
            }
            (Some(opened), Some((length, bare))) if bare && length >= opened => {
                open = None;
                LineKind::Fenced
            }
            (Some(_), _) => LineKind::Fenced,
            (None, None) => plain(line),
        };
        (line, kind)
    })
}

/// The number of backticks that a line begins with and whether nothing follows them.
fn fence(line: &str) -> Option<(usize, bool)> {
    let line = line.trim_start().trim_start_matches("> ").trim_start();
    let line = line.strip_prefix("- ").unwrap_or(line).trim_start();
    let length = line.bytes().take_while(|&b| b == b'`').count();
    let rest = &line[length..];
    (length >= 3 && !rest.contains('`')).then(|| (length, rest.trim().is_empty()))
}

fn plain(line: &str) -> LineKind {
    let hashes = line.bytes().take_while(|&b| b == b'#').count();
    if (1..=6).contains(&hashes) && line[hashes..].starts_with(' ') {
        LineKind::Heading
    } else if line.chars().any(char::is_alphanumeric) {
        LineKind::Prose
    } else {
        LineKind::Blank
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LineKind::{Blank, Fenced, Heading, Prose};

    #[test]
    fn kinds_follow_the_fences() {
        let check = |text: &str, expected: &[LineKind]| {
            let kinds: Vec<LineKind> = lines(text).map(|(_, kind)| kind).collect();
            assert_eq!(kinds, expected, "{text:?}");
        };
        check("# A\n\nb", &[Heading, Blank, Prose]);
        check("```rust\n# a\n\n```\nb", &[Fenced, Fenced, Fenced, Fenced, Prose]);
        check("````\n```\n````\n#b", &[Fenced, Fenced, Fenced, Prose]);
        check("```\nnever closed", &[Fenced, Fenced]);
        check("- ```\n  a\n  ```\nb", &[Fenced, Fenced, Fenced, Prose]);
        check("`a` ``b`` ```c```", &[Prose]);
        check("|---|", &[Blank]);
    }
}
