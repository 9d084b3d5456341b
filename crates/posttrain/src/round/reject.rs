//! Rejection sampling: of the answers to each prompt, the one that the reward model likes best. The
//! verifier, which the choice does not see, says how good the choice is.

use super::reward::all_rewards;
use super::rollouts::Rollouts;
use super::verify::grade;
use crate::encode::{Encoder, Formatting};
use crate::objective::dpo::Answer;
use crate::{Error, Result, jsonl};
use base::{Message, Progress, Role, Stop};
use model::{Engine, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use train::Context;

/// The file of the chosen answers.
pub const WINNERS_FILE: &str = "winners.jsonl";

/// How answers are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Share of the prompts whose chosen answer is kept, those with the highest rewards, 0 to 1. Rewards are
    /// trained to compare answers to one prompt; across prompts they may say little, so all are kept
    /// unless asked for.
    pub keep_share: f64,
    /// Tokens that are scored at once.
    pub batch_tokens: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { keep_share: 1.0, batch_tokens: 4096 }
    }
}

/// The answer that was chosen for a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Winner {
    /// The item that was asked.
    pub item: String,
    /// The question.
    pub prompt: String,
    /// The chosen answer.
    pub answer: String,
    /// The reward model's value.
    pub reward: f32,
    /// The verifier's grade, 0 to 1.
    pub grade: f64,
}

/// What the choice gave, judged by the verifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Prompts with an answer to choose.
    pub prompts: u64,
    /// Prompts without a usable answer (empty, or longer than the context).
    pub dropped_prompts: u64,
    /// Chosen answers that are kept.
    pub kept: u64,
    /// Prompts whose answers have different grades: where there is something to choose.
    pub contested: u64,
    /// Share of the contested prompts in which no answer has a better grade than the chosen one.
    pub agreement: f64,
    /// The same share for a choice at random.
    pub chance_agreement: f64,
    /// Mean grade of a random answer.
    pub mean_grade: f64,
    /// Mean grade of the chosen answers.
    pub chosen_grade: f64,
    /// Mean grade of the best answers: what a perfect choice would have.
    pub best_grade: f64,
    /// Mean grade of the chosen answers that are kept.
    pub kept_grade: f64,
    /// Upper bound on the divergence from the sampled policy, in nats: `ln n - (n - 1) / n` for n answers
    /// (Hilton and Gao 2022), the mean over prompts.
    pub kl_bound: f64,
}

/// Chooses an answer for each prompt and writes the kept ones to [`WINNERS_FILE`] in the context's
/// directory, by reward.
///
/// # Errors
/// No answer can be chosen, the model refuses, a file cannot be written, or the stop was raised.
pub fn choose(
    settings: &Settings,
    rollouts: &[Rollouts],
    encoder: &Encoder<'_>,
    reward_model: &Weights,
    context: &Context<'_>,
) -> Result<Summary> {
    let batch_tokens = settings.batch_tokens.max(encoder.max_seq_len);
    let pool = context.pool.clone();
    let engine = Engine::for_scoring(reward_model.config(), batch_tokens, pool)?;
    let stop = context.stop;
    let mut scorer = Scorer { encoder, engine, reward_model, batch_tokens, stop };
    let mut summary = Summary::default();
    let mut winners = Vec::new();
    for (number, of_prompt) in rollouts.iter().enumerate() {
        let winner = scorer.best(of_prompt, &mut summary)?;
        summary.dropped_prompts += u64::from(winner.is_none());
        winners.extend(winner);
        let (done, total) = (number as u64 + 1, Some(rollouts.len() as u64));
        context.observer.progress(Progress { done, total, unit: "prompts", detail: String::new() });
    }
    if winners.is_empty() {
        let reason = format!("{} prompts were given, none has a usable answer", rollouts.len());
        return Err(Error::NothingLeft { what: "answers to choose among", reason });
    }
    winners.sort_by(|a, b| b.reward.total_cmp(&a.reward).then_with(|| a.item.cmp(&b.item)));
    let kept = (winners.len() as f64 * settings.keep_share).ceil() as usize;
    winners.truncate(kept.clamp(1, winners.len()));
    summary.finish(&winners);
    jsonl::write(&context.directory.join(WINNERS_FILE), &winners)?;
    Ok(summary)
}

