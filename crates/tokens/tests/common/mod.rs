//! Texts and documents that the tests share.
#![allow(dead_code, clippy::unwrap_used)]

use base::{Category, Document, Seed, Silent, Split, Stop};
use std::io::Error;
use tokens::{Tokenizer, TokenizerSettings};

/// Prose of words drawn from a small vocabulary, with some code, numbers and other scripts.
pub fn text(seed: u64, words: usize) -> String {
    const WORDS: [&str; 24] = [
        "the", "borrow", "checker", "lifetime", "of", "a", "vector", "returns", "Option", "None",
        "panics", "if", "index", "is", "out", "bounds", "it's", "naïve", "漢字", "🦀", "let", "x",
        "fn", "don't",
    ];
    const ENDS: [&str; 8] = [" ", " ", " ", " ", ", ", ".\n", "::", "();\n    "];
    let mut rng = Seed(seed).rng();
    let mut text = String::new();
    for _ in 0..words {
        match rng.below(12) {
            0 => text.push_str(&rng.below(100_000).to_string()),
            _ => text.push_str(rng.choose(&WORDS).unwrap()),
        }
        text.push_str(rng.choose(&ENDS).unwrap());
    }
    text
}

pub fn texts(count: u64) -> Vec<String> {
    (0..count).map(|i| text(i, 50 + (i as usize * 37) % 400)).collect()
}

pub fn tokenizer() -> Tokenizer {
    let settings = TokenizerSettings { vocab_size: 500, ..TokenizerSettings::default() };
    Tokenizer::train(&settings, &texts(40), 2, &Silent, &Stop::new()).unwrap()
}

pub fn document(id: &str, category: Category, split: Split, text: String) -> Document {
    Document {
        id: id.to_owned(),
        source: "test".to_owned(),
        url: format!("{id}.txt"),
        category,
        language: "en".to_owned(),
        licence: String::new(),
        fetched: 0,
        split,
        title: String::new(),
        text,
    }
}

/// 60 documents: two thirds prose, some mathematics and code; every tenth is held out.
pub fn documents() -> Vec<Document> {
    (0..60)
        .map(|i| {
            let category = [Category::General, Category::General, Category::Code][i % 3];
            let category = if i % 7 == 0 { Category::Math } else { category };
            let split = if i % 10 == 3 { Split::HeldOut } else { Split::Train };
            document(&format!("d{i}"), category, split, text(i as u64, 30 + i * 11 % 170))
        })
        .collect()
}

pub fn ok(documents: Vec<Document>) -> impl Iterator<Item = Result<Document, Error>> {
    documents.into_iter().map(Ok)
}
