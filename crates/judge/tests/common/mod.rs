//! A subject whose answers are written beforehand.

use base::{Digest, Stop};
use judge::{Answer, Ask, Error, Finish, Prompt, Sampling, Subject};

/// Answers by a function of the prompt's last text, and scores by another.
pub struct Scripted<'a> {
    pub name: &'a str,
    pub answer: &'a dyn Fn(&str) -> String,
    pub score: &'a dyn Fn(&str) -> f64,
    /// How many prompts were answered.
    pub asked: usize,
    /// How many texts were scored.
    pub scored: usize,
    /// Raises the stop once this many prompts were answered.
    pub stop_after: Option<usize>,
}

impl<'a> Scripted<'a> {
    pub fn new(name: &'a str, answer: &'a dyn Fn(&str) -> String) -> Self {
        Self { name, answer, score: &|_| -1.0, asked: 0, scored: 0, stop_after: None }
    }
}

/// The text that a prompt ends with.
pub fn last_text(prompt: &Prompt) -> &str {
    match prompt {
        Prompt::Text { text } => text,
        Prompt::Chat { messages } => messages.last().map_or("", |message| &message.content),
    }
}

impl Subject for Scripted<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn digest(&self) -> Digest {
        Digest::of_bytes(self.name.as_bytes())
    }

    fn ask(&mut self, asks: &[Ask], _: &Sampling, stop: &Stop) -> Result<Vec<Answer>, Error> {
        self.asked += asks.len();
        if self.stop_after.is_some_and(|limit| self.asked >= limit) {
            stop.raise();
        }
        let answer = |ask: &Ask| Answer {
            item: ask.item.clone(),
            text: (self.answer)(last_text(&ask.prompt)),
            token_ids: Vec::new(),
            specials: Vec::new(),
            finish: Finish::Stop,
        };
        Ok(asks.iter().map(answer).collect())
    }

    fn log_probs(&mut self, texts: &[String], _: &Stop) -> Result<Vec<f64>, Error> {
        self.scored += texts.len();
        Ok(texts.iter().map(|text| (self.score)(text)).collect())
    }
}
