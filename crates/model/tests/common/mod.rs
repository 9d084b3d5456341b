//! Shared by the tests: small models, and a naive twin of the whole model in double precision.
#![allow(dead_code, clippy::unwrap_used)]

pub mod naive;

use base::Seed;
use kernels::Pool;
use model::{Batch, Embeddings, ModelConfig, RewardHead, Weights};
use std::sync::Arc;

/// A small shape with grouped heads and widths that fill no vector.
pub fn config(embeddings: Embeddings) -> ModelConfig {
    ModelConfig {
        num_layers: 2,
        num_heads: 4,
        num_kv_heads: 2,
        head_dim: 6,
        d_model: 20,
        d_ff: 28,
        vocab_size: 37,
        max_seq_len: 64,
        rope_theta: 100.0,
        norm_eps: 1e-5,
        embeddings,
        reward_head: RewardHead::Present,
    }
}

/// Weights large enough that every layer matters.
pub fn weights(config: &ModelConfig, seed: u64) -> Weights {
    let mut weights = Weights::init(config, Seed(seed)).unwrap();
    let mut rng = Seed(seed).derive("test").rng();
    for tensor in weights.tensors().to_vec() {
        let norm = tensor.name.ends_with("norm");
        for x in &mut weights.as_mut_slice()[tensor.range] {
            *x = if norm { 1.0 + 0.2 * rng.normal() as f32 } else { 0.3 * rng.normal() as f32 };
        }
    }
    weights
}

/// Sequences of the given lengths with tokens below `vocab_size`.
pub fn sequences(lengths: &[usize], vocab_size: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut rng = Seed(seed).rng();
    let mut sequence = |&n: &usize| (0..n).map(|_| rng.below(vocab_size) as u32).collect();
    lengths.iter().map(&mut sequence).collect()
}

/// A batch of such sequences, every third token unscored.
pub fn batch(lengths: &[usize], vocab_size: usize, seed: u64) -> Batch {
    let mut batch = Batch::new();
    for sequence in sequences(lengths, vocab_size, seed) {
        let mask: Vec<bool> = (0..sequence.len()).map(|i| i % 3 != 2).collect();
        batch.push_masked(&sequence, &mask);
    }
    batch
}

/// A pool of `threads` threads.
pub fn pool(threads: usize) -> Arc<Pool> {
    Arc::new(Pool::new(threads))
}

/// The bits of some values, for comparisons that tell zeros and not-a-numbers apart.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}
