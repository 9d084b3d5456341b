//! Where a pass computes. Layers name buffers of the memory plan and parameters of the layout, and
//! call the operations below; no layer sees a slice. This device is the CPU: one f32 arena and a
//! pool of threads.

use crate::layout::Parameter;
use crate::memory::{Buffer, MemoryPlan};
use kernels::{
    AttentionGradients, AttentionShape, DecodeRow, Dims, PackedMatrix, Pool, RopeTable, Rotation,
    SavedAttention, Write,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// The memory that a plan asked for.
pub(crate) struct Memory {
    pub activations: Vec<f32>,
    pub gradients: Vec<f32>,
}

impl Memory {
    /// Zeroed memory for a plan.
    pub fn new(plan: &MemoryPlan) -> Self {
        Self {
            activations: vec![0.0; plan.elements()],
            gradients: vec![0.0; plan.gradient_elements()],
        }
    }
}

/// Matrices packed for many products, by the offset of their parameter.
pub(crate) type Packed = BTreeMap<usize, PackedMatrix>;

/// The CPU, with the weights of one pass in reach.
pub(crate) struct Device<'a> {
    pub pool: &'a Pool,
    pub rope: &'a RopeTable,
    pub memory: &'a mut Memory,
    pub weights: &'a [f32],
    /// Empty while training: weights change with every step.
    pub packed: &'a Packed,
}

/// Borrows several places of an arena at once.
///
/// # Panics
/// If two of them overlap, which is a mistake in the memory plan.
pub(crate) fn places<const N: usize>(
    arena: &mut [f32],
    ranges: [Range<usize>; N],
) -> [&mut [f32]; N] {
    match arena.get_disjoint_mut(ranges.clone()) {
        Ok(slices) => slices,
        Err(error) => panic!("operands of one operation overlap: {error}: {ranges:?}"),
    }
}

