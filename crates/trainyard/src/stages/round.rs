//! Stage 7: one alignment round as in Llama 3. Each step is a stage of its own.

use super::models::Speaker;
use super::relay::Made;
use super::sft::{self, SUMMARY, tuned};
use super::{ALGORITHM, Relay};
use crate::error::{Failure, Kind, Result};
use crate::progress::count;
use crate::run::{Finished, Yield};
use base::{Item, Preference};
use posttrain::round::record::{Candidate, Record, Start};
use posttrain::round::{dpo, reject, reward, rollouts, tune, verify};
use posttrain::{conversations, derive, jsonl};
use std::collections::BTreeMap;
use std::path::Path;
use train::{METRICS_FILE, WEIGHTS_FILE};

/// Several answers to each prompt.
pub const ROLLOUTS: &str = "07-round/1-rollouts";
/// Judgements between them.
pub const PREFERENCES: &str = "07-round/2-preferences";
/// The reward model.
pub const REWARD: &str = "07-round/3-reward";
/// Its choices.
pub const REJECT: &str = "07-round/4-reject";
/// Fine-tuning on them.
pub const WINNERS: &str = "07-round/5-winners";
/// Direct preference optimisation from there.
pub const DPO: &str = "07-round/6-dpo";

const PREFERENCES_FILE: &str = "preferences.jsonl";

/// A finished round.
pub struct Round {
    /// The judgements.
    pub preferences: Finished,
    /// The reward model.
    pub reward: Finished,
    /// The aligned model.
    pub aligned: Finished,
}

impl Round {
    /// Share of held-out pairs that the reward model ranks rightly.
    pub fn preference_accuracy(&self) -> Option<f64> {
        self.reward.manifest.measures.get("held-out-accuracy").copied()
    }
}

/// What all steps of the round read.
struct Inputs<'a> {
    tokenizer: &'a Finished,
    questions: &'a Finished,
    start: &'a Finished,
}

/// Whether an item only exercises copying.
fn is_drill(item: &Item) -> bool {
    derive::Task::ALL.iter().any(|task| task.is_drill() && task.name() == item.task)
}

