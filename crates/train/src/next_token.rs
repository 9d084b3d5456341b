//! Pretraining: every token of the shards is predicted from those before it in its document.

use crate::copying::{self, Drills};
use crate::objective::{Objective, ObjectiveError, Sums};
use crate::settings::Settings;
use crate::{Error, learn_targets};
use base::{Digest, Hasher, Seed};
use model::{Batch, Engine, Target, Weights};
use tokens::{Loader, Window};

/// Cross-entropy of the next token over windows of a [`Loader`].
pub struct NextToken {
    loader: Loader,
    digest: Digest,
    /// Windows in a micro-batch.
    windows: usize,
    micro_batches: usize,
    drills: Option<Drills>,
}

impl NextToken {
    /// `data` is the digest of the shards and of the seed of their order.
    ///
    /// # Errors
    /// A micro-batch has no room for one window, or the first window cannot be read.
    pub fn new(loader: Loader, data: Digest, settings: &Settings) -> Result<Self, Error> {
        let windows = settings.micro_batch_tokens / loader.seq_len();
        if windows == 0 {
            return Err(Error::Setting {
                name: "micro-batch-tokens",
                found: settings.micro_batch_tokens.to_string(),
                expected: "at least the length of a sequence",
            });
        }
        let per_micro_batch = windows * loader.seq_len();
        let micro_batches = (settings.global_batch_tokens / per_micro_batch).max(1);
        let mut hasher = Hasher::new();
        hasher.field(&data.0).field(&loader.num_windows().to_le_bytes());
        // Another seed of the order shows here, should the caller's digest leave it out.
        let first = loader.window(0).map_err(|source| Error::Objective {
            objective: NAME.to_owned(),
            step: 1,
            source: source.into(),
        })?;
        first.tokens.iter().for_each(|token| {
            hasher.field(&token.to_le_bytes());
        });
        Ok(Self { digest: hasher.finish(), loader, windows, micro_batches, drills: None })
    }

    /// Puts copying drills in the place of some windows.
    ///
    /// # Errors
    /// The share is no share.
    pub fn with_copying(
        mut self,
        settings: copying::Settings,
        vocab_size: usize,
        seed: Seed,
    ) -> Result<Self, Error> {
        let drills = Drills::new(settings, vocab_size, seed)?;
        let mut hasher = Hasher::new();
        hasher.field(&self.digest.0);
        for number in [settings.share.to_bits(), seed.0, vocab_size as u64] {
            hasher.field(&number.to_le_bytes());
        }
        self.digest = hasher.finish();
        self.drills = Some(drills);
        Ok(self)
    }

    fn windows_per_step(&self) -> usize {
        self.windows * self.micro_batches
    }

    fn micro_batch(&self, first: u64) -> Result<Batch, tokens::Error> {
        let mut batch = Batch::new();
        for position in first..first + self.windows as u64 {
            match &self.drills {
                Some(drills) if drills.takes(position) => {
                    drills.append(&mut batch, position, self.loader.seq_len());
                }
                _ => append(&mut batch, &self.loader.window(position)?),
            }
        }
        Ok(batch)
    }
}

const NAME: &str = "next-token";

/// Appends a window: its last token is only predicted. The row before a document's start predicts the
/// token that opens it, which is how a model learns to end.
pub(crate) fn append(batch: &mut Batch, window: &Window) {
    let start = batch.tokens.len() as u32;
    let rows = window.tokens.len().saturating_sub(1);
    batch.tokens.extend_from_slice(&window.tokens[..rows]);
    batch.segments.extend(window.segments.iter().map(|segment| start + segment));
    let predicted = window.tokens.iter().skip(1);
    batch.targets.extend(
        predicted.enumerate().map(|(row, &token)| Target { row: start + row as u32, token }),
    );
}

impl Objective for NextToken {
    type Work = Batch;

    fn name(&self) -> &str {
        NAME
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn max_tokens(&self) -> usize {
        self.windows * self.loader.seq_len()
    }

    fn steps_per_epoch(&self) -> f64 {
        self.loader.num_windows() as f64 / self.windows_per_step() as f64
    }

    fn work(&self, step: u64) -> Result<Vec<Batch>, ObjectiveError> {
        let first = step * self.windows_per_step() as u64;
        (0..self.micro_batches as u64)
            .map(|i| Ok(self.micro_batch(first + i * self.windows as u64)?))
            .collect()
    }

    fn weight(&self, work: &Batch) -> f64 {
        work.targets.len() as f64
    }

    fn tokens(&self, work: &Batch) -> u64 {
        work.tokens.len() as u64
    }

    fn accumulate(
        &mut self,
        engine: &mut Engine,
        weights: &Weights,
        work: &Batch,
        scale: f64,
    ) -> Result<Sums, ObjectiveError> {
        learn_targets(engine, weights, work, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_become_segments_and_every_row_has_a_target() {
        let mut batch = Batch::new();
        append(&mut batch, &Window { tokens: vec![5, 6, 0, 7], segments: vec![0, 2] });
        append(&mut batch, &Window { tokens: vec![1, 2, 3, 4], segments: vec![0] });
        assert_eq!(batch.tokens, [5, 6, 0, 1, 2, 3]);
        assert_eq!(batch.segments, [0, 2, 3]);
        let targets: Vec<(u32, u32)> = batch.targets.iter().map(|t| (t.row, t.token)).collect();
        assert_eq!(targets, [(0, 6), (1, 0), (2, 7), (3, 2), (4, 3), (5, 4)]);
    }
}
