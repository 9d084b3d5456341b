//! Learning from preferences directly: the losses of [`super::pair`] on the engine.
//!
//! One micro-batch holds both answers of some pairs, each as a sequence of its own. The engine gives the
//! log-probability of every scored token; a pair's two sums give the loss and two derivatives; each
//! scored token of an answer takes its answer's derivative.

use super::plan::Plan;
use super::{PairLoss, Side, nll};
use base::{Digest, Hasher, Seed};
use model::{Batch, Engine, TokenGradients, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use train::{Measures, Objective, ObjectiveError, Sums};

/// A prompt with an answer, as token ids, and which of them count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Prompt and answer, [t].
    pub tokens: Vec<u32>,
    /// Which tokens are scored, [t]: the answer's, without formatting tokens where these are masked.
    pub scored: Vec<bool>,
}

impl Answer {
    /// How many tokens are scored.
    pub fn num_scored(&self) -> usize {
        // The first token has nothing before it and cannot be scored.
        self.scored.iter().skip(1).filter(|scored| **scored).count()
    }

    /// The tokens of the likelihood term, [t]: from the first scored one to the end. Where formatting is
    /// masked out of the comparison, the terminator is still learned here: the term is what maintains
    /// the format of answers (Llama 3, section 4.1.4), and without it they would forget to end.
    fn learned(&self) -> Vec<bool> {
        let first = self.scored.iter().position(|scored| *scored).unwrap_or(self.scored.len());
        (0..self.scored.len()).map(|i| i >= first).collect()
    }
}

/// Two answers to one prompt with the reference policy's summed log-probabilities of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// The better answer.
    pub chosen: Answer,
    /// The worse answer.
    pub rejected: Answer,
    /// Of the chosen and of the rejected answer, in nats over the scored tokens.
    pub reference: [f64; 2],
}

impl Pair {
    fn len(&self) -> usize {
        self.chosen.tokens.len() + self.rejected.tokens.len()
    }

    /// The chosen (0) or rejected (1) answer as the loss sees it, given the policy's summed
    /// log-probability of it.
    pub fn side(&self, index: usize, policy: f64) -> Side {
        let answer = if index == 0 { &self.chosen } else { &self.rejected };
        let reference = self.reference[index.min(1)];
        Side { policy, reference, tokens: answer.num_scored() as f64 }
    }
}

/// What is minimised over each pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DpoLoss {
    /// The loss over the two answers.
    pub pair: PairLoss,
    /// Weight of the chosen answer's negative log-likelihood per scored token (Llama 3: 0.2).
    pub nll_weight: f64,
}

impl Default for DpoLoss {
    fn default() -> Self {
        Self { pair: PairLoss::default(), nll_weight: 0.2 }
    }
}

/// The objective over a set of pairs.
pub struct Dpo {
    loss: DpoLoss,
    pairs: Vec<Pair>,
    plan: Plan,
    /// Tokens that the engine must have room for beside the training's own.
    room: usize,
    digest: Digest,
}

impl Dpo {
    /// Plans micro-batches of at most `micro_batch_tokens`, `per_step` of them in a step.
    pub fn new(
        loss: DpoLoss,
        pairs: Vec<Pair>,
        micro_batch_tokens: usize,
        per_step: usize,
        seed: Seed,
    ) -> Self {
        let lengths: Vec<usize> = pairs.iter().map(Pair::len).collect();
        let plan = Plan::new(&lengths, micro_batch_tokens, per_step, seed);
        let sizes = [micro_batch_tokens as u64, per_step as u64, seed.0];
        let digest = digest(&loss, &pairs, &sizes);
        Self { loss, pairs, plan, room: 0, digest }
    }

    /// Makes the engine's plan hold batches of at least so many tokens, for what is measured on the way.
    pub fn with_room(mut self, tokens: usize) -> Self {
        self.room = tokens;
        self
    }
}

fn digest(loss: &DpoLoss, pairs: &[Pair], sizes: &[u64]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.field(b"dpo").field(format!("{loss:?}").as_bytes());
    sizes.iter().for_each(|size| {
        hasher.field(&size.to_le_bytes());
    });
    for pair in pairs {
        for (answer, reference) in
            [(&pair.chosen, pair.reference[0]), (&pair.rejected, pair.reference[1])]
        {
            let tokens: Vec<u8> = answer.tokens.iter().flat_map(|t| t.to_le_bytes()).collect();
            let scored: Vec<u8> = answer.scored.iter().map(|s| u8::from(*s)).collect();
            hasher.field(&tokens).field(&scored).field(&reference.to_le_bytes());
        }
    }
    hasher.finish()
}

