//! Stage 4: next-token prediction from random weights.

use super::relay::Made;
use super::{ALGORITHM, Relay, held_out};
use crate::error::Result;
use crate::progress::count;
use crate::recipe::Init;
use crate::run::{Finished, Yield};
use base::Hasher;
use model::{ModelConfig, Weights};
use std::collections::BTreeMap;
use tokens::Loader;
use train::{METRICS_FILE, NextToken, Outcome, WEIGHTS_FILE};

/// The stage's name.
pub const NAME: &str = "04-pretrain";

/// Held-out tokens that are scored while training goes on; the judgement at the end takes all.
const CURVE_TOKENS: usize = 32_768;

impl Relay<'_> {
    /// The model's configuration under the run's tokenizer.
    pub fn config(&self, tokenizer: &Finished) -> ModelConfig {
        self.recipe.model.config(tokenizer.manifest.counts["vocab-size"] as usize)
    }

    /// Trains the base model.
    pub fn pretrain(&self, tokenizer: &Finished, mixture: &Finished) -> Result<Finished> {
        let settings = &self.recipe.pretrain;
        let copying = self.recipe.copying;
        let config = self.config(tokenizer);
        let done = self.perform(
            NAME,
            ALGORITHM,
            &(settings, copying, &config, self.recipe.model.init),
            &[mixture],
            |at, seed| {
                let length = config.max_seq_len;
                let order = seed.derive("order");
                let loader = Loader::open(&mixture.directory, "train", length, order)?
                    .limit_ids(config.vocab_size);
                let data =
                    Hasher::new().field(&mixture.digest().0).field(&order.0.to_le_bytes()).finish();
                let mut objective = NextToken::new(loader, data, settings)?.with_copying(
                    copying,
                    config.vocab_size,
                    seed.derive("copying"),
                )?;
                let seed_of_weights = seed.derive("weights");
                let init = match self.recipe.model.init {
                    Init::Copying => Weights::init_copying(&config, seed_of_weights)?,
                    Init::Random => Weights::init(&config, seed_of_weights)?,
                };
                let batch = settings.micro_batch_tokens;
                let curve = held_out::sample(&mixture.directory, length, CURVE_TOKENS, batch)?;
                let mut evaluate = |engine: &mut model::Engine, weights: &Weights, _: u64| {
                    let loss = train::held_out_loss(engine, weights, &curve.batches, self.stop)?;
                    let bits = loss.bits_per_byte(curve.bytes);
                    Ok(BTreeMap::from([
                        ("held-out-loss".to_owned(), loss.nats_per_token()),
                        ("held-out-bits-per-byte".to_owned(), bits),
                    ]))
                };
                let context = self.training(at);
                let outcome =
                    train::run(&mut objective, settings, init, &context, Some(&mut evaluate))?;
                Ok(trained(&outcome, "held-out-bits-per-byte"))
            },
        )?;
        self.rule(
            "size dial",
            &done,
            Made {
                question: "how large is the model and how long is it trained".into(),
                chosen: format!(
                    "depth {}: {} parameters, width {}; {} tokens read",
                    self.recipe.model.depth,
                    count(config.num_parameters() as u64),
                    config.d_model,
                    count(done.manifest.counts["tokens-seen"])
                ),
                reason: self.recipe.reasons.get("model").cloned().unwrap_or_default(),
                ..Made::default()
            },
        )?;
        Ok(done)
    }
}

/// What a finished training gives: its files, steps, tokens, losses and all that was measured last.
pub fn trained(outcome: &Outcome, headline: &str) -> Yield {
    let last = &outcome.last;
    let mut measures: BTreeMap<String, f64> = last.measures.clone();
    measures.extend(last.evaluation.clone());
    measures.insert("loss".into(), last.loss);
    let headline = match measures.get(headline) {
        Some(value) => format!(", {} {value:.3}", headline.replace('-', " ")),
        None => String::new(),
    };
    Yield {
        outputs: vec![WEIGHTS_FILE.into(), METRICS_FILE.into()],
        counts: BTreeMap::from([
            ("steps".into(), outcome.steps),
            ("tokens-seen".into(), last.tokens_seen),
        ]),
        summary: format!(
            "{} steps, {} tokens, loss {:.3}{headline}",
            count(outcome.steps),
            count(last.tokens_seen),
            last.loss
        ),
        measures,
    }
}