impl Device<'_> {
    /// The first rows of a buffer, copied out at the edge of a pass.
    pub fn read(&self, rows: usize, buffer: Buffer) -> &[f32] {
        &self.memory.activations[buffer.first(rows)]
    }

    /// Writes the first rows of a buffer at the edge of a pass.
    pub fn write(&mut self, rows: usize, buffer: Buffer) -> &mut [f32] {
        &mut self.memory.activations[buffer.first(rows)]
    }

    /// Sets the first rows of a buffer to zero.
    pub fn zero(&mut self, rows: usize, buffer: Buffer) {
        self.write(rows, buffer).fill(0.0);
    }

    /// `out = x`.
    pub fn copy(&mut self, rows: usize, x: Buffer, out: Buffer) {
        let start = out.first(rows).start;
        self.memory.activations.copy_within(x.first(rows), start);
    }

    /// `out[i] = table[ids[i]]`.
    pub fn embed(&mut self, ids: &[u32], table: Parameter, out: Buffer) {
        let out = &mut self.memory.activations[out.first(ids.len())];
        let table = &self.weights[table.range()];
        kernels::embedding_forward(self.pool, out.len() / ids.len().max(1), ids, table, out);
    }

    /// `d_table[ids[i]] += d_out[i]`.
    pub fn embed_backward(&mut self, ids: &[u32], d_out: Buffer, table: Parameter) {
        let d_table = &mut self.memory.gradients[table.range()];
        let columns = d_out.columns;
        let d_out = &self.memory.activations[d_out.first(ids.len())];
        kernels::embedding_backward(self.pool, columns, ids, d_out, d_table);
    }

    /// `out[i] = x[indices[i]]` for a buffer of `rows` rows.
    pub fn gather(&mut self, indices: &[u32], rows: usize, x: Buffer, out: Buffer) {
        let ranges = [x.first(rows), out.first(indices.len())];
        let [x_td, out] = places(&mut self.memory.activations, ranges);
        kernels::embedding_forward(self.pool, x.columns, indices, x_td, out);
    }

    /// `d_x[indices[i]] += d_out[i]`, in the order of `i`.
    pub fn scatter_add(&mut self, indices: &[u32], d_out: Buffer, rows: usize, d_x: Buffer) {
        let ranges = [d_x.first(rows), d_out.first(indices.len())];
        let [d_x_td, d_out] = places(&mut self.memory.activations, ranges);
        kernels::embedding_backward(self.pool, d_x.columns, indices, d_out, d_x_td);
    }

    /// `out (+)= x · weightᵀ`.
    pub fn linear(&mut self, rows: usize, x: Buffer, weight: Parameter, write: Write, out: Buffer) {
        let ranges = [x.first(rows), out.first(rows)];
        let [x, out] = places(&mut self.memory.activations, ranges);
        if let Some(packed) = self.packed.get(&weight.offset) {
            packed.matmul(self.pool, rows, x, write, out);
        } else {
            let dims = Dims { m: rows, n: weight.rows, k: weight.columns };
            kernels::matmul_nt(self.pool, dims, x, &self.weights[weight.range()], write, out);
        }
    }

    /// `d_x (+)= d_out · weight`.
    pub fn linear_backward(
        &mut self,
        rows: usize,
        d_out: Buffer,
        weight: Parameter,
        write: Write,
        d_x: Buffer,
    ) {
        let ranges = [d_out.first(rows), d_x.first(rows)];
        let [d_out, d_x] = places(&mut self.memory.activations, ranges);
        let dims = Dims { m: rows, n: weight.columns, k: weight.rows };
        kernels::matmul_nn(self.pool, dims, d_out, &self.weights[weight.range()], write, d_x);
    }

    /// `d_weight += d_outᵀ · x`.
    pub fn weight_backward(&mut self, rows: usize, d_out: Buffer, x: Buffer, weight: Parameter) {
        let d_weight = &mut self.memory.gradients[weight.range()];
        let activations = &self.memory.activations;
        let (d_out, x) = (&activations[d_out.first(rows)], &activations[x.first(rows)]);
        let dims = Dims { m: weight.rows, n: weight.columns, k: rows };
        kernels::matmul_tn(self.pool, dims, d_out, x, Write::Accumulate, d_weight);
    }

    /// `out = x / rms(x) * gain`, keeping the inverse of each row's rms.
    pub fn norm(
        &mut self,
        rows: usize,
        eps: f32,
        x: Buffer,
        gain: Parameter,
        out: Buffer,
        inverse_rms: Buffer,
    ) {
        let ranges = [x.first(rows), out.first(rows), inverse_rms.first(rows)];
        let [x, out, inverse_rms] = places(&mut self.memory.activations, ranges);
        let gain = &self.weights[gain.range()];
        kernels::rms_norm_forward(self.pool, eps, x, gain, out, inverse_rms);
    }

    /// Adds to (or writes) `d_x`, and adds to the gain's gradient.
    #[allow(clippy::too_many_arguments)]
    pub fn norm_backward(
        &mut self,
        rows: usize,
        x: Buffer,
        gain: Parameter,
        inverse_rms: Buffer,
        d_out: Buffer,
        write: Write,
        d_x: Buffer,
    ) {
        let ranges = [x.first(rows), inverse_rms.first(rows), d_out.first(rows), d_x.first(rows)];
        let [x, inverse_rms, d_out, d_x] = places(&mut self.memory.activations, ranges);
        let d_gain = &mut self.memory.gradients[gain.range()];
        let gain = &self.weights[gain.range()];
        kernels::rms_norm_backward(self.pool, x, gain, inverse_rms, d_out, write, d_x, d_gain);
    }

    /// Turns the heads of `x` in place by their rows' positions.
    pub fn rotate(&mut self, rotation: Rotation, positions: &[u32], x: Buffer) {
        let x = &mut self.memory.activations[x.first(positions.len())];
        kernels::rope(self.pool, self.rope, rotation, positions, x);
    }

    /// Causal attention inside each segment.
    pub fn attend(
        &mut self,
        rows: usize,
        shape: AttentionShape,
        segments: &[u32],
        [q, k, v]: [Buffer; 3],
        [out, log_sum_exp]: [Buffer; 2],
    ) {
        let ranges = [q, k, v, out, log_sum_exp].map(|buffer| buffer.first(rows));
        let [q, k, v, out, log_sum_exp] = places(&mut self.memory.activations, ranges);
        kernels::attention_forward(self.pool, shape, segments, q, k, v, out, log_sum_exp);
    }

    /// Attention of single rows, each against the keys and values of its own sequence.
    pub fn decode<'c>(
        &mut self,
        shape: AttentionShape,
        sequences: impl Iterator<Item = (&'c [f32], &'c [f32])>,
        rows: usize,
        query: Buffer,
        out: Buffer,
    ) {
        let ranges = [query.first(rows), out.first(rows)];
        let [q, out] = places(&mut self.memory.activations, ranges);
        let width = query.columns;
        let rows = q.chunks(width).zip(out.chunks_mut(width)).zip(sequences);
        let mut rows: Vec<DecodeRow<'_>> =
            rows.map(|((q, out), (keys, values))| DecodeRow { q, keys, values, out }).collect();
        kernels::attention_decode(self.pool, shape, &mut rows);
    }

    /// Gradients by queries, keys and values from what [`Device::attend`] read and wrote.
    pub fn attend_backward(
        &mut self,
        rows: usize,
        shape: AttentionShape,
        segments: &[u32],
        [q, k, v, out, log_sum_exp]: [Buffer; 5],
        [d_out, d_q, d_k, d_v]: [Buffer; 4],
    ) {
        let ranges = [q, k, v, out, log_sum_exp, d_out, d_q, d_k, d_v].map(|b| b.first(rows));
        let [q, k, v, out, log_sum_exp, d_out, d_q, d_k, d_v] =
            places(&mut self.memory.activations, ranges);
        let saved = SavedAttention { q, k, v, out, log_sum_exp };
        let gradients = AttentionGradients { d_q, d_k, d_v };
        kernels::attention_backward(self.pool, shape, segments, saved, d_out, gradients);
    }

    /// `out = silu(gate) * up`.
    pub fn swiglu(&mut self, rows: usize, gate: Buffer, up: Buffer, out: Buffer) {
        let ranges = [gate, up, out].map(|buffer| buffer.first(rows));
        let [gate, up, out] = places(&mut self.memory.activations, ranges);
        kernels::swiglu_forward(self.pool, gate, up, out);
    }

    /// Gradients by `gate` and `up`.
    pub fn swiglu_backward(
        &mut self,
        rows: usize,
        [gate, up]: [Buffer; 2],
        d_out: Buffer,
        [d_gate, d_up]: [Buffer; 2],
    ) {
        let ranges = [gate, up, d_out, d_gate, d_up].map(|buffer| buffer.first(rows));
        let [gate, up, d_out, d_gate, d_up] = places(&mut self.memory.activations, ranges);
        kernels::swiglu_backward(self.pool, gate, up, d_out, d_gate, d_up);
    }
}
