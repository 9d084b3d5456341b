//! A world small enough for tests: a tokenizer of a few merges, a model of two thin layers, and items
//! whose answers are copied from their prompts.
#![allow(clippy::unwrap_used, dead_code)]

use base::{Item, Seed, Silent, Split, Stop};
use kernels::Pool;
use model::{ModelConfig, Weights};
use posttrain::Encoder;
use std::path::Path;
use std::sync::Arc;
use tokens::{ChatTemplate, Tokenizer, TokenizerSettings};
use train::Context;

pub const WORDS: [&str; 8] = ["red", "blue", "green", "gold", "grey", "pink", "teal", "plum"];

pub struct World {
    pub tokenizer: Tokenizer,
    pub template: ChatTemplate,
    pub config: ModelConfig,
}

impl World {
    pub fn new() -> Self {
        let settings = TokenizerSettings { vocab_size: 320, ..TokenizerSettings::default() };
        let sample = [format!("the colour is {} which colour is it ", WORDS.join(" ")).repeat(30)];
        let tokenizer = Tokenizer::train(&settings, &sample, 1, &Silent, &Stop::new()).unwrap();
        let config = ModelConfig::from_depth(0, tokenizer.vocab_size(), 96);
        Self { tokenizer, template: ChatTemplate::default(), config }
    }

    pub fn encoder(&self) -> Encoder<'_> {
        let max_seq_len = self.config.max_seq_len;
        Encoder { tokenizer: &self.tokenizer, template: &self.template, max_seq_len }
    }

    pub fn weights(&self) -> Weights {
        Weights::init(&self.config, Seed(11)).unwrap()
    }

    /// `red\nwhich colour?` is answered by `red`.
    pub fn items(&self, count: usize, split: Split) -> Vec<Item> {
        let item = |i: usize| {
            let answer = WORDS[i % WORDS.len()];
            Item {
                id: format!("{split:?}/{i}"),
                task: "colour".into(),
                subject: format!("{i}"),
                split,
                prompt: format!("the colour is {answer}\n\nwhich colour is it {}", i / WORDS.len()),
                answer: answer.into(),
            }
        };
        (0..count).map(item).collect()
    }
}

pub fn context<'a>(directory: &'a Path, threads: usize, stop: &'a Stop) -> Context<'a> {
    Context { directory, pool: Arc::new(Pool::new(threads)), observer: &Silent, stop }
}
