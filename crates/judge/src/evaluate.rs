//! One model on items with known answers: exact and partial match by task and overall; and two models
//! on the same items, compared by a verifier that knows the right answer.
//!
//! ```text
//! items -> asks -> answers -> grades by item -> intervals by task        evaluate
//!                             paired differences of two models -> wins   compare
//! ```

use crate::answer::{Answer, Ask, Finish, Sampling, Subject, answers};
use crate::intervals::{Interval, WinRate, bootstrap_mean, paired_difference, win_rate};
use crate::{Error, Grader};
use base::{Item, Observer, Seed, Stop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How models are asked and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// How answers are drawn.
    pub sampling: Sampling,
    /// Answers to each prompt; the grades of an item are means over them. More than one needs a
    /// temperature above 0.
    pub samples: usize,
    /// System prompt in front of every item; none when left out.
    pub system_prompt: Option<String>,
    /// The grader of exact match.
    pub exact: Grader,
    /// The grader of partial match, by which the verifier prefers.
    pub partial: Grader,
    /// Graders that take the place of `exact` for a task, by task name.
    pub task_graders: BTreeMap<String, Grader>,
    /// A difference in partial match up to this is a tie.
    pub tie_margin: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            samples: 1,
            system_prompt: None,
            exact: Grader::ExactMatch,
            partial: Grader::TokenF1,
            task_graders: BTreeMap::new(),
            tie_margin: 0.0,
        }
    }
}

/// What a model answered to one item, and its grades.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemResult {
    /// The item.
    pub item: String,
    /// Its task.
    pub task: String,
    /// The first answer.
    pub prediction: String,
    /// Why the first answer ended.
    pub finish: Finish,
    /// Exact match, the mean over the answers.
    pub exact: f64,
    /// Partial match, the mean over the answers.
    pub partial: f64,
}

/// Grades over a set of items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Items.
    pub items: u64,
    /// Exact match: Wilson's interval with one answer an item, else the bootstrap's.
    pub exact: Interval,
    /// Partial match, with the bootstrap's interval over items.
    pub partial: Interval,
    /// Share of first answers that the model ended itself.
    pub ended_share: f64,
}

/// One model's judgement on items with known answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The model.
    pub model: String,
    /// Over all items.
    pub overall: Scores,
    /// By task.
    pub tasks: BTreeMap<String, Scores>,
    /// By item, in the order of the items.
    pub results: Vec<ItemResult>,
}

