//! Fine-tuning on conversations: the loss counts the assistant's tokens alone.
//!
//! Conversations are packed into rows of one capacity; a row is a micro-batch, in which every
//! conversation keeps its own positions and attention. Each epoch takes all rows once, in an order of its
//! own that is a pure function of (seed, epoch).

use crate::objective::{Objective, ObjectiveError, Sums};
use crate::settings::Settings;
use crate::{Error, learn_targets};
use base::{Digest, Hasher, Seed};
use model::{Batch, Engine, Weights};
use serde::{Deserialize, Serialize};
use tokens::pack::pack;
use tokens::{Cut, Encoded};

/// What became of the conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Packed {
    /// Conversations given.
    pub conversations: usize,
    /// Of these, cut to the longest sequence; what is left of the assistant's text is learned.
    pub shortened: usize,
    /// Of these, dropped because nothing in them (or left of them) is the assistant's.
    pub dropped: usize,
    /// Rows that they were packed into.
    pub rows: usize,
    /// Tokens in the rows.
    pub tokens: usize,
    /// Of these, counted in the loss.
    pub learned_tokens: usize,
}

/// Cross-entropy of the assistant's tokens in packed conversations.
pub struct Supervised {
    rows: Vec<Batch>,
    packed: Packed,
    digest: Digest,
    seed: Seed,
    capacity: usize,
    rows_per_step: usize,
}

const NAME: &str = "supervised";

impl Supervised {
    /// Packs the conversations into rows of `micro-batch-tokens`; longer ones than that or than
    /// `max_seq_len` are cut and counted.
    ///
    /// # Errors
    /// [`Error::NoData`] when nothing is left to learn.
    pub fn new(
        conversations: &[Encoded],
        max_seq_len: usize,
        seed: Seed,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let capacity = settings.micro_batch_tokens;
        let (kept, mut packed) = cut(conversations, capacity.min(max_seq_len));
        let lengths: Vec<usize> = kept.iter().map(Encoded::len).collect();
        let rows: Vec<Batch> = pack(&lengths, capacity)
            .rows
            .into_iter()
            .map(|mut row| {
                row.sort_unstable();
                let mut batch = Batch::new();
                for index in row {
                    batch.push_masked(&kept[index].token_ids, &kept[index].loss_mask);
                }
                batch
            })
            .collect();
        if rows.is_empty() {
            let reason = format!("none of {packed:?} has a token to learn");
            return Err(Error::NoData { objective: NAME, reason });
        }
        packed.rows = rows.len();
        packed.tokens = rows.iter().map(|row| row.tokens.len()).sum();
        packed.learned_tokens = rows.iter().map(|row| row.targets.len()).sum();
        let digest = digest(&rows, seed);
        let rows_per_step = settings.micro_batches();
        Ok(Self { rows, packed, digest, seed, capacity, rows_per_step })
    }

    /// What became of the conversations.
    pub fn packed(&self) -> Packed {
        self.packed
    }

    /// The row at a position; positions count on through the epochs without end.
    fn row(&self, position: u64, order: &mut Order) -> &Batch {
        let rows = self.rows.len() as u64;
        &self.rows[order.of(position / rows, self)[(position % rows) as usize]]
    }
}

/// The order of one epoch, kept while positions stay in it.
#[derive(Default)]
struct Order {
    epoch: Option<u64>,
    rows: Vec<usize>,
}

impl Order {
    fn of(&mut self, epoch: u64, objective: &Supervised) -> &[usize] {
        if self.epoch != Some(epoch) {
            self.rows = (0..objective.rows.len()).collect();
            objective.seed.at(epoch).rng().shuffle(&mut self.rows);
            self.epoch = Some(epoch);
        }
        &self.rows
    }
}

/// The conversations in which something is learned, cut to `length`.
fn cut(conversations: &[Encoded], length: usize) -> (Vec<Encoded>, Packed) {
    let mut packed = Packed { conversations: conversations.len(), ..Packed::default() };
    let mut kept = Vec::with_capacity(conversations.len());
    for conversation in conversations {
        let mut conversation = conversation.clone();
        let cut = conversation.truncate(length);
        // The first token has nothing before it from which it could be predicted.
        if !conversation.loss_mask.iter().skip(1).any(|&learned| learned) {
            packed.dropped += 1;
            continue;
        }
        packed.shortened += usize::from(cut == Cut::Shortened);
        kept.push(conversation);
    }
    (kept, packed)
}

