//! Held-out documents that training documents repeat. What stands on both sides of the split measures memory
//! and not learning, so such documents are trained on instead.
//!
//! A document is looked at as its runs of [`WORDS`] words. Memory grows with the held-out side alone.

use base::Document;
use std::collections::HashSet;

/// Words in a run.
const WORDS: usize = 8;

/// Digests of all runs of words of a text, in order.
pub(crate) fn runs(text: &str) -> Vec<u64> {
    let words: Vec<u64> = text.split_whitespace().map(word).collect();
    words.windows(WORDS).map(mix).collect()
}

/// FNV-1a (Fowler, Noll and Vo), 64 bits.
fn word(word: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    word.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn mix(words: &[u64]) -> u64 {
    let step =
        |hash: u64, word: &u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    words.iter().fold(0, step)
}

/// The runs of the held-out documents, and those of them that training documents have too.
#[derive(Default)]
pub(crate) struct Overlap {
    held_out: HashSet<u64>,
    seen: HashSet<u64>,
}

impl Overlap {
    /// Takes a held-out document.
    pub fn hold_out(&mut self, document: &Document) {
        self.held_out.extend(runs(&document.text));
    }

    /// The runs of a training document that held-out ones have too.
    pub fn common(&self, document: &Document) -> Vec<u64> {
        let mut common = runs(&document.text);
        common.retain(|run| self.held_out.contains(run));
        common
    }

    /// Marks runs as seen in training.
    pub fn see(&mut self, runs: Vec<u64>) {
        self.seen.extend(runs);
    }

    /// Share of a document's runs that were seen in training; 0 for a text without runs.
    pub fn share(&self, document: &Document) -> f64 {
        let runs = runs(&document.text);
        let seen = runs.iter().filter(|run| self.seen.contains(run)).count();
        seen as f64 / runs.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Category, Split};

    fn document(text: &str) -> Document {
        Document {
            id: String::new(),
            source: String::new(),
            url: String::new(),
            category: Category::General,
            language: "en".into(),
            licence: String::new(),
            fetched: 0,
            split: Split::Train,
            title: String::new(),
            text: text.to_owned(),
        }
    }

    fn check(held_out: &str, train: &str, expected: f64) {
        let mut overlap = Overlap::default();
        overlap.hold_out(&document(held_out));
        let common = overlap.common(&document(train));
        overlap.see(common);
        assert_eq!(overlap.share(&document(held_out)), expected);
    }

    #[test]
    fn shares_count_runs_of_eight_words() {
        check("a b c d e f g h", "x a b  c d\ne f g h y", 1.0);
        check("a b c d e f g h i", "a b c d e f g h", 0.5);
        check("a b c d e f g h", "a b c d e f g x h", 0.0);
        check("a b c", "a b c", 0.0);
        check("", "a b c d e f g h", 0.0);
    }
}
