//! The reward model: the fine-tuned weights with a reward head, trained on the pairs that were told apart
//! clearly, and measured on pairs of prompts that it has not seen.

use crate::Result;
use crate::encode::{
    Encoder, Formatting, PairCounts, PairSettings, RatedPair, RatedPairs, groups, rated_pairs,
};
use crate::objective::dpo::Answer;
use crate::objective::reward_model::{Comparison, RewardLoss, RewardModel, rewards};
use base::{Preference, Seed, Stop};
use model::{Engine, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use train::{Budget, Context, Measures};

/// How the reward model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Which pairs are used.
    pub pairs: PairSettings,
    /// The loss.
    pub loss: RewardLoss,
    /// The training itself.
    pub train: train::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        let train = train::Settings {
            budget: Budget::Epochs(2.0),
            global_batch_tokens: 4096,
            micro_batch_tokens: 2048,
            learning_rate: 3e-4,
            weight_decay: 0.01,
            ..train::Settings::default()
        };
        Self { pairs: PairSettings::default(), loss: RewardLoss::default(), train }
    }
}

/// What the training gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// What became of the pairs.
    pub pairs: PairCounts,
    /// Steps taken.
    pub steps: u64,
    /// Loss of the last step, in nats per pair.
    pub loss: f64,
    /// Share of the held-out pairs whose better answer has the greater reward; 0 where there is none.
    pub held_out_accuracy: f64,
    /// Mean difference of the rewards on held-out pairs.
    pub held_out_margin: f64,
}

/// Trains the reward model in the context's directory; called again it goes on there.
///
/// # Errors
/// No pair is left, or the training fails or is stopped.
pub fn train(
    settings: &Settings,
    preferences: &[Preference],
    encoder: &Encoder<'_>,
    init: &Weights,
    seed: Seed,
    context: &Context<'_>,
) -> Result<(Weights, Summary)> {
    // The reward is read at the terminator, so the format's tokens are part of what is read; which
    // tokens are scored plays no part here.
    let RatedPairs { train: pairs, held_out, counts } =
        rated_pairs(&settings.pairs, preferences, encoder, Formatting::Scored, seed)?;
    let comparison =
        |pair: RatedPair| Comparison { best_first: pair.answers.into(), rating: pair.rating };
    let mut objective = RewardModel::new(
        settings.loss,
        pairs.into_iter().map(comparison).collect(),
        settings.train.micro_batch_tokens,
        settings.train.micro_batches(),
        seed.derive("order"),
    );
    let max_tokens = settings.train.micro_batch_tokens.max(encoder.max_seq_len);
    objective = objective.with_room(max_tokens);
    let mut evaluate = |engine: &mut Engine, weights: &Weights, _: u64| {
        let (accuracy, margin) = measure(engine, weights, &held_out, max_tokens, context.stop)?;
        Ok(Measures::from([
            ("held-out-accuracy".to_owned(), accuracy),
            ("held-out-margin".to_owned(), margin),
        ]))
    };
    let outcome = train::run(
        &mut objective,
        &settings.train,
        init.with_reward_head(),
        context,
        Some(&mut evaluate),
    )?;
    let measured = |name: &str| outcome.last.evaluation.get(name).copied().unwrap_or_default();
    let summary = Summary {
        pairs: counts,
        steps: outcome.steps,
        loss: outcome.last.loss,
        held_out_accuracy: measured("held-out-accuracy"),
        held_out_margin: measured("held-out-margin"),
    };
    Ok((outcome.weights, summary))
}

/// Accuracy and mean margin over pairs.
fn measure(
    engine: &mut Engine,
    weights: &Weights,
    pairs: &[RatedPair],
    max_tokens: usize,
    stop: &Stop,
) -> Result<(f64, f64)> {
    let answers: Vec<&Answer> = pairs.iter().flat_map(|pair| &pair.answers).collect();
    let rewards = all_rewards(engine, weights, &answers, max_tokens, stop)?;
    let margins: Vec<f64> = rewards.chunks(2).map(|two| f64::from(two[0] - two[1])).collect();
    let count = (margins.len() as f64).max(1.0);
    let right = margins.iter().filter(|margin| **margin > 0.0).count();
    Ok((right as f64 / count, margins.iter().sum::<f64>() / count))
}

/// The reward of every answer, in batches of at most `max_tokens` tokens.
pub(crate) fn all_rewards(
    engine: &mut Engine,
    weights: &Weights,
    answers: &[&Answer],
    max_tokens: usize,
    stop: &Stop,
) -> Result<Vec<f32>> {
    let mut all = Vec::with_capacity(answers.len());
    for group in groups(answers, max_tokens) {
        stop.check()?;
        all.extend(rewards(engine, weights, &group)?);
    }
    Ok(all)
}
