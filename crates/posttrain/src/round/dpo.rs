//! DPO from the tuned model, which is the reference policy too. Its log-probabilities are computed once,
//! written down, and read again when the training goes on.

use crate::encode::{
    Encoder, Formatting, PairCounts, PairSettings, RatedPair, RatedPairs, groups, rated_pairs,
};
use crate::objective::dpo::{Answer, Dpo, DpoLoss, Pair, log_probs};
use crate::{Result, jsonl};
use base::{Digest, Observer, Preference, Progress, Seed, Stop};
use model::{Engine, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use train::{Budget, Context, Measures};

/// The file of the reference policy's log-probabilities.
pub const REFERENCE_FILE: &str = "reference.jsonl";

/// How preferences are learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Which pairs are used.
    pub pairs: PairSettings,
    /// The loss.
    pub loss: DpoLoss,
    /// Whether headers and terminators count in the loss.
    pub formatting: Formatting,
    /// The training itself.
    pub train: train::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        let train = train::Settings {
            budget: Budget::Epochs(1.0),
            global_batch_tokens: 4096,
            micro_batch_tokens: 2048,
            learning_rate: 1e-4,
            warmup_share: 0.1,
            weight_decay: 0.0,
            ..train::Settings::default()
        };
        Self {
            pairs: PairSettings::default(),
            loss: DpoLoss::default(),
            formatting: Formatting::default(),
            train,
        }
    }
}

/// What pairs look like to a policy, as means over pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairMeasures {
    /// Share of the pairs in which the chosen answer is the more probable one relative to the reference.
    pub accuracy: f64,
    /// Beta times the difference of the log-ratios.
    pub margin: f64,
    /// Summed log-probability of the chosen answer, in nats.
    pub chosen_log_prob: f64,
    /// Summed log-probability of the rejected answer, in nats.
    pub rejected_log_prob: f64,
}

/// What DPO gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// What became of the pairs.
    pub pairs: PairCounts,
    /// Steps taken.
    pub steps: u64,
    /// Loss of the last step, in nats per pair.
    pub loss: f64,
    /// Held-out pairs under the reference policy: accuracy and margin are 0 by definition.
    pub held_out_before: PairMeasures,
    /// Held-out pairs under the trained policy. The chosen log-probability can fall while the margin
    /// rises, so both are here.
    pub held_out_after: PairMeasures,
}

/// Trains the policy in the context's directory; called again it goes on there.
///
/// # Errors
/// No pair is left, or the training fails or is stopped.
pub fn train(
    settings: &Settings,
    preferences: &[Preference],
    encoder: &Encoder<'_>,
    init: Weights,
    seed: Seed,
    context: &Context<'_>,
) -> Result<(Weights, Summary)> {
    let RatedPairs { train, held_out, counts } =
        rated_pairs(&settings.pairs, preferences, encoder, settings.formatting, seed)?;
    let num_train = train.len();
    let mut pairs = with_reference(settings, train.into_iter().chain(held_out), &init, context)?;
    let held_out = pairs.split_off(num_train);
    let mut objective = Dpo::new(
        settings.loss,
        pairs,
        settings.train.micro_batch_tokens,
        settings.train.micro_batches(),
        seed.derive("order"),
    );
    let max_tokens = settings.train.micro_batch_tokens.max(encoder.max_seq_len);
    objective = objective.with_room(max_tokens);
    let mut evaluate = |engine: &mut Engine, weights: &Weights, _: u64| {
        let measured = measure(settings, engine, weights, &held_out, max_tokens, context.stop)?;
        Ok(measured.named())
    };
    let outcome = train::run(&mut objective, &settings.train, init, context, Some(&mut evaluate))?;
    let summary = Summary {
        pairs: counts,
        steps: outcome.steps,
        loss: outcome.last.loss,
        held_out_before: before(&held_out),
        held_out_after: PairMeasures::of(&outcome.last.evaluation),
    };
    Ok((outcome.weights, summary))
}

/// For each held-out pair whether a model gives the better answer the greater log-probability per scored
/// token. The pairs are those that [`train`] with the same settings and seed has kept for measuring.
///
/// # Errors
/// No pair is left, the model refuses, or the stop was raised.
pub fn preference_accuracy(
    settings: &Settings,
    preferences: &[Preference],
    encoder: &Encoder<'_>,
    weights: &Weights,
    seed: Seed,
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    let pairs =
        rated_pairs(&settings.pairs, preferences, encoder, settings.formatting, seed)?.held_out;
    let flat: Vec<&Answer> = pairs.iter().flat_map(|pair| &pair.answers).collect();
    let max_tokens = settings.train.micro_batch_tokens.max(encoder.max_seq_len);
    let mut engine = Engine::for_scoring(weights.config(), max_tokens, context.pool.clone())?;
    let sums =
        all_log_probs(&mut engine, weights, &flat, max_tokens, context.observer, context.stop)?;
    let per_token = |(answer, sum): (&&Answer, &f64)| sum / answer.num_scored().max(1) as f64;
    let means: Vec<f64> = flat.iter().zip(&sums).map(per_token).collect();
    Ok(means.chunks_exact(2).map(|two| two[0] > two[1]).collect())
}

impl PairMeasures {
    fn named(&self) -> Measures {
        Measures::from([
            ("held-out-accuracy".to_owned(), self.accuracy),
            ("held-out-margin".to_owned(), self.margin),
            ("held-out-chosen-log-prob".to_owned(), self.chosen_log_prob),
            ("held-out-rejected-log-prob".to_owned(), self.rejected_log_prob),
        ])
    }

