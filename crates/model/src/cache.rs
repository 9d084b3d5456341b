//! Keys and values of the sequences that are being generated, a slot for each.

use crate::config::ModelConfig;
use std::ops::Range;

/// The key/value cache: `[slot, layer, keys then values, token, num_kv_heads * head_dim]`.
pub(crate) struct Cache {
    num_layers: usize,
    kv_width: usize,
    /// Tokens that a slot has room for.
    length: usize,
    data: Vec<f32>,
}

impl Cache {
    /// Room for `slots` sequences of up to `length` tokens.
    pub fn new(config: &ModelConfig, slots: usize, length: usize) -> Self {
        let (num_layers, kv_width) = (config.num_layers, config.kv_width());
        let data = vec![0.0; slots * Self::slot_elements(config, length)];
        Self { num_layers, kv_width, length, data }
    }

    /// Elements that a slot of `length` tokens takes.
    pub fn slot_elements(config: &ModelConfig, length: usize) -> usize {
        2 * config.num_layers * config.kv_width() * length
    }

    /// Stores rows of keys and values from position `start` on.
    pub fn store(&mut self, slot: usize, layer: usize, start: usize, keys: &[f32], values: &[f32]) {
        let offset = start * self.kv_width;
        let (k, v) = (self.place(slot, layer, 0).start, self.place(slot, layer, 1).start);
        self.data[k + offset..][..keys.len()].copy_from_slice(keys);
        self.data[v + offset..][..values.len()].copy_from_slice(values);
    }

    /// Keys and values of the first `tokens` positions.
    pub fn read(&self, slot: usize, layer: usize, tokens: usize) -> (&[f32], &[f32]) {
        let size = tokens * self.kv_width;
        let of = |part| &self.data[self.place(slot, layer, part)][..size];
        (of(0), of(1))
    }

    fn place(&self, slot: usize, layer: usize, part: usize) -> Range<usize> {
        let size = self.length * self.kv_width;
        let start = ((slot * self.num_layers + layer) * 2 + part) * size;
        start..start + size
    }
}
