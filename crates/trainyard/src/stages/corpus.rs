//! Stage 1: sources to documents.

use super::Relay;
use super::relay::Made;
use crate::error::{Failure, Kind, Result};
use crate::progress::{bytes, count};
use crate::run::{Finished, Yield};
use std::collections::BTreeMap;

/// The stage's name.
pub const NAME: &str = "01-corpus";

impl Relay<'_> {
    /// Reads and cleans.
    pub fn corpus(&self) -> Result<Finished> {
        let settings = &self.recipe.corpus;
        self.screen.begin(NAME);
        let seed = self.seed(NAME);
        let inputs = corpus::inputs(settings, &self.base, seed).map_err(super::corpus_failure)?;
        let inputs: BTreeMap<_, _> = inputs.into_iter().collect();
        let done = self.perform_on(NAME, corpus::ALGORITHM, settings, inputs, |at, seed| {
            let summary = corpus::build(
                settings,
                &self.base,
                seed,
                at,
                self.threads(),
                self.screen,
                self.stop,
            )
            .map_err(super::corpus_failure)?;
            self.refuse_generated_alone(&summary.ledger)?;
            let shards = (0..summary.shards).map(|n| format!("documents-{n:05}.parquet"));
            let read: u64 = summary.ledger.sources.iter().map(|source| source.bytes_read).sum();
            Ok(Yield {
                outputs: shards.chain(["ledger.json".into(), "examples.jsonl".into()]).collect(),
                counts: BTreeMap::from([
                    ("documents-read".into(), summary.documents_read),
                    ("bytes-read".into(), read),
                    ("documents".into(), summary.documents),
                    ("bytes".into(), summary.bytes),
                    ("held-out-documents".into(), summary.held_out_documents),
                ]),
                measures: BTreeMap::new(),
                summary: format!(
                    "{} documents, {} -> {} documents, {} of text",
                    count(summary.documents_read),
                    bytes(read),
                    count(summary.documents),
                    bytes(summary.bytes),
                ),
            })
        })?;
        self.rule(
            "cleaning rules",
            &done,
            Made {
                question: "which documents are worth reading".into(),
                chosen: done.timing.summary.clone(),
                reason: "thresholds of the recipe; every rule's count is in ledger.json".into(),
                ..Made::default()
            },
        )?;
        Ok(done)
    }

    /// A corpus of which all is generated is nobody's data: most often the files were forgotten.
    fn refuse_generated_alone(&self, ledger: &corpus::Ledger) -> Result<()> {
        let written = |source: &&corpus::Source| source.kind != corpus::Kind::Arithmetic;
        let written: Vec<_> = self.recipe.corpus.sources.iter().filter(written).collect();
        let kept =
            |name: &str| ledger.sources.iter().any(|s| s.name == name && s.documents_kept > 0);
        if written.is_empty() || written.iter().any(|source| kept(&source.name)) {
            return Ok(());
        }
        let names: Vec<_> = written.iter().map(|s| format!("{} ({})", s.name, s.path)).collect();
        let message = format!("no document comes from the sources {}", names.join(", "));
        Err(Failure::new(Kind::Data, message)
            .hint("put files there, or correct `path` and `include` in the recipe"))
    }
}
