//! Bits per byte on held-out documents: the loss on every token, over the bytes of text that the tokens
//! stand for. Unlike the loss in nats for each token it does not depend on the tokenizer, so a model, a
//! 3-gram model and a compressor can be compared by it.
//!
//! A document's first token (the one that starts every document) is context alone; every other token is
//! counted once. A special token has no bytes, so where it is predicted it only costs.

use crate::baseline::Trigram;
use crate::intervals::{Interval, bootstrap_ratio};
use crate::{Error, Model};
use base::{Category, Observer, Progress, Seed, Stop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use tokens::Tokenizer;

/// Windows that are scored between two looks at the wish to stop.
const CHUNK: usize = 16;

/// How documents longer than the model reads are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Tokens that a window repeats from the one before it, as context that is not counted again: 0 is
    /// fastest; half of the model's longest sequence gives every token a long context at twice the cost.
    pub overlap: usize,
}

/// A held-out document as token ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOut {
    /// Its category.
    pub category: Category,
    /// Its token ids, the first being the one that starts a document.
    pub token_ids: Vec<u32>,
}

/// The loss over a set of documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bits {
    /// Documents.
    pub documents: u64,
    /// Tokens that were counted.
    pub tokens: u64,
    /// Bytes of text that they stand for.
    pub bytes: u64,
    /// Mean loss, in nats for each token.
    pub loss: f64,
    /// Bits for each byte, with the bootstrap's interval over documents.
    pub bits_per_byte: Interval,
}

/// Bits per byte of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BitsReport {
    /// The model.
    pub model: String,
    /// Over all documents.
    pub overall: Bits,
    /// By category, those that have documents.
    pub categories: BTreeMap<Category, Bits>,
}

/// Bits per byte of a model.
///
/// # Errors
/// There are no documents with text, the model cannot score them, or the work was stopped.
pub fn model_bits(
    model: &mut Model<'_>,
    documents: &[HeldOut],
    settings: &Settings,
    seed: Seed,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<BitsReport, Error> {
    let pieces: Vec<(usize, Piece)> = documents
        .iter()
        .enumerate()
        .flat_map(|(index, document)| {
            let pieces = pieces(document.token_ids.len(), model.max_seq_len(), settings.overlap);
            pieces.into_iter().map(move |piece| (index, piece))
        })
        .collect();
    let total = pieces.iter().map(|(_, piece)| piece.window.len() as u64).sum();
    let mut nats = vec![0.0; documents.len()];
    let mut done = 0;
    for chunk in pieces.chunks(CHUNK) {
        let windows: Vec<&[u32]> = chunk
            .iter()
            .map(|(index, piece)| &documents[*index].token_ids[piece.window.clone()])
            .collect();
        let scores = model.token_log_probs(&windows, stop)?;
        for ((index, piece), scores) in chunk.iter().zip(&scores) {
            nats[*index] -= scores[piece.repeated..].iter().sum::<f64>();
            done += piece.window.len() as u64;
        }
        let detail = String::new();
        observer.progress(Progress { done, total: Some(total), unit: "tokens", detail });
    }
    let name = crate::Subject::name(model).to_owned();
    report(&name, documents, &nats, model.tokenizer(), seed)
}

/// Bits per byte of a 3-gram model on the same tokens.
///
/// # Errors
/// There are no documents with text.
pub fn trigram_bits(
    trigram: &Trigram,
    documents: &[HeldOut],
    tokenizer: &Tokenizer,
    seed: Seed,
) -> Result<BitsReport, Error> {
    let nats: Vec<f64> = documents
        .iter()
        .map(|document| -trigram.log_probs(&document.token_ids).iter().sum::<f64>())
        .collect();
    report("trigram", documents, &nats, tokenizer, seed)
}

/// One window of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// Tokens that the model reads.
    window: Range<usize>,
    /// How many of its scores an earlier window has counted.
    repeated: usize,
}

