//! Cuts text into words, inside which merges stay.
//!
//! The pattern is Llama 3's (GPT-4's without its possessive digits, which engines disagree about):
//! contractions, letters with at most one leading other character, digits in groups of up to three,
//! punctuation with a leading space and trailing line breaks, line breaks, spaces. It is matched by hand,
//! since a regular expression with look-ahead takes most of the time of an encoder.

use regex_syntax::hir::{Class as HirClass, HirKind};
use std::sync::LazyLock;

/// The pattern as `tokenizer.json` states it.
pub const PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The words of a text, in order; together they are the text.
pub fn words(text: &str) -> Words<'_> {
    Words { rest: text }
}

/// Iterator over the words of a text.
pub struct Words<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let (word, rest) = self.rest.split_at(word_length(self.rest, first));
        self.rest = rest;
        Some(word)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Letter,
    Number,
    Space,
    LineBreak,
}

/// The class of every code point.
static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let mut classes = vec![Class::Other; 0x11_0000];
    for (pattern, class) in [(r"\p{L}", Class::Letter), (r"\p{N}", Class::Number)] {
        let parsed = regex_syntax::parse(pattern).map(|hir| hir.into_kind());
        if let Ok(HirKind::Class(HirClass::Unicode(ranges))) = parsed {
            for range in ranges.iter() {
                classes[range.start() as usize..=range.end() as usize].fill(class);
            }
        }
    }
    for character in (0..0x3001).filter_map(char::from_u32).filter(|c| c.is_whitespace()) {
        classes[character as usize] = Class::Space;
    }
    classes[usize::from(b'\r')] = Class::LineBreak;
    classes[usize::from(b'\n')] = Class::LineBreak;
    classes
});

fn class(character: char) -> Class {
    CLASSES[character as usize]
}

/// Bytes in the first word of `text`, which starts with `first`. The alternatives are tried in the
/// pattern's order.
fn word_length(text: &str, first: char) -> usize {
    if first == '\''
        && let Some(length) = contraction(text)
    {
        return length;
    }
    let width = first.len_utf8();
    let second = || text[width..].chars().next().map(class);
    match class(first) {
        Class::Letter => run(text, Class::Letter),
        Class::Number => text
            .chars()
            .take(3)
            .take_while(|&c| class(c) == Class::Number)
            .map(char::len_utf8)
            .sum(),
        Class::Other if second() == Some(Class::Letter) => {
            width + run(&text[width..], Class::Letter)
        }
        Class::Space if second() == Some(Class::Letter) => {
            width + run(&text[width..], Class::Letter)
        }
        Class::Other => punctuation(text),
        Class::Space if first == ' ' && second() == Some(Class::Other) => {
            1 + punctuation(&text[1..])
        }
        Class::Space | Class::LineBreak => spaces(text),
    }
}

/// Bytes of the leading run of one class.
fn run(text: &str, wanted: Class) -> usize {
    text.char_indices().find(|&(_, c)| class(c) != wanted).map_or(text.len(), |(at, _)| at)
}

/// Other characters, then line breaks.
fn punctuation(text: &str) -> usize {
    let other = run(text, Class::Other);
    other + run(&text[other..], Class::LineBreak)
}

/// White space: up to the last line break of the run, or else all but the last character, which goes
/// with the word that follows.
fn spaces(text: &str) -> usize {
    let mut after_break = 0;
    let mut last = 0;
    for (at, character) in text.char_indices() {
        match class(character) {
            Class::LineBreak => after_break = at + 1,
            Class::Space => {}
            _ if after_break > 0 => return after_break,
            _ if last > 0 => return last,
            _ => return at,
        }
        last = at;
    }
    if after_break > 0 { after_break } else { text.len() }
}

/// English contractions. The regular expression ignores case as Unicode does, where U+017F, the long s,
/// is an s.
fn contraction(text: &str) -> Option<usize> {
    let mut rest = text[1..].chars();
    match rest.next()? {
        'ſ' => Some(3),
        's' | 'S' | 't' | 'T' | 'm' | 'M' | 'd' | 'D' => Some(2),
        'r' | 'R' | 'v' | 'V' => matches!(rest.next()?, 'e' | 'E').then_some(3),
        'l' | 'L' => matches!(rest.next()?, 'l' | 'L').then_some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
    use tokenizers::{
        OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior,
    };

    /// The same cut by the `tokenizers` crate with a regular expression engine.
    fn oracle(text: &str) -> Vec<String> {
        static SPLIT: LazyLock<Split> = LazyLock::new(|| {
            let pattern = SplitPattern::Regex(PATTERN.to_owned());
            Split::new(pattern, SplitDelimiterBehavior::Isolated, false).unwrap()
        });
        let mut pre = PreTokenizedString::from(text);
        SPLIT.pre_tokenize(&mut pre).unwrap();
        let splits = pre.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(word, _, _)| word.to_owned()).collect()
    }

    fn check(text: &str) {
        let ours: Vec<&str> = words(text).collect();
        assert_eq!(ours, oracle(text), "{text:?}");
        assert_eq!(ours.concat(), text);
    }

    #[test]
    fn cuts_as_the_regular_expression_does() {
        for text in [
            "",
            "Hello, world! It's 12345 o'clock; we'll see they'Re I'VE 'sup 'ſo 'l 'v '",
            "    let x = 1;\r\n\n\tfoo(bar)  \n\n  // ...\n   ",
            "a\u{a0}b \u{2028}\u{3000} c\u{85}d  ",
            "naïve Ⅳ ½ ٣٤٥٦ हिन्दी 漢字かな e\u{301}!\n\nok",
            "!!!\n\n x  !? \t y \n",
        ] {
            check(text);
        }
    }

    #[test]
    fn every_character_is_cut_alike() {
        let step = if cfg!(debug_assertions) { 97 } else { 7 };
        for character in (0..0x11_0000).step_by(step).filter_map(char::from_u32) {
            check(&format!(
                "a{character} {character}1{character}{character}'{character}\n{character}"
            ));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_alike(text in r#"([ \t\r\n'a-zſÉ0-9²!<|>_.漢\u{a0}\u{2029}]|\PC){0,60}"#) {
            check(&text);
        }
    }
}
