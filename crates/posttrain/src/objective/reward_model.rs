//! Learning to tell answers apart: the loss of [`super::ranking`] on the engine's reward head.
//!
//! The reward of an answer is read at its last token. Llama 3 packs a prompt and its answers into one row
//! in random order; here each answer is a sequence of its own with the prompt before it, which gives every
//! answer the reward that it would have alone, whatever else is in the batch.

use super::dpo::{Answer, batch_of};
use super::plan::Plan;
use super::{Margins, ranking_of_all};
use base::{Digest, Hasher, Rating, Seed};
use model::{Engine, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use train::{Measures, Objective, ObjectiveError, Sums};

/// What the reward model minimises over each comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RewardLoss {
    /// How far apart the rewards must be, by rating.
    pub margins: Margins,
    /// Weight of the square of the rewards' sum, which keeps them near zero; 0 for none.
    pub centring: f64,
}

/// Answers to one prompt, the best first: two, or three where a person has edited one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The answers, best first.
    pub best_first: Vec<Answer>,
    /// How much better the better ones are.
    pub rating: Rating,
}

impl Comparison {
    fn len(&self) -> usize {
        self.best_first.iter().map(|answer| answer.tokens.len()).sum()
    }
}

/// The objective over a set of comparisons.
pub struct RewardModel {
    loss: RewardLoss,
    comparisons: Vec<Comparison>,
    plan: Plan,
    /// Tokens that the engine must have room for beside the training's own.
    room: usize,
    digest: Digest,
}

impl RewardModel {
    /// Plans micro-batches of at most `micro_batch_tokens`, `per_step` of them in a step.
    pub fn new(
        loss: RewardLoss,
        comparisons: Vec<Comparison>,
        micro_batch_tokens: usize,
        per_step: usize,
        seed: Seed,
    ) -> Self {
        let lengths: Vec<usize> = comparisons.iter().map(Comparison::len).collect();
        let plan = Plan::new(&lengths, micro_batch_tokens, per_step, seed);
        let mut hasher = Hasher::new();
        hasher.field(b"reward-model").field(format!("{loss:?}").as_bytes());
        for size in [micro_batch_tokens as u64, per_step as u64, seed.0] {
            hasher.field(&size.to_le_bytes());
        }
        for comparison in &comparisons {
            hasher.field(&[comparison.rating as u8, comparison.best_first.len() as u8]);
            for answer in &comparison.best_first {
                let bytes: Vec<u8> = answer.tokens.iter().flat_map(|t| t.to_le_bytes()).collect();
                hasher.field(&bytes);
            }
        }
        let digest = hasher.finish();
        Self { loss, comparisons, plan, room: 0, digest }
    }

    /// Makes the engine's plan hold batches of at least so many tokens, for what is measured on the way.
    pub fn with_room(mut self, tokens: usize) -> Self {
        self.room = tokens;
        self
    }
}

impl Objective for RewardModel {
    type Work = Vec<usize>;

    fn name(&self) -> &str {
        "reward-model"
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn max_tokens(&self) -> usize {
        self.plan.max_tokens().max(self.room)
    }

    fn steps_per_epoch(&self) -> f64 {
        self.plan.steps_per_epoch() as f64
    }

    fn work(&self, step: u64) -> Result<Vec<Self::Work>, ObjectiveError> {
        Ok(self.plan.step(step))
    }

    fn weight(&self, work: &Self::Work) -> f64 {
        work.len() as f64
    }

    fn tokens(&self, work: &Self::Work) -> u64 {
        work.iter().map(|&index| self.comparisons[index].len() as u64).sum()
    }

    fn accumulate(
        &mut self,
        engine: &mut Engine,
        weights: &Weights,
        work: &Self::Work,
        scale: f64,
    ) -> Result<Sums, ObjectiveError> {
        let comparisons: Vec<&Comparison> =
            work.iter().map(|&index| &self.comparisons[index]).collect();
        let batch = batch_of(comparisons.iter().flat_map(|c| &c.best_first));
        let rows = batch.last_rows();
        let rewards = engine.rewards(weights, &batch, &rows)?;
        let mut d_rewards = Vec::with_capacity(rewards.len());
        let mut sums = Sums::default();
        for comparison in comparisons {
            let first = d_rewards.len();
            let of_this = &rewards[first..first + comparison.best_first.len()];
            let of_this: Vec<f64> = of_this.iter().map(|reward| f64::from(*reward)).collect();
            let margin = self.loss.margins.of(comparison.rating);
            let (loss, gradient) = ranking_of_all(&of_this, margin, self.loss.centring);
            d_rewards.extend(gradient.iter().map(|d| (scale * d) as f32));
            sums.add(&Sums { loss, measures: measures(&of_this) });
        }
        engine.rewards_backward(weights, &batch, &rows, &d_rewards)?;
        Ok(sums)
    }
}

fn measures(best_first: &[f64]) -> Measures {
    let (best, worst) = match best_first {
        [best, .., worst] => (*best, *worst),
        _ => (0.0, 0.0),
    };
    Measures::from([
        ("accuracy".to_owned(), f64::from(best > worst)),
        ("chosen-reward".to_owned(), best),
        ("margin".to_owned(), best - worst),
        ("rejected-reward".to_owned(), worst),
    ])
}

/// The reward of each answer. An answer's reward is the same in every batch.
///
/// # Errors
/// The answers together are more than the engine's plan.
pub fn rewards(
    engine: &mut Engine,
    weights: &Weights,
    answers: &[&Answer],
) -> Result<Vec<f32>, model::Error> {
    let batch = batch_of(answers.iter().copied());
    let rows = batch.last_rows();
    engine.rewards(weights, &batch, &rows)
}
