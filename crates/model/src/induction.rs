//! Weights that can copy from the first step on.
//!
//! Copying what stood in the context takes two heads in two layers: one that brings to every token its
//! predecessor, and one that looks for the place whose predecessor is the token at hand and predicts
//! what stands there (Olsson et al. 2022, "In-context Learning and Induction Heads"). From random weights
//! they form late, and in a few million tokens not at all (measured: LOG.md). Here both are planted into
//! the first two layers, as a start that training is free to change; the model stays a plain Llama.

use crate::config::{Embeddings, ModelConfig};
use crate::weights::Weights;
use base::{Rng, Seed};
use std::f64::consts::FRAC_PI_2;

/// Positions over which content is compared: a pair of elements that turns by less than a right angle in so
/// many holds it.
const REACH: f64 = 200.0;
/// What the head for the predecessor gives to the place before, over the mean of others, in logits.
const SHARPNESS: f64 = 12.0;
/// The constant feature, in standard deviations of the embedding.
const CONSTANT: f64 = 4.0;
/// Scale of queries and keys of the looking head.
const MATCH: f32 = 3.0;
/// How much of the found token is written, in embeddings.
const COPY: f64 = 4.0;
/// Standard deviation of the embedding: so large that a step of the optimizer does not change what a
/// token looks like to the planted heads.
const EMBEDDING: f64 = 0.5;
/// Standard deviation of the output head.
const HEAD: f64 = 0.02;

/// Plants the heads into the first two thirds of the key/value heads; nothing where there are fewer than
/// two layers or two such heads, or where the output head shares the embedding.
pub(crate) fn plant(weights: &mut Weights, seed: Seed) {
    let config = weights.config().clone();
    let planted = config.num_kv_heads * 2 / 3;
    if config.num_layers < 2 || planted == 0 || config.embeddings == Embeddings::Tied {
        return;
    }
    let mut rng = seed.derive("embedding").rng();
    let embedding = weights.tensor_mut("embedding");
    embedding.iter_mut().for_each(|value| *value = (EMBEDDING * rng.normal()) as f32);
    embedding.iter_mut().step_by(config.d_model).for_each(|value| *value = 0.0);
    let head: Vec<f32> = embedding.iter().map(|value| value * (HEAD / EMBEDDING) as f32).collect();
    let constants = embedding.iter_mut().step_by(config.d_model);
    constants.for_each(|value| *value = (EMBEDDING * CONSTANT) as f32);
    weights.tensor_mut("head").copy_from_slice(&head);
    for head in 0..planted {
        let mut rng = seed.derive("induction").at(head as u64).rng();
        let read = Projection::new(&config, &mut rng);
        let write = Projection::new(&config, &mut rng);
        let copied = Projection::new(&config, &mut rng);
        plant_predecessor(weights, &config, head, &read, &write);
        plant_match(weights, &config, head, &read, &write, &copied);
    }
}

/// A random map from the residual stream to a head, near to orthonormal, that leaves out the constant.
struct Projection {
    /// `[head_dim, d_model]`.
    rows: Vec<f32>,
    width: usize,
}

impl Projection {
    fn new(config: &ModelConfig, rng: &mut Rng) -> Self {
        let (height, width) = (config.head_dim, config.d_model);
        let deviation = 1.0 / (width as f64).sqrt();
        let mut rows: Vec<f32> =
            (0..height * width).map(|_| (deviation * rng.normal()) as f32).collect();
        rows.iter_mut().step_by(width).for_each(|value| *value = 0.0);
        Self { rows, width }
    }

    fn row(&self, index: usize) -> &[f32] {
        &self.rows[index * self.width..][..self.width]
    }
}

/// In layer 0: the head's keys and queries see the constant alone, turned so that the place before fits
/// best; its values are the tokens under `read`, written under `write`.
fn plant_predecessor(
    weights: &mut Weights,
    config: &ModelConfig,
    kv_head: usize,
    read: &Projection,
    write: &Projection,
) {
    let (dim, width) = (config.head_dim, config.d_model);
    let head = kv_head * (config.num_heads / config.num_kv_heads);
    let constant_squared =
        CONSTANT * CONSTANT * width as f64 / (width as f64 - 1.0 + CONSTANT * CONSTANT);
    for pair in 0..dim / 2 {
        let turn = frequency(config, pair);
        // Slow pairs cannot tell neighbours apart.
        let weight = if turn > 0.15 { turn.sqrt() } else { 0.0 };
        let size = (SHARPNESS * weight * (dim as f64).sqrt() / constant_squared).sqrt();
        let key = weights.tensor_mut("blocks.0.attention.key");
        key[(kv_head * dim + pair) * width] = size as f32;
        let query = weights.tensor_mut("blocks.0.attention.query");
        query[(head * dim + pair) * width] = (size * (-turn).cos()) as f32;
        query[(head * dim + pair + dim / 2) * width] = (size * (-turn).sin()) as f32;
    }
    let values = kv_head * dim * width..(kv_head + 1) * dim * width;
    weights.tensor_mut("blocks.0.attention.value")[values].copy_from_slice(&read.rows);
    set_output(weights, config, 0, head, write, EMBEDDING);
}

/// In layer 1: keys are the predecessors that layer 0 wrote, queries the tokens themselves, both on the
/// pairs that turn slowly enough to be compared over a distance; what is found is written as itself.
fn plant_match(
    weights: &mut Weights,
    config: &ModelConfig,
    kv_head: usize,
    read: &Projection,
    write: &Projection,
    copied: &Projection,
) {
    let (dim, width) = (config.head_dim, config.d_model);
    let group = config.num_heads / config.num_kv_heads;
    let slow: Vec<usize> =
        (0..dim / 2).filter(|&pair| frequency(config, pair) * REACH < FRAC_PI_2).collect();
    let elements = slow.iter().copied().chain(slow.iter().map(|pair| pair + dim / 2));
    let set = |tensor: &mut [f32], head: usize, projection: &Projection| {
        for (source, element) in elements.clone().enumerate() {
            let row = &mut tensor[(head * dim + element) * width..][..width];
            row.iter_mut().zip(projection.row(source)).for_each(|(to, from)| *to = MATCH * from);
        }
    };
    set(weights.tensor_mut("blocks.1.attention.key"), kv_head, write);
    let values = kv_head * dim * width..(kv_head + 1) * dim * width;
    weights.tensor_mut("blocks.1.attention.value")[values].copy_from_slice(&copied.rows);
    for head in kv_head * group..(kv_head + 1) * group {
        set(weights.tensor_mut("blocks.1.attention.query"), head, read);
        set_output(weights, config, 1, head, copied, EMBEDDING * COPY / group as f64);
    }
}

/// The columns of a query head in the output matrix `[d_model, num_heads * head_dim]`: the projection
/// turned back.
fn set_output(
    weights: &mut Weights,
    config: &ModelConfig,
    layer: usize,
    head: usize,
    projection: &Projection,
    scale: f64,
) {
    let (dim, heads) = (config.head_dim, config.num_heads);
    let output = weights.tensor_mut(&format!("blocks.{layer}.attention.output"));
    for (at, row) in output.chunks_exact_mut(heads * dim).enumerate() {
        for element in 0..dim {
            row[head * dim + element] = scale as f32 * projection.row(element)[at];
        }
    }
}

/// Radians by which a pair of elements turns from one position to the next.
fn frequency(config: &ModelConfig, pair: usize) -> f64 {
    f64::from(config.rope_theta).powf(-2.0 * pair as f64 / config.head_dim as f64)
}