impl Objective for Dpo {
    type Work = Vec<usize>;

    fn name(&self) -> &str {
        "dpo"
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
        work.iter().map(|&index| self.pairs[index].len() as u64).sum()
    }

    fn accumulate(
        &mut self,
        engine: &mut Engine,
        weights: &Weights,
        work: &Self::Work,
        scale: f64,
    ) -> Result<Sums, ObjectiveError> {
        let pairs: Vec<&Pair> = work.iter().map(|&index| &self.pairs[index]).collect();
        let mut batch = Batch::new();
        for pair in &pairs {
            batch.push_masked(&pair.chosen.tokens, &pair.chosen.learned());
            batch.push_masked(&pair.rejected.tokens, &pair.rejected.scored);
        }
        let scores = engine.scores(weights, &batch)?;
        let mut log_prob = &scores.log_prob[..];
        let mut d_log_prob = Vec::with_capacity(batch.targets.len());
        let mut sums = Sums::default();
        for pair in pairs {
            let learned = targets(&pair.chosen, &pair.chosen.learned());
            let (chosen, rest) = log_prob.split_at(learned.len());
            let (rejected, rest) = rest.split_at(pair.rejected.num_scored());
            log_prob = rest;
            let scored = chosen.iter().zip(&learned).filter(|(_, scored)| **scored);
            let of_chosen: f64 = scored.map(|(x, _)| f64::from(*x)).sum();
            let (side, other) = (pair.side(0, of_chosen), pair.side(1, sum(rejected)));
            let value = self.loss.pair.of(&side, &other);
            let likelihood =
                Side { policy: sum(chosen), reference: 0.0, tokens: chosen.len() as f64 };
            let d_likelihood = -self.loss.nll_weight / likelihood.tokens.max(1.0);
            d_log_prob.extend(learned.iter().map(|&scored| {
                let d_pair = if scored { value.d_chosen } else { 0.0 };
                (scale * (d_pair + d_likelihood)) as f32
            }));
            d_log_prob.extend(rejected.iter().map(|_| (scale * value.d_rejected) as f32));
            let nll = nll(&likelihood);
            let loss = value.loss + self.loss.nll_weight * nll;
            sums.add(&Sums { loss, measures: measures(&side, &other, nll, value.margin) });
        }
        engine.backward(weights, &batch, &TokenGradients::of_log_prob(d_log_prob))?;
        Ok(sums)
    }
}

/// The chosen answer's log-probability stands beside the margin: the margin can rise while both fall.
fn measures(chosen: &Side, rejected: &Side, nll: f64, margin: f64) -> Measures {
    Measures::from([
        ("accuracy".to_owned(), f64::from(margin > 0.0)),
        ("chosen-log-prob".to_owned(), chosen.policy),
        ("chosen-nll".to_owned(), nll),
        ("margin".to_owned(), margin),
        ("rejected-log-prob".to_owned(), rejected.policy),
    ])
}

/// For each target that `mask` makes of an answer, whether it is scored.
fn targets(answer: &Answer, mask: &[bool]) -> Vec<bool> {
    let masked = mask.iter().zip(&answer.scored).skip(1).filter(|(on, _)| **on);
    masked.map(|(_, &scored)| scored).collect()
}

fn sum(log_prob: &[f32]) -> f64 {
    log_prob.iter().map(|x| f64::from(*x)).sum()
}

/// The answers as sequences of one batch, their scored tokens as targets.
pub fn batch_of<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Batch {
    let mut batch = Batch::new();
    for answer in answers {
        batch.push_masked(&answer.tokens, &answer.scored);
    }
    batch
}

/// Summed log-probabilities of the scored tokens of each answer, in nats, with as many answers in a batch
/// as the engine takes. An answer's sum is the same in every batch.
///
/// # Errors
/// An answer is longer than the engine's plan.
pub fn log_probs(
    engine: &mut Engine,
    weights: &Weights,
    answers: &[&Answer],
) -> Result<Vec<f64>, model::Error> {
    let batch = batch_of(answers.iter().copied());
    let scores = engine.scores(weights, &batch)?;
    let mut first = 0;
    let sums = answers.iter().map(|answer| {
        let range = first..first + answer.num_scored();
        first = range.end;
        sum(&scores.log_prob[range])
    });
    Ok(sums.collect())
}
