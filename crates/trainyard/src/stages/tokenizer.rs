//! Stage 2: a vocabulary from a sample of the documents.

use super::{ALGORITHM, Relay};
use crate::error::Result;
use crate::progress::bytes;
use crate::run::{Finished, Yield};
use std::collections::BTreeMap;
use tokens::{TokenizerJob, build_tokenizer};

/// The stage's name.
pub const NAME: &str = "02-tokenizer";
/// The tokenizer in the stage's directory.
pub const FILE: &str = "tokenizer.json";

impl Relay<'_> {
    /// Draws the sample and trains.
    pub fn tokenizer(&self, documents: &Finished) -> Result<Finished> {
        let settings = (&self.recipe.tokenizer, &self.recipe.mixture.shares);
        self.perform(NAME, ALGORITHM, &settings, &[documents], |out, seed| {
            let job = TokenizerJob {
                settings: settings.0,
                shares: settings.1,
                seed,
                out,
                threads: self.threads(),
                observer: self.screen,
                stop: self.stop,
            };
            let (_, summary) = build_tokenizer(&job, corpus::read(&documents.directory)?)?;
            base::write_json(&out.join("summary.json"), &summary)?;
            let sampled: u64 = summary.sample.values().map(|s| s.bytes).sum();
            let each = summary.sample.iter().filter(|(_, s)| s.documents > 0);
            let each = each.map(|(c, s)| format!("{} {:.2}", c.name(), s.bytes_per_token));
            Ok(Yield {
                outputs: vec![FILE.into(), "summary.json".into()],
                counts: BTreeMap::from([
                    ("vocab-size".into(), summary.vocab_size as u64),
                    ("sample-bytes".into(), sampled),
                ]),
                measures: BTreeMap::new(),
                summary: format!(
                    "{} -> {} tokens; bytes per token: {}",
                    bytes(sampled),
                    summary.vocab_size,
                    each.collect::<Vec<_>>().join(", ")
                ),
            })
        })
    }
}
