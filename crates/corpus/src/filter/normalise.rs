//! Text as every later rule expects it.

/// Line ends as `\n`, no byte-order mark, no control characters but line end and tab, no white space at
/// the ends of lines, at most one blank line in a row outside code. Gives the text and the number of
/// control characters removed.
pub(crate) fn normalise(text: &str, is_code: bool) -> (String, u64) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut controls = 0;
    let mut out = String::with_capacity(text.len());
    let mut blank_lines = 0;
    let mut fenced = is_code;
    for line in text.replace("\r\n", "\n").replace('\r', "\n").split('\n') {
        let start = out.len();
        let before = controls;
        let keep = |c: &char| *c == '\t' || !c.is_control();
        out.extend(line.chars().filter(|c| keep(c)));
        controls += (line.chars().count() - out[start..].chars().count()) as u64;
        debug_assert!(controls >= before);
        out.truncate(start + out[start..].trim_end().len());
        if !is_code && out[start..].trim_start().starts_with("```") {
            fenced = !fenced;
        }
        blank_lines = if out.len() == start { blank_lines + 1 } else { 0 };
        if blank_lines < 2 || fenced {
            out.push('\n');
        }
    }
    let end = out.trim_end().len();
    out.truncate(end);
    let begin = out.len() - out.trim_start_matches('\n').len();
    out.drain(..begin);
    (out, controls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_normalised() {
        let check = |text: &str, expected: &str, controls: u64| {
            assert_eq!(normalise(text, false), (expected.to_owned(), controls), "{text:?}");
        };
        check("\u{feff}a\r\nb\rc", "a\nb\nc", 0);
        check("a\0b\u{1b}[0m", "ab[0m", 2);
        check("\n\na  \n\n\n\nb\n", "a\n\nb", 0);
        check("```\na\n\n\nb\n```", "```\na\n\n\nb\n```", 0);
        check("  indented", "  indented", 0);
        assert_eq!(normalise("a\n\n\nb", true).0, "a\n\n\nb");
    }
}
