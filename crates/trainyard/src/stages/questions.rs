//! Stage 5: questions with known answers, derived from the cleaned documents. What they ask about is
//! either learned from or measured with, never both.

use super::relay::Made;
use super::{ALGORITHM, Relay};
use crate::error::Result;
use crate::progress::count;
use crate::run::{Finished, Yield};
use posttrain::derive::{self, CorpusSplit, HELD_OUT_FILE, TRAIN_FILE};
use std::collections::BTreeMap;

/// The stage's name.
pub const NAME: &str = "05-questions";

impl Relay<'_> {
    /// Derives the items.
    pub fn questions(&self, documents: &Finished) -> Result<Finished> {
        let settings = &self.recipe.questions;
        let done = self.perform(NAME, ALGORITHM, settings, &[documents], |out, seed| {
            let mut failed = None;
            let documents = corpus::read(&documents.directory)?;
            // The iterator ends at a damaged shard; the error is raised below.
            let whole = documents.map_while(|each| each.map_err(|error| failed = Some(error)).ok());
            let split = CorpusSplit {
                seed: self.seed(super::corpus::NAME),
                held_out_share: self.recipe.corpus.held_out_share,
            };
            let summary =
                derive::derive(settings, whole, split, seed, out, self.screen, self.stop)?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            base::write_json(&out.join("summary.json"), &summary)?;
            Ok(Yield {
                outputs: vec![TRAIN_FILE.into(), HELD_OUT_FILE.into(), "summary.json".into()],
                counts: BTreeMap::from([
                    ("candidates".into(), summary.candidates),
                    ("train-items".into(), summary.train),
                    ("held-out-items".into(), summary.held_out),
                ]),
                measures: BTreeMap::new(),
                summary: format!(
                    "{} questions found -> {} to learn from, {} to measure with",
                    count(summary.candidates),
                    count(summary.train),
                    count(summary.held_out)
                ),
            })
        })?;
        self.rule("split by subject", &done, Made {
            question: "which questions are learned from and which are measured with".into(),
            chosen: done.timing.summary.clone(),
            reason: "all questions about one thing are on one side, so that answers cannot be recalled"
                .into(),
            ..Made::default()
        })?;
        Ok(done)
    }
}