/// Asks a model every item and grades what it answers.
///
/// # Errors
/// There are no items, the model cannot answer, or the work was stopped.
pub fn evaluate(
    subject: &mut dyn Subject,
    items: &[Item],
    settings: &Settings,
    seed: Seed,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Evaluation, Error> {
    let samples = settings.samples.max(1);
    let system = settings.system_prompt.as_deref();
    let asks: Vec<Ask> = items
        .iter()
        .flat_map(|item| (0..samples).map(move |n| Ask::of_item(item, system, seed.at(n as u64))))
        .collect();
    let answers = answers(subject, &asks, &settings.sampling, observer, stop)?;
    grade_answers(subject.name(), items, &answers, settings, seed)
}

/// Grades answers: `settings.samples` for each item, in the items' order.
///
/// # Errors
/// There are no items.
pub fn grade_answers(
    model: &str,
    items: &[Item],
    answers: &[Answer],
    settings: &Settings,
    seed: Seed,
) -> Result<Evaluation, Error> {
    if items.is_empty() {
        return Err(Error::NothingToJudge { what: "held-out items" });
    }
    let grouped = items.iter().zip(answers.chunks(settings.samples.max(1)));
    let results: Vec<ItemResult> =
        grouped.filter_map(|(item, answers)| grade_item(item, answers, settings)).collect();
    let mut by_task: BTreeMap<String, Vec<&ItemResult>> = BTreeMap::new();
    results.iter().for_each(|result| by_task.entry(result.task.clone()).or_default().push(result));
    let seed = seed.derive("intervals");
    let all: Vec<&ItemResult> = results.iter().collect();
    let overall = scores(&all, seed);
    let tasks = by_task
        .into_iter()
        .map(|(task, results)| {
            let scores = scores(&results, seed.derive(&task));
            (task, scores)
        })
        .collect();
    Ok(Evaluation { model: model.to_owned(), overall, tasks, results })
}

fn grade_item(item: &Item, answers: &[Answer], settings: &Settings) -> Option<ItemResult> {
    let first = answers.first()?;
    let exact = settings.task_graders.get(&item.task).copied().unwrap_or(settings.exact);
    let mean = |grader: Grader| {
        let sum: f64 = answers.iter().map(|answer| grader.grade(&answer.text, &item.answer)).sum();
        sum / answers.len() as f64
    };
    Some(ItemResult {
        item: item.id.clone(),
        task: item.task.clone(),
        prediction: first.text.clone(),
        finish: first.finish,
        exact: mean(exact),
        partial: mean(settings.partial),
    })
}

fn scores(results: &[&ItemResult], seed: Seed) -> Scores {
    let exact: Vec<f64> = results.iter().map(|result| result.exact).collect();
    let partial: Vec<f64> = results.iter().map(|result| result.partial).collect();
    let ended = results.iter().filter(|result| result.finish == Finish::Stop).count();
    Scores {
        items: results.len() as u64,
        exact: share_or_mean(&exact, seed.derive("exact")),
        partial: bootstrap_mean(&partial, seed.derive("partial")),
        ended_share: ended as f64 / results.len().max(1) as f64,
    }
}

/// Wilson's interval where every grade is 0 or 1, else the bootstrap's.
fn share_or_mean(grades: &[f64], seed: Seed) -> Interval {
    if grades.iter().all(|&grade| grade == 0.0 || grade == 1.0) {
        let right = grades.iter().filter(|&&grade| grade == 1.0).count();
        return crate::intervals::wilson(right as u64, grades.len() as u64);
    }
    bootstrap_mean(grades, seed)
}

/// The first model against the second, on the same prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The first model.
    pub first: String,
    /// The second model.
    pub second: String,
    /// How often the verifier prefers the first.
    pub preference: WinRate,
    /// Exact match of the first minus that of the second, paired.
    pub exact_difference: Interval,
    /// Partial match of the first minus that of the second, paired.
    pub partial_difference: Interval,
}

/// Compares two models item by item: the verifier prefers the one with the greater partial match.
///
/// # Errors
/// An item was answered by one of them only, or there are no items.
pub fn compare(
    first: &Evaluation,
    second: &Evaluation,
    tie_margin: f64,
    seed: Seed,
) -> Result<Comparison, Error> {
    fn by_item(evaluation: &Evaluation) -> BTreeMap<&str, &ItemResult> {
        evaluation.results.iter().map(|result| (result.item.as_str(), result)).collect()
    }
    let (ours, theirs) = (by_item(first), by_item(second));
    let odd = ours.keys().find(|item| !theirs.contains_key(**item));
    let odd = odd.or_else(|| theirs.keys().find(|item| !ours.contains_key(**item)));
    if let Some(item) = odd {
        let (first, second) = (first.model.clone(), second.model.clone());
        return Err(Error::NotPaired { first, second, item: (*item).to_owned() });
    }
    if ours.is_empty() {
        return Err(Error::NothingToJudge { what: "items to compare two models on" });
    }
    let paired = |grade: fn(&ItemResult) -> f64| -> (Vec<f64>, Vec<f64>) {
        ours.values().zip(theirs.values()).map(|(a, b)| (grade(a), grade(b))).unzip()
    };
    let (exact, partial) = (paired(|result| result.exact), paired(|result| result.partial));
    let differences: Vec<f64> = partial.0.iter().zip(&partial.1).map(|(a, b)| a - b).collect();
    Ok(Comparison {
        first: first.model.clone(),
        second: second.model.clone(),
        preference: win_rate(&differences, tie_margin, seed.derive("preference")),
        exact_difference: paired_difference(&exact.0, &exact.1, seed.derive("exact")),
        partial_difference: paired_difference(&partial.0, &partial.1, seed.derive("partial")),
    })
}