fn digest(rows: &[Batch], seed: Seed) -> Digest {
    let mut hasher = Hasher::new();
    hasher.field(&seed.0.to_le_bytes());
    for row in rows {
        let bytes = |values: &mut dyn Iterator<Item = u32>| -> Vec<u8> {
            values.flat_map(u32::to_le_bytes).collect()
        };
        hasher.field(&bytes(&mut row.tokens.iter().copied()));
        hasher.field(&bytes(&mut row.segments.iter().copied()));
        hasher.field(&bytes(&mut row.targets.iter().map(|target| target.row)));
    }
    hasher.finish()
}

impl Objective for Supervised {
    type Work = Batch;

    fn name(&self) -> &str {
        NAME
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn max_tokens(&self) -> usize {
        self.capacity
    }

    fn steps_per_epoch(&self) -> f64 {
        self.rows.len() as f64 / self.rows_per_step as f64
    }

    fn work(&self, step: u64) -> Result<Vec<Batch>, ObjectiveError> {
        let first = step * self.rows_per_step as u64;
        let mut order = Order::default();
        let positions = first..first + self.rows_per_step as u64;
        Ok(positions.map(|position| self.row(position, &mut order).clone()).collect())
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

    /// A prompt of one token and an answer of `answer` tokens that start at `first`.
    fn conversation(first: u32, answer: usize) -> Encoded {
        Encoded {
            token_ids: (0..=answer as u32).map(|i| first + i).collect(),
            loss_mask: (0..=answer).map(|i| i > 0).collect(),
            formatting: vec![false; answer + 1],
        }
    }

    fn settings(micro_batch_tokens: usize, micro_batches: usize) -> Settings {
        let global_batch_tokens = micro_batch_tokens * micro_batches;
        Settings { micro_batch_tokens, global_batch_tokens, ..Settings::default() }
    }

    #[test]
    fn conversations_keep_apart_in_their_row() {
        let conversations = [conversation(10, 2), conversation(20, 1)];
        let objective = Supervised::new(&conversations, 8, Seed(1), &settings(8, 1)).unwrap();
        let row = &objective.work(0).unwrap()[0];
        assert_eq!(row.tokens, [10, 11, 12, 20, 21]);
        assert_eq!(row.segments, [0, 3]);
        let targets: Vec<(u32, u32)> = row.targets.iter().map(|t| (t.row, t.token)).collect();
        assert_eq!(targets, [(0, 11), (1, 12), (3, 21)]);
        assert_eq!(objective.packed().learned_tokens, 3);
    }

    #[test]
    fn long_conversations_are_cut_and_counted() {
        let mut prompt_only = conversation(40, 9);
        prompt_only.loss_mask = (0..10).map(|i| i > 6).collect();
        let conversations = [conversation(10, 9), prompt_only, conversation(30, 1)];
        let objective = Supervised::new(&conversations, 4, Seed(1), &settings(6, 1)).unwrap();
        let packed = objective.packed();
        assert_eq!((packed.shortened, packed.dropped, packed.rows), (1, 1, 1));
        assert_eq!((packed.tokens, packed.learned_tokens), (6, 4));
    }

    #[test]
    fn nothing_to_learn_is_an_error_and_no_loss_of_zero() {
        let mut silent = conversation(1, 3);
        silent.loss_mask.fill(false);
        let error = Supervised::new(&[silent], 8, Seed(1), &settings(8, 1)).err().unwrap();
        assert!(matches!(error, Error::NoData { .. }), "{error}");
    }

    #[test]
    fn each_epoch_takes_every_row_once_in_an_order_of_its_own() {
        let conversations: Vec<Encoded> = (0..10).map(|i| conversation(100 * i, 3)).collect();
        let objective = Supervised::new(&conversations, 4, Seed(7), &settings(4, 3)).unwrap();
        assert_eq!(objective.steps_per_epoch(), 10.0 / 3.0);
        // 10 steps of 3 rows are 3 epochs of 10 rows, whose boundaries lie inside steps.
        let order: Vec<u32> = (0..10)
            .flat_map(|step| objective.work(step).unwrap())
            .map(|row| row.tokens[0] / 100)
            .collect();
        let epochs: Vec<&[u32]> = order.chunks(10).collect();
        for epoch in &epochs {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
    }
}
