//! What the model reads at once: whole sequences one after the other, without padding.

use crate::config::ModelConfig;
use crate::error::Error;

/// A place whose next token is scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Index into [`Batch::tokens`] of the token that the model has just read.
    pub row: u32,
    /// The token that should follow.
    pub token: u32,
}

/// Sequences laid end to end. Positions start at 0 in each, and attention stays inside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// All token ids, [t].
    pub tokens: Vec<u32>,
    /// Where each sequence starts in `tokens`, ascending from 0.
    pub segments: Vec<u32>,
    /// The places that are scored, in any order; the results are in the same order.
    pub targets: Vec<Target>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a sequence without targets.
    pub fn push(&mut self, tokens: &[u32]) -> &mut Self {
        if !tokens.is_empty() {
            self.segments.push(self.tokens.len() as u32);
            self.tokens.extend_from_slice(tokens);
        }
        self
    }

    /// Appends a sequence in which every token but the first is a target.
    pub fn push_scored(&mut self, tokens: &[u32]) -> &mut Self {
        self.push_masked(tokens, &vec![true; tokens.len()])
    }

    /// Appends a sequence in which the tokens under a true `loss_mask` are targets. The first token
    /// has nothing before it and is never one.
    pub fn push_masked(&mut self, tokens: &[u32], loss_mask: &[bool]) -> &mut Self {
        let start = self.tokens.len();
        self.push(tokens);
        let counted = tokens.iter().zip(loss_mask).enumerate().skip(1).filter(|(_, (_, on))| **on);
        self.targets
            .extend(counted.map(|(i, (&token, _))| Target { row: (start + i - 1) as u32, token }));
        self
    }

    /// A batch in which every token but each sequence's first is a target.
    pub fn from_sequences<S: AsRef<[u32]>>(sequences: &[S]) -> Self {
        let mut batch = Self::new();
        for sequence in sequences {
            batch.push_scored(sequence.as_ref());
        }
        batch
    }

    /// The range of each sequence in `tokens`.
    pub fn sequences(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let ends = self.segments.iter().skip(1).copied().chain([self.tokens.len() as u32]);
        self.segments.iter().zip(ends).map(|(&start, end)| start as usize..end as usize)
    }

    /// The position of each token in its sequence, [t].
    pub fn positions(&self) -> Vec<u32> {
        self.sequences().flat_map(|range| 0..range.len() as u32).collect()
    }

    /// Index of the last token of each sequence.
    pub fn last_rows(&self) -> Vec<u32> {
        self.sequences().map(|range| range.end as u32 - 1).collect()
    }

    /// Refuses what a model of this configuration cannot read.
    ///
    /// # Errors
    /// Segments that do not start at 0 and ascend, sequences longer than the model reads, token ids
    /// outside the vocabulary, targets outside the batch.
    pub fn validate(&self, config: &ModelConfig) -> Result<(), Error> {
        let malformed = |what, found: String, expected: &str| {
            Err(Error::MalformedBatch { what, found, expected: expected.to_owned() })
        };
        if self.tokens.is_empty() {
            return malformed("tokens", "empty".to_owned(), "at least one token");
        }
        let ascends = self.segments.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = self.segments.last().is_some_and(|&s| (s as usize) < self.tokens.len());
        if self.segments.first() != Some(&0) || !ascends || !inside {
            let expected = "starts that ascend from 0 and lie inside the batch";
            return malformed("segments", format!("{:?}", self.segments), expected);
        }
        let max_seq_len = config.max_seq_len;
        for (sequence, range) in self.sequences().enumerate() {
            if range.len() > max_seq_len {
                return Err(Error::SequenceTooLong { sequence, found: range.len(), max_seq_len });
            }
        }
        for (i, &token) in self.tokens.iter().enumerate() {
            check_token(token, config, || format!("position {i}"))?;
        }
        for (i, target) in self.targets.iter().enumerate() {
            check_token(target.token, config, || format!("target {i}"))?;
            if target.row as usize >= self.tokens.len() {
                let expected = format!("a row below {}", self.tokens.len());
                return malformed("target row", target.row.to_string(), &expected);
            }
        }
        Ok(())
    }
}

/// Refuses a token id outside the vocabulary.
pub(crate) fn check_token(
    token: u32,
    config: &ModelConfig,
    place: impl FnOnce() -> String,
) -> Result<(), Error> {
    if (token as usize) < config.vocab_size {
        return Ok(());
    }
    Err(Error::TokenOutOfRange { place: place(), found: token, vocab_size: config.vocab_size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ModelConfig {
        ModelConfig::from_depth(0, 10, 4)
    }

    #[test]
    fn masked_tokens_are_scored_from_the_row_before_them() {
        let mut batch = Batch::new();
        batch.push_masked(&[1, 2, 3], &[true, false, true]).push_scored(&[4, 5]).push(&[6]);
        assert_eq!(batch.segments, [0, 3, 5]);
        assert_eq!(batch.positions(), [0, 1, 2, 0, 1, 0]);
        assert_eq!(batch.last_rows(), [2, 4, 5]);
        let expected = [Target { row: 1, token: 3 }, Target { row: 3, token: 5 }];
        assert_eq!(batch.targets, expected);
        batch.validate(&config()).unwrap();
    }

    #[test]
    fn malformed_batches_are_refused_with_the_place() {
        let check = |batch: Batch, part: &str| {
            let message = batch.validate(&config()).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        };
        let good = Batch::from_sequences(&[[1u32, 2], [3, 4]]);
        check(Batch::new(), "at least one token");
        check(Batch { segments: vec![], ..good.clone() }, "segments");
        check(Batch { segments: vec![1, 2], ..good.clone() }, "segments");
        check(Batch { segments: vec![0, 0], ..good.clone() }, "segments");
        check(Batch { segments: vec![0, 4], ..good.clone() }, "segments");
        check(Batch { tokens: vec![1, 99, 2, 3], ..good.clone() }, "position 1");
        check(Batch { targets: vec![Target { row: 9, token: 1 }], ..good.clone() }, "row");
        check(Batch { targets: vec![Target { row: 0, token: 10 }], ..good }, "target 0");
        check(Batch::from_sequences(&[[1u32, 2, 3, 4, 5]]), "at most 4");
    }
}
