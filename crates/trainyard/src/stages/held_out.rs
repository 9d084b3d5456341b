//! Held-out text for the curve of pretraining: whole documents, none of them long, spread evenly over
//! all of them.

use crate::error::Result;
use model::Batch;
use std::path::Path;
use tokens::mixture::read_rows;
use tokens::shards::open_all;
use train::batches_of;

/// Text that is scored while training goes on.
pub struct HeldOut {
    /// The tokens, each a target once.
    pub batches: Vec<Batch>,
    /// Bytes of the text that they stand for.
    pub bytes: u64,
}

/// Takes about `max_tokens` tokens. Batches have at most `batch_tokens`.
pub fn sample(
    mixture: &Path,
    max_seq_len: usize,
    max_tokens: usize,
    batch_tokens: usize,
) -> Result<HeldOut> {
    let mut rows = read_rows(mixture, "held-out")?;
    let longest = rows.iter().map(|row| row.tokens).min().unwrap_or(0).max(max_tokens as u64 / 16);
    rows.retain(|row| row.tokens <= longest);
    let total: u64 = rows.iter().map(|row| row.tokens).sum();
    let every = (total as usize / max_tokens.max(1)).max(1);
    let (mut sequences, mut bytes, mut tokens) = (Vec::new(), 0, 0);
    let mut row = rows.iter().enumerate().filter(|(i, _)| i % every == 0).map(|(_, row)| row);
    let shards = open_all(mixture, "held-out")?;
    while let Some(row) = row.next().filter(|_| tokens < max_tokens as u64) {
        let Some(mut index) = row.sequence else { continue };
        let shard = shards.iter().find(|shard| {
            let here = shard.num_sequences() as u64;
            let found = index < here;
            index -= if found { 0 } else { here };
            found
        });
        if let Some(shard) = shard {
            sequences.push(shard.sequence(index as usize)?);
            bytes += row.bytes;
            tokens += row.tokens;
        }
    }
    Ok(HeldOut { batches: batches_of(&sequences, max_seq_len, batch_tokens), bytes })
}