impl Relay<'_> {
    /// From the best model so far to a better one.
    pub fn round(
        &self,
        tokenizer: &Finished,
        questions: &Finished,
        sft: &Finished,
    ) -> Result<Round> {
        let start = start(sft)?;
        let inputs = Inputs { tokenizer, questions, start: sft };
        let rollouts = self.rollouts(&inputs)?;
        self.rule(
            "best earlier model",
            &rollouts,
            Made {
                question: "which model does the round start from".into(),
                options: start.candidates.iter().map(|candidate| candidate.name.clone()).collect(),
                chosen: format!("{} ({})", start.chosen.name, start.chosen.weights.short()),
                reason: start.reason.clone(),
            },
        )?;
        let preferences = self.preferences(&rollouts)?;
        let reward = self.reward(&inputs, &preferences)?;
        let reject = self.reject(&inputs, &rollouts, &reward)?;
        let winners = self.winners(&inputs, &reject)?;
        let aligned = self.dpo(&inputs, &preferences, &winners)?;
        let weights = |stage: &Finished| {
            let artifact = stage.manifest.output(WEIGHTS_FILE);
            artifact.map(|artifact| artifact.digest).ok_or_else(|| no_weights(stage))
        };
        let record = Record {
            round: 1,
            start,
            rollouts: summary(&rollouts)?,
            judge: summary(&preferences)?,
            reward: summary(&reward)?,
            reject: summary(&reject)?,
            tune: summary(&winners)?,
            dpo: summary(&aligned)?,
            reward_weights: weights(&reward)?,
            tuned_weights: weights(&winners)?,
            aligned_weights: weights(&aligned)?,
        };
        record.write(&self.run.stage("07-round"))?;
        Ok(Round { preferences, reward, aligned })
    }

    fn rollouts(&self, inputs: &Inputs<'_>) -> Result<Finished> {
        let settings = &self.recipe.round.rollouts;
        let decides = (settings, self.recipe.round.prompts_share);
        let read = [inputs.tokenizer, inputs.questions, inputs.start];
        self.perform(ROLLOUTS, ALGORITHM, &decides, &read, |out, seed| {
            let speaker = inputs.speaker(inputs.start)?;
            let (_, mut items) = self.divided(inputs.questions)?;
            items.retain(|item| !is_drill(item)); // nothing is measured with them either
            let mut subject = speaker.model("sft", &self.pool);
            let (screen, stop) = (self.screen, self.stop);
            let summary =
                rollouts::sample(settings, &items, &mut subject, seed, out, screen, stop)?;
            base::write_json(&out.join(SUMMARY), &summary)?;
            let mut outputs = chunks(out)?;
            outputs.push(SUMMARY.into());
            Ok(Yield {
                outputs,
                counts: BTreeMap::from([
                    ("prompts".into(), summary.prompts),
                    ("answers".into(), summary.answers),
                    ("tokens".into(), summary.tokens),
                ]),
                measures: BTreeMap::new(),
                summary: format!(
                    "{} prompts -> {} answers, {} tokens",
                    count(summary.prompts),
                    count(summary.answers),
                    count(summary.tokens)
                ),
            })
        })
    }

    fn preferences(&self, rollouts: &Finished) -> Result<Finished> {
        let settings = &self.recipe.round.judge;
        let done = self.perform(PREFERENCES, ALGORITHM, settings, &[rollouts], |out, _| {
            let (preferences, summary) =
                verify::judge(settings, &rollouts::read(&rollouts.directory)?);
            jsonl::write(&out.join(PREFERENCES_FILE), &preferences)?;
            base::write_json(&out.join(SUMMARY), &summary)?;
            let ratings = summary.ratings.iter().map(|(name, n)| format!("{} {name}", count(*n)));
            Ok(Yield {
                outputs: vec![PREFERENCES_FILE.into(), SUMMARY.into()],
                counts: BTreeMap::from([
                    ("answers".into(), summary.answers),
                    ("pairs".into(), summary.pairs),
                    ("tied-prompts".into(), summary.tied_prompts),
                ]),
                measures: BTreeMap::from([
                    ("mean-grade".into(), summary.mean_grade),
                    ("best-grade".into(), summary.best_grade),
                ]),
                summary: format!(
                    "{} answers -> {} pairs: {}",
                    count(summary.answers),
                    count(summary.pairs),
                    ratings.collect::<Vec<_>>().join(", ")
                ),
            })
        })?;
        self.rule(
            verify::JUDGE,
            &done,
            Made {
                question: "which answer wins in each pair".into(),
                options: vec![
                    "the one with the higher token F1".into(),
                    "no pair for a tie".into(),
                ],
                chosen: format!("{} pairs", count(done.manifest.counts["pairs"])),
                reason:
                    "the verifier knows the right answer; the difference of grades gives the rating"
                        .into(),
            },
        )?;
        Ok(done)
    }

    fn reward(&self, inputs: &Inputs<'_>, preferences: &Finished) -> Result<Finished> {
        let settings = &self.recipe.round.reward;
        let read = [inputs.tokenizer, preferences, inputs.start];
        self.perform(REWARD, ALGORITHM, settings, &read, |at, seed| {
            let speaker = inputs.speaker(inputs.start)?;
            let pairs = read_preferences(preferences)?;
            let (_, summary) = reward::train(
                settings,
                &pairs,
                &speaker.encoder(),
                &speaker.weights,
                seed,
                &self.training(at),
            )?;
            base::write_json(&at.join(SUMMARY), &summary)?;
            Ok(Yield {
                outputs: [WEIGHTS_FILE, METRICS_FILE, SUMMARY].map(str::to_owned).to_vec(),
                counts: BTreeMap::from([
                    ("pairs".into(), summary.pairs.train),
                    ("held-out-pairs".into(), summary.pairs.held_out),
                    ("steps".into(), summary.steps),
                ]),
                measures: BTreeMap::from([
                    ("held-out-accuracy".into(), summary.held_out_accuracy),
                    ("held-out-margin".into(), summary.held_out_margin),
                ]),
                summary: format!(
                    "{} pairs; ranks {:.0}% of {} held-out pairs rightly",
                    count(summary.pairs.train),
                    100.0 * summary.held_out_accuracy,
                    count(summary.pairs.held_out)
                ),
            })
        })
    }

    fn reject(
        &self,
        inputs: &Inputs<'_>,
        rollouts: &Finished,
        reward: &Finished,
    ) -> Result<Finished> {
        let settings = &self.recipe.round.reject;
        let read = [inputs.tokenizer, rollouts, reward];
        let done = self.perform(REJECT, ALGORITHM, settings, &read, |out, _| {
            let speaker = inputs.speaker(reward)?;
            let rollouts = rollouts::read(&rollouts.directory)?;
            let encoder = speaker.encoder();
            let context = self.training(out);
            let summary =
                reject::choose(settings, &rollouts, &encoder, &speaker.weights, &context)?;
            base::write_json(&out.join(SUMMARY), &summary)?;
            Ok(Yield {
                outputs: vec![reject::WINNERS_FILE.into(), SUMMARY.into()],
                counts: BTreeMap::from([
                    ("prompts".into(), summary.prompts),
                    ("kept".into(), summary.kept),
                ]),
                measures: BTreeMap::from([
                    ("agreement".into(), summary.agreement),
                    ("chance-agreement".into(), summary.chance_agreement),
                    ("mean-grade".into(), summary.mean_grade),
                    ("chosen-grade".into(), summary.chosen_grade),
                    ("best-grade".into(), summary.best_grade),
                ]),
                summary: format!(
                    "{} winners; token F1 of all answers {:.3}, of the winners {:.3}, of the best {:.3}",
                    count(summary.kept),
                    summary.mean_grade,
                    summary.kept_grade,
                    summary.best_grade
                ),
            })
        })?;
        self.rule("reward model", &done, Made {
            question: "which of several sampled answers is learned from".into(),
            options: vec!["a random one".into(), "the one with the highest reward".into()],
            chosen: format!("{} winners", count(done.manifest.counts["kept"])),
            reason: format!(
                "agrees with the verifier on {:.0}% of the prompts where answers differ (chance {:.0}%)",
                100.0 * done.manifest.measures["agreement"],
                100.0 * done.manifest.measures["chance-agreement"]
            ),
        })?;
        Ok(done)
    }

    fn winners(&self, inputs: &Inputs<'_>, reject: &Finished) -> Result<Finished> {
        let settings = &self.recipe.round.tune;
        let read = [inputs.tokenizer, inputs.questions, reject, inputs.start];
        self.perform(WINNERS, ALGORITHM, settings, &read, |at, seed| {
            let speaker = inputs.speaker(inputs.start)?;
            let winners: Vec<reject::Winner> =
                jsonl::read(&reject.path(reject::WINNERS_FILE), "a chosen answer")?;
            let data = tune::Data {
                winners: &winners,
                items: &self.divided(inputs.questions)?.0,
                repeated: &conversations::hand_made()?,
                held_out: &inputs.items(derive::HELD_OUT_FILE)?,
            };
            let (encoder, init) = (speaker.encoder(), speaker.weights.clone());
            let (_, summary) =
                tune::train(settings, &data, &encoder, init, seed, &self.training(at))?;
            base::write_json(&at.join(SUMMARY), &summary)?;
            Ok(tuned(&summary))
        })
    }

    fn dpo(
        &self,
        inputs: &Inputs<'_>,
        preferences: &Finished,
        winners: &Finished,
    ) -> Result<Finished> {
        let settings = &self.recipe.round.dpo;
        let read = [inputs.tokenizer, preferences, winners];
        self.perform(DPO, ALGORITHM, settings, &read, |at, seed| {
            let speaker = inputs.speaker(winners)?;
            let pairs = read_preferences(preferences)?;
            let (_, summary) = dpo::train(
                settings,
                &pairs,
                &speaker.encoder(),
                speaker.weights.clone(),
                seed,
                &self.training(at),
            )?;
            base::write_json(&at.join(SUMMARY), &summary)?;
            let (before, after) = (&summary.held_out_before, &summary.held_out_after);
            Ok(Yield {
                outputs: [WEIGHTS_FILE, METRICS_FILE, SUMMARY, dpo::REFERENCE_FILE]
                    .map(str::to_owned)
                    .to_vec(),
                counts: BTreeMap::from([
                    ("pairs".into(), summary.pairs.train),
                    ("held-out-pairs".into(), summary.pairs.held_out),
                    ("steps".into(), summary.steps),
                ]),
                measures: BTreeMap::from([
                    ("loss".into(), summary.loss),
                    ("held-out-accuracy".into(), after.accuracy),
                    ("held-out-margin".into(), after.margin),
                    ("held-out-chosen-log-prob-before".into(), before.chosen_log_prob),
                    ("held-out-chosen-log-prob".into(), after.chosen_log_prob),
                ]),
                summary: format!(
                    "{} pairs; on held-out pairs: accuracy {:.0}%, margin {:.3}, chosen log-prob {:.2} -> {:.2}",
                    count(summary.pairs.train),
                    100.0 * after.accuracy,
                    after.margin,
                    before.chosen_log_prob,
                    after.chosen_log_prob
                ),
            })
        })
    }
}

