//! Gopher's quality rules (arXiv 2112.11446, table A1), on the prose of a document.

use super::Verdict;
use crate::lines::{LineKind, lines};
use crate::settings::ProseRules;

const STOP_WORDS: [&str; 8] = ["the", "be", "to", "of", "and", "that", "have", "with"];

/// The first rule that the text breaks. `is_english` turns the rule of stop words on.
pub(super) fn judge(text: &str, is_english: bool, rules: &ProseRules) -> Option<Verdict> {
    if let Some(verdict) = judge_words(text, rules) {
        return Some(verdict);
    }
    let measured = Measured::of(text);
    let mean = ratio(measured.characters, measured.words);
    if mean < rules.min_mean_word_length || mean > rules.max_mean_word_length {
        return Some(("word-length", format!("words of {mean:.1} characters on average")));
    }
    let symbols = ratio(measured.symbols, measured.words);
    if symbols > rules.max_symbols_per_word {
        return Some(("symbols", format!("{symbols:.2} symbols a word")));
    }
    let bullets = ratio(measured.bullet_lines, measured.lines);
    if bullets > rules.max_bullet_lines {
        return Some(("bullet-lines", format!("{bullets:.2} of the lines begin with a bullet")));
    }
    let ellipses = ratio(measured.ellipsis_lines, measured.lines);
    if ellipses > rules.max_ellipsis_lines {
        return Some(("ellipsis-lines", format!("{ellipses:.2} of the lines end in an ellipsis")));
    }
    let alphabetic = ratio(measured.alphabetic_words, measured.words);
    if alphabetic < rules.min_alphabetic_words {
        return Some(("alphabetic-words", format!("{alphabetic:.2} of the words have a letter")));
    }
    let stop_words = measured.stop_words.iter().filter(|&&found| found).count() as u64;
    (is_english && stop_words < rules.min_stop_words)
        .then(|| ("stop-words", format!("{stop_words} different stop words")))
}

/// The rule of size alone.
pub(super) fn judge_words(text: &str, rules: &ProseRules) -> Option<Verdict> {
    let words = text.split_whitespace().count() as u64;
    let fine = (rules.min_words..=rules.max_words).contains(&words);
    (!fine).then(|| ("words", format!("{words} words")))
}

#[derive(Default)]
struct Measured {
    words: u64,
    characters: u64,
    symbols: u64,
    alphabetic_words: u64,
    stop_words: [bool; 8],
    lines: u64,
    bullet_lines: u64,
    ellipsis_lines: u64,
}

impl Measured {
    /// Measures the lines outside fenced code; headings without their `#`.
    fn of(text: &str) -> Self {
        let mut measured = Self::default();
        for (line, kind) in lines(text) {
            match kind {
                LineKind::Prose => measured.line(line),
                LineKind::Heading => measured.line(line.trim_start_matches('#')),
                LineKind::Blank | LineKind::Fenced => {}
            }
        }
        measured
    }

    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        self.lines += 1;
        self.bullet_lines += u64::from(trimmed.starts_with(['-', '*', '•', '●', '‣']));
        self.ellipsis_lines += u64::from(trimmed.ends_with("...") || trimmed.ends_with('…'));
        self.symbols += trimmed.matches("...").count() as u64;
        self.symbols += trimmed.chars().filter(|c| matches!(c, '#' | '…')).count() as u64;
        for word in
            trimmed.split_whitespace().filter(|word| !matches!(*word, "|" | "-" | "*" | ">"))
        {
            self.words += 1;
            self.characters += word.chars().count() as u64;
            self.alphabetic_words += u64::from(word.chars().any(char::is_alphabetic));
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            if let Some(i) = STOP_WORDS.iter().position(|stop| bare.eq_ignore_ascii_case(stop)) {
                self.stop_words[i] = true;
            }
        }
    }
}

/// A share; 0 of nothing is 0, so a document without any prose has too short words.
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let verdict = judge(text, true, &ProseRules::default());
        assert_eq!(
            verdict.as_ref().map(|(rule, _)| *rule),
            expected,
            "{verdict:?} {}",
            &text[..text.len().min(60)]
        );
    }

    const GOOD: &str =
        "The function returns the number of elements that have been read and is fine to use.\n";

    #[test]
    fn each_rule_drops_what_it_is_for() {
        check(&GOOD.repeat(5), None);
        check(GOOD, Some("words"));
        check(&"of to ".repeat(50_001), Some("words"));
        check(&"of to a b ".repeat(30), Some("word-length"));
        check(
            &"the incomprehensibilities of counterrevolutionaries ".repeat(30),
            Some("word-length"),
        );
        check(&"the lanterns ... and # of their ".repeat(20), Some("symbols"));
        check(&format!("- {GOOD}").repeat(5), Some("bullet-lines"));
        check(&format!("{}...\n", GOOD.trim()).repeat(5), Some("ellipsis-lines"));
        check(&"the 1234 5678 and of 1234 9876 ".repeat(20), Some("alphabetic-words"));
        check(&"Wort reiht sich ohne Sinn daran weiter ".repeat(20), Some("stop-words"));
        assert_eq!(
            judge(
                &"Wort reiht sich ohne Sinn daran weiter ".repeat(20),
                false,
                &ProseRules::default()
            ),
            None
        );
    }

    #[test]
    fn fenced_code_is_no_prose() {
        let code = "```rust\nlet a = 1; // ...\n# { } = 5\n```\n".repeat(20);
        check(&format!("{}{code}", GOOD.repeat(2)), None);
    }
}
