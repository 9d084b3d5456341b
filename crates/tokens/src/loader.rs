//! Windows of the training shards, in an order that is a pure function of (seed, position).
//!
//! The shards are read as one row of tokens. Window w is the tokens from `w * seq_len` on, one more than
//! `seq_len`, so that every token but the first is predicted once an epoch. Each epoch visits every
//! window once, in an order of its own. There is no state to save: resuming is asking for the next
//! position.

use crate::Error;
use crate::permutation::Permutation;
use crate::shards::{Shard, open_all};
use base::Seed;
use std::path::{Path, PathBuf};

/// A piece of the row of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// `seq_len + 1` ids: rows 0 to `seq_len - 1` are read, rows 1 to `seq_len` are predicted.
    pub tokens: Vec<u32>,
    /// Where documents start among the first `seq_len` ids, rising; the first is always 0, also where
    /// the window starts inside a document. Positions restart there and attention stays inside.
    pub segments: Vec<u32>,
}

/// Reads windows.
#[derive(Debug)]
pub struct Loader {
    shards: Vec<Shard>,
    /// Where each shard starts in the row of tokens.
    shard_starts: Vec<u64>,
    num_tokens: u64,
    seq_len: usize,
    seed: Seed,
    vocab_size: usize,
}

impl Loader {
    /// Opens the shards `PREFIX-*.idx` of `directory`.
    ///
    /// # Errors
    /// A shard is missing or corrupted, or all together have no whole window.
    pub fn open(directory: &Path, prefix: &str, seq_len: usize, seed: Seed) -> Result<Self, Error> {
        let shards = open_all(directory, prefix)?;
        let mut num_tokens = 0;
        let mut shard_starts = Vec::with_capacity(shards.len());
        for shard in &shards {
            shard_starts.push(num_tokens);
            num_tokens += shard.num_tokens();
        }
        let needed = seq_len.max(1) as u64 + 1;
        if num_tokens < needed {
            let (directory, prefix) = (directory.to_owned(), prefix.to_owned());
            return Err(Error::TooFewTokens { directory, prefix, found: num_tokens, needed });
        }
        let (seq_len, vocab_size) = (seq_len.max(1), u32::MAX as usize);
        Ok(Self { shards, shard_starts, num_tokens, seq_len, seed, vocab_size })
    }

    /// Refuses shards with ids that a vocabulary of this size does not have.
    pub fn limit_ids(self, vocab_size: usize) -> Self {
        Self { vocab_size, ..self }
    }

    /// Windows in an epoch.
    pub fn num_windows(&self) -> u64 {
        (self.num_tokens - 1) / self.seq_len as u64
    }

    /// Tokens in the shards.
    pub fn num_tokens(&self) -> u64 {
        self.num_tokens
    }

    /// Tokens that a window is read for.
    pub fn seq_len(&self) -> usize {
        self.seq_len
    }

    /// The epoch that a position belongs to.
    pub fn epoch(&self, position: u64) -> u64 {
        position / self.num_windows()
    }

    /// The window at a position; positions count on through the epochs without end.
    ///
    /// # Errors
    /// A shard cannot be read, or holds an id outside the vocabulary.
    pub fn window(&self, position: u64) -> Result<Window, Error> {
        let windows = self.num_windows();
        let order = Permutation::new(windows, self.seed.at(position / windows));
        self.window_in_order(order.at(position % windows))
    }

    /// The window that starts at `index * seq_len`, without the shuffle: for measuring on all tokens.
    ///
    /// # Errors
    /// As [`Loader::window`].
    pub fn window_in_order(&self, index: u64) -> Result<Window, Error> {
        let start = index * self.seq_len as u64;
        let mut tokens = Vec::with_capacity(self.seq_len + 1);
        let mut segments = vec![0];
        let first = self.shard_starts.partition_point(|&shard| shard <= start).saturating_sub(1);
        for (shard, &shard_start) in self.shards.iter().zip(&self.shard_starts).skip(first) {
            let missing = self.seq_len + 1 - tokens.len();
            if missing == 0 {
                break;
            }
            let from = (start + tokens.len() as u64).saturating_sub(shard_start);
            self.segments_in(shard, from, tokens.len(), &mut segments);
            let read = shard.tokens(from, missing)?;
            self.check_ids(shard, &read)?;
            tokens.extend(read);
        }
        Ok(Window { tokens, segments })
    }

    /// Adds the documents of `shard` that start at or after its token `from`, which is row `row`.
    fn segments_in(&self, shard: &Shard, from: u64, row: usize, segments: &mut Vec<u32>) {
        let starts = &shard.starts()[..shard.num_sequences()];
        for &start in &starts[starts.partition_point(|&start| start < from)..] {
            let at = (start - from) as usize + row;
            if at >= self.seq_len {
                break;
            }
            if segments.last() != Some(&(at as u32)) {
                segments.push(at as u32);
            }
        }
    }

    fn check_ids(&self, shard: &Shard, ids: &[u32]) -> Result<(), Error> {
        match ids.iter().find(|&&id| id as usize >= self.vocab_size) {
            None => Ok(()),
            Some(id) => Err(Error::Shard {
                path: PathBuf::from(shard.path()),
                expected: format!("ids below {}", self.vocab_size),
                found: id.to_string(),
            }),
        }
    }
}
