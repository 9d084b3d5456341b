//! Loss on text that was not read in training.

use base::{Interrupted, Stop};
use model::{Batch, Engine, Weights};
use serde::{Deserialize, Serialize};

/// The loss over some batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HeldOutLoss {
    /// Summed negative log-probability of the targets, in nats.
    pub nats: f64,
    /// How many targets there were.
    pub targets: u64,
}

impl HeldOutLoss {
    /// Mean loss in nats per target; 0 without targets.
    pub fn nats_per_token(&self) -> f64 {
        self.nats / self.targets.max(1) as f64
    }

    /// Bits per byte of the text that the targets stand for, which is `bytes` long.
    pub fn bits_per_byte(&self, bytes: u64) -> f64 {
        self.nats / std::f64::consts::LN_2 / bytes.max(1) as f64
    }
}

/// Why a held-out loss could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum HeldOutError {
    /// It was asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The model refused a batch.
    #[error(transparent)]
    Model(#[from] model::Error),
}

/// Sums the loss over all targets of the batches, in their order.
///
/// # Errors
/// A batch does not fit the engine's plan, or a stop was asked for.
pub fn held_out_loss(
    engine: &mut Engine,
    weights: &Weights,
    batches: &[Batch],
    stop: &Stop,
) -> Result<HeldOutLoss, HeldOutError> {
    let mut loss = HeldOutLoss::default();
    for batch in batches {
        stop.check()?;
        let scores = engine.scores(weights, batch)?;
        loss.nats -= scores.log_prob.iter().map(|&log_prob| f64::from(log_prob)).sum::<f64>();
        loss.targets += batch.targets.len() as u64;
    }
    Ok(loss)
}

/// Lays sequences out in batches of at most `max_tokens`, with every token but each sequence's first as a
/// target exactly once. A sequence longer than `max_seq_len` is cut into windows that overlap by one
/// token: the last of one is read again as the first of the next.
pub fn batches_of<S: AsRef<[u32]>>(
    sequences: &[S],
    max_seq_len: usize,
    max_tokens: usize,
) -> Vec<Batch> {
    let longest = max_seq_len.min(max_tokens).max(2);
    let mut batches: Vec<Batch> = Vec::new();
    for sequence in sequences {
        let sequence = sequence.as_ref();
        let mut start = 0;
        while start + 1 < sequence.len() {
            let window = &sequence[start..sequence.len().min(start + longest)];
            match batches.last_mut() {
                Some(batch) if batch.tokens.len() + window.len() <= max_tokens => {
                    batch.push_scored(window);
                }
                _ => batches.push(Batch::from_sequences(&[window])),
            }
            start += longest - 1;
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_but_the_first_is_scored_once() {
        let long: Vec<u32> = (0..11).collect();
        let sequences = [long.as_slice(), &[20], &[], &[30, 31, 32]];
        let batches = batches_of(&sequences, 4, 10);
        let mut scored: Vec<u32> =
            batches.iter().flat_map(|b| b.targets.iter().map(|t| t.token)).collect();
        scored.sort_unstable();
        assert_eq!(scored, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31, 32]);
        for batch in &batches {
            assert!(batch.tokens.len() <= 10);
            assert!(batch.sequences().all(|range| (2..=4).contains(&range.len())));
            // A target follows its row in the sequence.
            assert!(batch.targets.iter().all(|t| batch.tokens[t.row as usize] + 1 == t.token));
        }
    }

    #[test]
    fn figures_follow_from_the_sum() {
        let loss = HeldOutLoss { nats: 8.0 * std::f64::consts::LN_2, targets: 4 };
        assert_eq!(loss.nats_per_token(), 2.0 * std::f64::consts::LN_2);
        assert_eq!(loss.bits_per_byte(16), 0.5);
        assert_eq!(HeldOutLoss::default().nats_per_token(), 0.0);
    }
}
