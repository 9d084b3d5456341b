//! Stage 3: how much of each category is read. Canaries are planted here, after masking and
//! deduplication, so that they are really read.

use super::relay::Made;
use super::{ALGORITHM, Relay, tokenizer};
use crate::error::Result;
use crate::progress::count;
use crate::run::{Finished, Yield};
use judge::redteam::{Canary, canaries, documents as planted};
use std::collections::BTreeMap;
use tokens::Tokenizer;
use tokens::mixture::{Extra, MixJob, mix};

/// The stage's name.
pub const NAME: &str = "03-mixture";

impl Relay<'_> {
    /// The secrets that the red team will look for.
    pub fn canaries(&self) -> Vec<Canary> {
        canaries(&self.recipe.redteam.canaries, self.seed("canaries"))
    }

    /// Chooses documents by shares and writes them as token shards.
    pub fn mixture(&self, documents: &Finished, tokenizer: &Finished) -> Result<Finished> {
        let settings = &self.recipe.mixture;
        let canaries = self.canaries();
        let inputs = [documents, tokenizer];
        let done =
            self.perform(NAME, ALGORITHM, &(settings, &canaries), &inputs, |out, seed| {
                let tokenizer = Tokenizer::load(&tokenizer.path(tokenizer::FILE))?;
                let extra: Vec<Extra> = planted(&canaries)
                    .into_iter()
                    .map(|document| Extra { document, repeats: 1 })
                    .collect();
                let job = MixJob {
                    settings,
                    tokenizer: &tokenizer,
                    extra: &extra,
                    seed,
                    out,
                    threads: self.threads(),
                    observer: self.screen,
                    stop: self.stop,
                };
                let summary = mix(&job, corpus::read(&documents.directory)?)?;
                let shards = summary.train_shards.iter().chain(&summary.held_out_shards);
                let mut outputs: Vec<String> = shards
                    .flat_map(|name| [format!("{name}.bin"), format!("{name}.idx")])
                    .collect();
                let lists = ["mixture.json", "train-documents.jsonl", "held-out-documents.jsonl"];
                outputs.extend(lists.map(str::to_owned));
                let reached = summary.categories.iter().filter(|(_, c)| c.wanted_share > 0.0);
                let reached = reached.map(|(category, c)| {
                    let (wanted, reached) = (100.0 * c.wanted_share, 100.0 * c.reached_share);
                    format!(
                        "{} {reached:.0}% of {wanted:.0}% ({:.1} epochs)",
                        category.name(),
                        c.epochs
                    )
                });
                let held_out: u64 = summary.held_out.values().map(|s| s.tokens).sum();
                Ok(Yield {
                    outputs,
                    counts: BTreeMap::from([
                        ("train-tokens".into(), summary.train.tokens),
                        ("train-documents".into(), summary.train.documents),
                        ("held-out-tokens".into(), held_out),
                        ("planted-documents".into(), summary.extra.documents),
                    ]),
                    measures: BTreeMap::new(),
                    summary: format!(
                        "{} tokens to read: {}; {} held out",
                        count(summary.train.tokens),
                        reached.collect::<Vec<_>>().join(", "),
                        count(held_out)
                    ),
                })
            })?;
        self.rule(
            "planting of canaries",
            &done,
            Made {
                question: "which secrets are planted, to measure memorising".into(),
                options: vec!["none".into(), "canaries under the run's seed".into()],
                chosen: format!("{} canaries, controls included", canaries.len()),
                reason: "what the model memorises must be measured on text that it has really read"
                    .into(),
            },
        )?;
        Ok(done)
    }
}
