//! Questions with known answers, derived from the cleaned documents.
//!
//! Each quotes the passage that it asks about, so that a model too small to know anything can still
//! answer by reading and copying. The flow: a document is cut into [`blocks`], read as interface
//! documentation ([`api`]) or prose, asked about ([`questions`]), and a balanced choice is made
//! ([`select`]). Items are split by what they ask about, never by row.

mod api;
mod blocks;
mod questions;
mod select;
mod task;

pub use task::Task;

use crate::{Error, Result, jsonl};
use base::{Document, Item, Observer, Progress, Seed, Split, Stop};
use questions::{Candidate, Limits, Placement, candidates};
use schemars::JsonSchema;
use select::Selection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// File of the items to learn from.
pub const TRAIN_FILE: &str = "items-train.jsonl";
/// File of the items to measure with.
pub const HELD_OUT_FILE: &str = "items-held-out.jsonl";

/// Which questions are made of the documents, and how many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The kinds of question. What one cannot fill of its share goes to the others.
    pub tasks: Vec<Task>,
    /// The share of a kind relative to the others; 1 for kinds that are not named here.
    pub task_weights: BTreeMap<Task, f64>,
    /// How many items to learn from, at most.
    pub train_items: usize,
    /// How many items to measure with, at most.
    pub held_out_items: usize,
    /// Share of the subjects that is held out, 0 to 1.
    pub held_out_share: f64,
    /// Longest passage that is quoted, in words.
    pub max_passage_words: usize,
    /// Longest answer, in words.
    pub max_answer_words: usize,
    /// Most items of one task about one subject.
    pub max_per_subject: usize,
    /// Largest share of a task's items with one and the same answer, 0 to 1.
    pub max_answer_share: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tasks: Task::ALL.to_vec(),
            task_weights: BTreeMap::from([(Task::Repeat, 2.0)]),
            train_items: 8_000,
            held_out_items: 480,
            held_out_share: 0.08,
            max_passage_words: 60,
            max_answer_words: 25,
            max_per_subject: 12,
            max_answer_share: 0.4,
        }
    }
}

/// What a task had and gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TaskCounts {
    /// Candidates to learn from that passed the caps (of those kept in memory).
    pub train_available: u64,
    /// Items to learn from.
    pub train: u64,
    /// Candidates to measure with that passed the caps (of those kept in memory).
    pub held_out_available: u64,
    /// Items to measure with.
    pub held_out: u64,
}

/// What was derived, and where the other candidates went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Documents read.
    pub documents: u64,
    /// Questions found in them.
    pub candidates: u64,
    /// The same prompt again.
    pub dropped_duplicates: u64,
    /// Would have put one thing, or one passage, on both sides of the split.
    pub dropped_across_split: u64,
    /// Over the cap of their subject or answer.
    pub dropped_over_cap: u64,
    /// Far beyond what is wanted of their task.
    pub dropped_over_quota: u64,
    /// Items to learn from.
    pub train: u64,
    /// Items to measure with.
    pub held_out: u64,
    /// Counts by task.
    pub tasks: BTreeMap<String, TaskCounts>,
}

/// How the corpus drew its split: arithmetic problems that it may have read are never measured with.
#[derive(Clone, Copy, Debug)]
pub struct CorpusSplit {
    /// The corpus stage's seed.
    pub seed: Seed,
    /// The corpus stage's `held-out-share`.
    pub held_out_share: f64,
}

/// Derives items and writes them to `out` ([`TRAIN_FILE`], [`HELD_OUT_FILE`]).
///
/// The result is the same for any order of the documents.
///
/// # Errors
/// The documents' own errors are the caller's to count; here: a file cannot be written, the stop was
/// raised, or no item to learn from or to measure with is left.
pub fn derive(
    settings: &Settings,
    documents: impl IntoIterator<Item = Document>,
    corpus: CorpusSplit,
    seed: Seed,
    out: &Path,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Summary> {
    let mut selection = Selection::new(settings, seed);
    let limits = Limits {
        passage_words: settings.max_passage_words,
        answer_words: settings.max_answer_words,
    };
    let mut read = 0;
    for document in documents {
        stop.check()?;
        let found = candidates(&document, limits, seed);
        found
            .into_iter()
            .filter(|c| settings.tasks.contains(&c.task))
            .for_each(|c| selection.add(c));
        read += 1;
        let progress = Progress { done: read, unit: "documents", ..Progress::default() };
        observer.progress(progress);
    }
    if settings.tasks.contains(&Task::Arithmetic) {
        add_arithmetic(&mut selection, corpus, seed.derive("arithmetic"));
    }
    let (train, held_out, mut summary) = selection.finish();
    summary.documents = read;
    (summary.train, summary.held_out) = (train.len() as u64, held_out.len() as u64);
    if train.is_empty() || held_out.is_empty() {
        let what = if train.is_empty() { "items to learn from" } else { "held-out items" };
        let reason = format!(
            "{} documents gave {} candidates, of which {} were duplicates, {} would have crossed the \
             split and {} were over a cap",
            summary.documents,
            summary.candidates,
            summary.dropped_duplicates,
            summary.dropped_across_split,
            summary.dropped_over_cap
        );
        return Err(Error::NothingLeft { what, reason });
    }
    jsonl::write(&out.join(TRAIN_FILE), &train)?;
    jsonl::write(&out.join(HELD_OUT_FILE), &held_out)?;
    Ok(summary)
}

/// Adds problems until both sides have their share, or the generator only repeats itself.
fn add_arithmetic(selection: &mut Selection<'_>, corpus: CorpusSplit, seed: Seed) {
    let enough = |selection: &Selection<'_>| {
        [Split::Train, Split::HeldOut].iter().all(|&s| selection.enough_of(Task::Arithmetic, s))
    };
    for index in 0..MOST_PROBLEMS {
        if enough(selection) {
            break;
        }
        let problem = corpus::source::arithmetic::problem(&mut seed.at(index).rng());
        let split = corpus::split::side(corpus.seed, corpus.held_out_share, &problem.key);
        selection.add(Candidate {
            task: Task::Arithmetic,
            companion: None,
            passage: String::new(),
            answer: problem.solution(),
            question: problem.question,
            subject: problem.key,
            split,
            placement: Placement::Given,
        });
    }
}

/// Bound on generated problems, in case one side has few different ones.
const MOST_PROBLEMS: u64 = 200_000;

/// Reads the items of a file that [`derive`] wrote.
///
/// # Errors
/// The file cannot be read, or a line is no item.
pub fn read_items(path: &Path) -> Result<Vec<Item>> {
    jsonl::read(path, "an item with id, task, subject, split, prompt and answer")
}