impl Inputs<'_> {
    fn speaker(&self, stage: &Finished) -> Result<Speaker> {
        Speaker::load(&stage.directory, &self.tokenizer.directory)
    }

    fn items(&self, file: &str) -> Result<Vec<Item>> {
        Ok(derive::read_items(&self.questions.path(file))?)
    }
}

/// The models that a first round can start from: there is one.
fn start(sft: &Finished) -> Result<Start> {
    let weights = sft.manifest.output(WEIGHTS_FILE).ok_or_else(|| no_weights(sft))?.digest;
    let candidate = Candidate { name: sft::NAME.to_owned(), weights, score: None };
    Start::best(vec![candidate], "").ok_or_else(|| no_weights(sft))
}

fn no_weights(stage: &Finished) -> Failure {
    Failure::new(Kind::Data, format!("{} has no {WEIGHTS_FILE}", stage.directory.display()))
}

fn summary<T: serde::de::DeserializeOwned>(stage: &Finished) -> Result<T> {
    Ok(base::read_json(&stage.path(SUMMARY))?)
}

/// The judgements of a finished stage.
pub fn read_preferences(stage: &Finished) -> Result<Vec<Preference>> {
    Ok(jsonl::read(&stage.path(PREFERENCES_FILE), "a preference")?)
}

/// The chunk files of a directory.
fn chunks(directory: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(directory).map_err(base::FsError::io("read", directory))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with("rollouts-") && name.ends_with(".jsonl")).collect())
}
