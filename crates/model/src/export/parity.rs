//! What another implementation must give for the same weights: `scripts/parity` compares it.

use crate::batch::check_token;
use crate::decoder::Decoder;
use crate::error::Error;
use crate::sampling::Sampling;
use crate::weights::Weights;
use kernels::Pool;
use serde::{Deserialize, Serialize};

/// A prompt with the logits after each of its tokens, and its greedy continuation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParityRecord {
    /// The prompt's tokens, [t].
    pub prompt_ids: Vec<u32>,
    /// The logits after each of them, [t, vocab_size].
    pub logits: Vec<Vec<f32>>,
    /// The most likely continuation; no token ends it early.
    pub greedy_ids: Vec<u32>,
}

/// Makes the record of a prompt and a continuation of up to `max_new_tokens` (fewer where the model's
/// sequence ends). Meant for prompts of some dozens of tokens: each of its prefixes is read anew.
///
/// # Errors
/// An empty prompt, one longer than the model reads, or a token id outside the vocabulary.
pub fn parity_record(
    weights: &Weights,
    pool: &Pool,
    prompt_ids: &[u32],
    max_new_tokens: usize,
) -> Result<ParityRecord, Error> {
    let config = weights.config();
    let (found, max_seq_len) = (prompt_ids.len(), config.max_seq_len);
    if found == 0 {
        let (found, expected) = ("empty".to_owned(), "a token".to_owned());
        return Err(Error::MalformedBatch { what: "prompt", found, expected });
    }
    if found > max_seq_len {
        return Err(Error::SequenceTooLong { sequence: 0, found, max_seq_len });
    }
    for (i, &token) in prompt_ids.iter().enumerate() {
        check_token(token, config, || format!("position {i}"))?;
    }
    let length = found.saturating_add(max_new_tokens).min(max_seq_len);
    let mut decoder = Decoder::new(weights, pool, 1, length, length);
    let mut sequence = Vec::new();
    let mut logits = Vec::new();
    for &token in prompt_ids {
        sequence.push(token);
        logits.push(decoder.prefill(&[(0, &sequence)]).to_vec());
    }
    let mut greedy_ids = Vec::new();
    let greedy = Sampling::greedy(max_new_tokens, Vec::new());
    let mut last = logits.last().cloned().unwrap_or_default();
    while greedy_ids.len() < max_new_tokens && sequence.len() < max_seq_len {
        let token = greedy.choose(&last, 0.0);
        greedy_ids.push(token);
        sequence.push(token);
        last = decoder.prefill(&[(0, &sequence)]).to_vec();
    }
    Ok(ParityRecord { prompt_ids: prompt_ids.to_vec(), logits, greedy_ids })
}