    fn of(measures: &Measures) -> Self {
        let named = |name: &str| measures.get(name).copied().unwrap_or_default();
        Self {
            accuracy: named("held-out-accuracy"),
            margin: named("held-out-margin"),
            chosen_log_prob: named("held-out-chosen-log-prob"),
            rejected_log_prob: named("held-out-rejected-log-prob"),
        }
    }
}

/// The reference policy's log-probabilities of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Reference {
    /// Digest of the weights and of the pair's tokens: what the numbers belong to.
    digest: Digest,
    /// Of the chosen and of the rejected answer.
    log_probs: [f64; 2],
}

/// Completes the pairs with the reference's log-probabilities: those written down, if they are of these
/// weights and pairs, or else computed and written down.
fn with_reference(
    settings: &Settings,
    rated: impl Iterator<Item = RatedPair>,
    reference: &Weights,
    context: &Context<'_>,
) -> Result<Vec<Pair>> {
    let path = context.directory.join(REFERENCE_FILE);
    let answers: Vec<[Answer; 2]> = rated.map(|pair| pair.answers).collect();
    let weights = reference.digest();
    let digests: Vec<Digest> = answers.iter().map(|pair| digest(&weights, pair)).collect();
    let references = match stored(&path, &digests) {
        Some(references) => references,
        None => {
            let references = compute(settings, &answers, &digests, reference, context)?;
            jsonl::write(&path, &references)?;
            references
        }
    };
    let pair = |([chosen, rejected], reference): ([Answer; 2], Reference)| Pair {
        chosen,
        rejected,
        reference: reference.log_probs,
    };
    Ok(answers.into_iter().zip(references).map(pair).collect())
}

fn stored(path: &Path, digests: &[Digest]) -> Option<Vec<Reference>> {
    let references: Vec<Reference> = jsonl::read(path, "log-probabilities of a pair").ok()?;
    references.iter().map(|reference| &reference.digest).eq(digests).then_some(references)
}

fn compute(
    settings: &Settings,
    answers: &[[Answer; 2]],
    digests: &[Digest],
    reference: &Weights,
    context: &Context<'_>,
) -> Result<Vec<Reference>> {
    let flat: Vec<&Answer> = answers.iter().flatten().collect();
    let longest = flat.iter().map(|answer| answer.tokens.len()).max().unwrap_or_default();
    let max_tokens = settings.train.micro_batch_tokens.max(longest);
    let pool = context.pool.clone();
    let mut engine = Engine::for_scoring(reference.config(), max_tokens, pool)?;
    let sums =
        all_log_probs(&mut engine, reference, &flat, max_tokens, context.observer, context.stop)?;
    let of_pair = |(digest, sums): (&Digest, &[f64])| Reference {
        digest: *digest,
        log_probs: [sums[0], sums[1]],
    };
    Ok(digests.iter().zip(sums.chunks_exact(2)).map(of_pair).collect())
}

fn digest(weights: &Digest, pair: &[Answer; 2]) -> Digest {
    let mut hasher = base::Hasher::new();
    hasher.field(&weights.0);
    for answer in pair {
        let tokens: Vec<u8> = answer.tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        let scored: Vec<u8> = answer.scored.iter().map(|on| u8::from(*on)).collect();
        hasher.field(&tokens).field(&scored);
    }
    hasher.finish()
}

fn all_log_probs(
    engine: &mut Engine,
    weights: &Weights,
    answers: &[&Answer],
    max_tokens: usize,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Vec<f64>> {
    let mut all = Vec::with_capacity(answers.len());
    for group in groups(answers, max_tokens) {
        stop.check()?;
        all.extend(log_probs(engine, weights, &group)?);
        let (done, total) = (all.len() as u64, Some(answers.len() as u64));
        observer.progress(Progress { done, total, unit: "answers", detail: String::new() });
    }
    Ok(all)
}

/// Held-out pairs under the reference policy itself.
fn before(pairs: &[Pair]) -> PairMeasures {
    let count = pairs.len().max(1) as f64;
    let mean = |side: usize| pairs.iter().map(|pair| pair.reference[side]).sum::<f64>() / count;
    PairMeasures { chosen_log_prob: mean(0), rejected_log_prob: mean(1), ..PairMeasures::default() }
}

fn measure(
    settings: &Settings,
    engine: &mut Engine,
    weights: &Weights,
    pairs: &[Pair],
    max_tokens: usize,
    stop: &Stop,
) -> Result<PairMeasures> {
    let flat: Vec<&Answer> = pairs.iter().flat_map(|pair| [&pair.chosen, &pair.rejected]).collect();
    let sums = all_log_probs(engine, weights, &flat, max_tokens, &base::Silent, stop)?;
    let count = pairs.len().max(1) as f64;
    let mut measured = PairMeasures::default();
    for (pair, sums) in pairs.iter().zip(sums.chunks_exact(2)) {
        let value = settings.loss.pair.of(&pair.side(0, sums[0]), &pair.side(1, sums[1]));
        measured.accuracy += f64::from(value.margin > 0.0) / count;
        measured.margin += value.margin / count;
        measured.chosen_log_prob += sums[0] / count;
        measured.rejected_log_prob += sums[1] / count;
    }
    Ok(measured)
}