/// Cuts a document into windows such that every token but the first is scored and counted once. A
/// window's first token is context, so windows share at least one token.
fn pieces(length: usize, max_seq_len: usize, overlap: usize) -> Vec<Piece> {
    // A window must move on by one token at least.
    let shared = (overlap + 1).min(max_seq_len.saturating_sub(1)).max(1);
    let mut out = Vec::new();
    let mut counted = 1;
    while counted < length {
        let start = if counted == 1 { 0 } else { counted - shared.min(counted) };
        let end = (start + max_seq_len).min(length);
        if end <= counted {
            break;
        }
        out.push(Piece { window: start..end, repeated: counted - start - 1 });
        counted = end;
    }
    out
}

fn report(
    model: &str,
    documents: &[HeldOut],
    nats: &[f64],
    tokenizer: &Tokenizer,
    seed: Seed,
) -> Result<BitsReport, Error> {
    let losses: Vec<Loss> = documents
        .iter()
        .zip(nats)
        .map(|(document, &nats)| {
            let counted = document.token_ids.get(1..).unwrap_or(&[]);
            let bytes = counted.iter().map(|&id| tokenizer.bytes_of(id) as u64).sum();
            Loss { category: document.category, nats, tokens: counted.len() as u64, bytes }
        })
        .filter(|loss| loss.tokens > 0)
        .collect();
    if losses.iter().all(|loss| loss.bytes == 0) {
        return Err(Error::NothingToJudge { what: "held-out documents with text" });
    }
    let seed = seed.derive("bits per byte");
    let categories = Category::ALL.into_iter().filter_map(|category| {
        let own: Vec<&Loss> = losses.iter().filter(|loss| loss.category == category).collect();
        let seed = seed.derive(category.name());
        (!own.is_empty()).then(|| (category, bits(&own, seed)))
    });
    let categories = categories.collect();
    let all: Vec<&Loss> = losses.iter().collect();
    Ok(BitsReport { model: model.to_owned(), overall: bits(&all, seed), categories })
}

/// The loss of one document.
struct Loss {
    category: Category,
    nats: f64,
    tokens: u64,
    bytes: u64,
}

fn bits(losses: &[&Loss], seed: Seed) -> Bits {
    let tokens: u64 = losses.iter().map(|loss| loss.tokens).sum();
    let nats: f64 = losses.iter().map(|loss| loss.nats).sum();
    let units: Vec<(f64, f64)> =
        losses.iter().map(|loss| (loss.nats / std::f64::consts::LN_2, loss.bytes as f64)).collect();
    Bits {
        documents: losses.len() as u64,
        tokens,
        bytes: losses.iter().map(|loss| loss.bytes).sum(),
        loss: nats / tokens.max(1) as f64,
        bits_per_byte: bootstrap_ratio(&units, seed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_pieces(length: usize, max_seq_len: usize, overlap: usize) {
        let mut counted = vec![0; length];
        for piece in pieces(length, max_seq_len, overlap) {
            assert!(piece.window.len() <= max_seq_len);
            let scored = piece.window.start + 1..piece.window.end;
            scored.skip(piece.repeated).for_each(|token| counted[token] += 1);
        }
        let label = format!("{length} {max_seq_len} {overlap}: {counted:?}");
        assert!(counted.iter().skip(1).all(|&times| times == 1), "{label}");
        assert!(counted.first().is_none_or(|&times| times == 0), "{label}");
    }

    #[test]
    fn every_token_but_the_first_is_counted_once() {
        for length in 0..40 {
            for max_seq_len in 2..12 {
                (0..14).for_each(|overlap| check_pieces(length, max_seq_len, overlap));
            }
        }
    }

    #[test]
    fn an_overlap_gives_later_windows_their_context() {
        let cut = pieces(10, 4, 0);
        assert_eq!(cut.iter().map(|p| p.window.clone()).collect::<Vec<_>>(), [0..4, 3..7, 6..10]);
        let cut = pieces(8, 4, 1);
        assert_eq!(cut[1], Piece { window: 2..6, repeated: 1 });
    }
}
