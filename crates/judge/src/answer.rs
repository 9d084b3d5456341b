//! Asking a model: prompts in, answers out. Everything that judges by answers goes through
//! [`answers`], whether the model is one of ours ([`crate::Model`]) or another [`Subject`].

use crate::Error;
use base::{Digest, Item, Message, Observer, Progress, Role, Seed, Stop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many prompts are given to the subject at once: between two such chunks the work can be stopped.
const CHUNK: usize = 64;

/// How answers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Sampling {
    /// Temperature; 0 takes the most probable token each time (greedy).
    pub temperature: f32,
    /// Draw among this many most probable tokens; among all when left out.
    pub top_k: Option<usize>,
    /// Draw among the most probable tokens that together have this probability.
    pub top_p: f32,
    /// Longest answer, in tokens.
    pub max_new_tokens: usize,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: None, top_p: 1.0, max_new_tokens: 128 }
    }
}

/// What the model is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Prompt {
    /// Turns of a conversation, rendered with the chat template; the model writes the next one.
    Chat {
        /// The turns.
        messages: Vec<Message>,
    },
    /// The beginning of a document, without a template; the model goes on with it.
    Text {
        /// The beginning.
        text: String,
    },
}

impl Prompt {
    /// A user's message, after a system prompt if there is one.
    pub fn user(system: Option<&str>, content: impl Into<String>) -> Self {
        let system = system.map(|system| Message::new(Role::System, system));
        let user = Message::new(Role::User, content);
        Self::Chat { messages: system.into_iter().chain([user]).collect() }
    }
}

/// One prompt to be answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// What is asked: an item's id, or a name unique in the list.
    pub item: String,
    /// The prompt.
    pub prompt: Prompt,
    /// Where the random numbers of this answer start.
    pub seed: Seed,
}

impl Ask {
    /// The ask of an item; its seed depends on the item's id alone, not on its place in a list.
    pub fn of_item(item: &Item, system: Option<&str>, seed: Seed) -> Self {
        let prompt = Prompt::user(system, &item.prompt);
        Self { item: item.id.clone(), prompt, seed: seed.derive(&item.id) }
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The model ended it.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The prompt left no room in the model's context, so there is no answer.
    TooLong,
}

/// What the model wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What was asked.
    pub item: String,
    /// The text, without special tokens.
    pub text: String,
    /// The tokens, without the one that ended the answer.
    pub token_ids: Vec<u32>,
    /// Special tokens inside the answer (not the one that ended it), by name.
    pub specials: Vec<String>,
    /// Why it ended.
    pub finish: Finish,
}

/// Something that answers prompts and scores texts.
pub trait Subject {
    /// The model's name in reports: `base`, `sft`, `aligned`…
    fn name(&self) -> &str;

    /// Digest of all that decides its answers but prompt, sampling and seed.
    fn digest(&self) -> Digest;

    /// Answers a chunk of prompts, in order. An answer depends on its own ask alone.
    ///
    /// # Errors
    /// The subject cannot answer, or the work was stopped.
    fn ask(&mut self, asks: &[Ask], sampling: &Sampling, stop: &Stop)
    -> Result<Vec<Answer>, Error>;

    /// Log-probability, in nats, of each text as the beginning of a document.
    ///
    /// # Errors
    /// The subject cannot score, or the work was stopped.
    fn log_probs(&mut self, texts: &[String], stop: &Stop) -> Result<Vec<f64>, Error>;
}

/// Answers all prompts, in order, in chunks, with progress in the unit `answers`.
///
/// # Errors
/// The subject cannot answer, or the work was stopped.
pub fn answers(
    subject: &mut dyn Subject,
    asks: &[Ask],
    sampling: &Sampling,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Vec<Answer>, Error> {
    let mut out = Vec::with_capacity(asks.len());
    for chunk in asks.chunks(CHUNK) {
        stop.check()?;
        out.extend(subject.ask(chunk, sampling, stop)?);
        observer.progress(Progress {
            done: out.len() as u64,
            total: Some(asks.len() as u64),
            unit: "answers",
            detail: subject.name().to_owned(),
        });
    }
    Ok(out)
}