impl Summary {
    /// Turns sums into means.
    fn finish(&mut self, winners: &[Winner]) {
        let (prompts, contested) = (self.prompts.max(1) as f64, self.contested.max(1) as f64);
        self.agreement /= contested;
        self.chance_agreement /= contested;
        for sum in
            [&mut self.mean_grade, &mut self.chosen_grade, &mut self.best_grade, &mut self.kl_bound]
        {
            *sum /= prompts;
        }
        self.kept = winners.len() as u64;
        let grades: f64 = winners.iter().map(|winner| winner.grade).sum();
        self.kept_grade = grades / winners.len().max(1) as f64;
    }

    fn count(&mut self, grades: &[f64], chosen: f64) {
        let n = grades.len() as f64;
        let best = grades.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.prompts += 1;
        self.mean_grade += grades.iter().sum::<f64>() / n;
        self.chosen_grade += chosen;
        self.best_grade += best;
        self.kl_bound += kl_bound(grades.len());
        if grades.iter().any(|grade| *grade < best) {
            self.contested += 1;
            self.agreement += f64::from(chosen == best);
            self.chance_agreement +=
                grades.iter().filter(|grade| **grade == best).count() as f64 / n;
        }
    }
}

/// Upper bound, in nats, on how far best-of-n moves from the policy that was sampled.
pub fn kl_bound(n: usize) -> f64 {
    let n = n.max(1) as f64;
    n.ln() - (n - 1.0) / n
}

/// The reward model at work.
struct Scorer<'a> {
    encoder: &'a Encoder<'a>,
    engine: Engine,
    reward_model: &'a Weights,
    batch_tokens: usize,
    stop: &'a Stop,
}

impl Scorer<'_> {
    /// The answer with the highest reward; the first in the order of the texts among equals.
    fn best(&mut self, rollouts: &Rollouts, summary: &mut Summary) -> Result<Option<Winner>> {
        let item = &rollouts.item;
        let rewards = self.rewards(rollouts)?;
        let mut best: Option<(&str, f32)> = None;
        for (&text, &reward) in &rewards {
            if best.is_none_or(|(_, highest)| reward > highest) {
                best = Some((text, reward));
            }
        }
        let Some((answer, reward)) = best else { return Ok(None) };
        let (prompt, answer) = (item.prompt.clone(), answer.to_owned());
        let chosen = grade(&answer, &item.answer);
        let sampled = rollouts.answers.iter().map(|sampled| sampled.text.as_str());
        let usable = sampled.filter(|text| rewards.contains_key(text));
        let grades: Vec<f64> = usable.map(|text| grade(text, &item.answer)).collect();
        summary.count(&grades, chosen);
        Ok(Some(Winner { item: item.id.clone(), prompt, answer, reward, grade: chosen }))
    }

    /// The reward of each different answer that can be used.
    fn rewards<'r>(&mut self, rollouts: &'r Rollouts) -> Result<BTreeMap<&'r str, f32>> {
        let prompt = [Message::new(Role::User, rollouts.item.prompt.clone())];
        let mut usable: BTreeMap<&str, Answer> = BTreeMap::new();
        for sampled in &rollouts.answers {
            let text = sampled.text.as_str();
            if let Some(answer) = self.encoder.answer(&prompt, text, Formatting::Masked)? {
                usable.insert(text, answer);
            }
        }
        let answers: Vec<&Answer> = usable.values().collect();
        let Self { engine, reward_model, batch_tokens, stop, .. } = self;
        let rewards = all_rewards(engine, reward_model, &answers, *batch_tokens, stop)?;
        Ok(usable.into_keys().zip(rewards).collect())
    }
}

/// Reads the winners that [`choose`] wrote.
///
/// # Errors
/// The file cannot be read, or a line is no winner.
pub fn read(directory: &Path) -> Result<Vec<Winner>> {
    jsonl::read(
        &directory.join(WINNERS_FILE),
        "a chosen answer with item, prompt, answer, reward and grade",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_of_n_has_its_published_bound() {
        let check = |n, expected: f64| assert!((kl_bound(n) - expected).abs() < 1e-6, "{n}");
        check(10, 1.402585);
        check(30, 2.434531);
        check(1, 0.0);
        check(0, 0.0);
    }

    #[test]
    fn agreement_counts_only_where_there_is_a_choice() {
        let mut summary = Summary::default();
        summary.count(&[1.0, 0.0, 0.0, 1.0], 1.0);
        summary.count(&[0.5, 0.0], 0.0);
        summary.count(&[0.3, 0.3], 0.3);
        summary.finish(&[]);
        assert_eq!((summary.prompts, summary.contested), (3, 2));
        assert_eq!((summary.agreement, summary.chance_agreement), (0.5, 0.5));
        assert!((summary.best_grade - 1.8 / 3.0).abs() < 1e-12);
    }
}
