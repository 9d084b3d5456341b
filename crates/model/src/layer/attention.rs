//! The attention layer: `middle = input + attention(norm(input)) · outputᵀ`.

use crate::cache::Cache;
use crate::config::ModelConfig;
use crate::decoder::Step;
use crate::device::Device;
use crate::layer::Rows;
use crate::layout::AttentionParameters;
use crate::memory::{AttentionScratch, BlockBuffers, Buffer, MemoryPlan};
use kernels::{AttentionShape, Rotation, Write};

/// One block's attention.
pub(crate) struct Attention {
    parameters: AttentionParameters,
    buffers: BlockBuffers,
    scratch: AttentionScratch,
    normed: Buffer,
    d_normed: Buffer,
    inverse_rms: Buffer,
    shape: AttentionShape,
    eps: f32,
}

impl Attention {
    /// The attention of block `layer`.
    pub fn new(
        config: &ModelConfig,
        parameters: AttentionParameters,
        plan: &MemoryPlan,
        layer: usize,
    ) -> Self {
        let shape = AttentionShape {
            num_heads: config.num_heads,
            num_kv_heads: config.num_kv_heads,
            head_dim: config.head_dim,
        };
        Self {
            parameters,
            buffers: plan.blocks[layer],
            scratch: plan.attention,
            normed: plan.normed,
            d_normed: plan.d_normed,
            inverse_rms: plan.inverse_rms,
            shape,
            eps: config.norm_eps,
        }
    }

    /// The whole layer over the sequences of a batch.
    pub fn forward(&self, device: &mut Device<'_>, rows: Rows<'_>) {
        self.project(device, rows);
        let b = &self.buffers;
        let outputs = [b.attended, b.log_sum_exp];
        device.attend(rows.len(), self.shape, rows.segments, [b.query, b.key, b.value], outputs);
        self.close(device, rows.len());
    }

    /// The whole layer over single rows, each against the cache of its slot, where its own keys and
    /// values are stored first.
    pub fn decode(
        &self,
        device: &mut Device<'_>,
        rows: Rows<'_>,
        cache: &mut Cache,
        layer: usize,
        steps: &[Step],
    ) {
        self.project(device, rows);
        let (keys, values) = self.keys_and_values(device, steps.len());
        let width = self.shape.kv_width();
        for (step, (k, v)) in steps.iter().zip(keys.chunks(width).zip(values.chunks(width))) {
            cache.store(step.slot, layer, step.position, k, v);
        }
        let sequences = steps.iter().map(|step| cache.read(step.slot, layer, step.position + 1));
        device.decode(
            self.shape,
            sequences,
            steps.len(),
            self.buffers.query,
            self.buffers.attended,
        );
        self.close(device, steps.len());
    }

    /// Keys and values of the first `t` rows, as [`Attention::project`] left them.
    pub fn keys_and_values<'d>(&self, device: &'d Device<'_>, t: usize) -> (&'d [f32], &'d [f32]) {
        (device.read(t, self.buffers.key), device.read(t, self.buffers.value))
    }

    /// Queries, keys and values, turned to their positions.
    pub fn project(&self, device: &mut Device<'_>, rows: Rows<'_>) {
        let (b, p, t) = (&self.buffers, &self.parameters, rows.len());
        device.norm(t, self.eps, b.input, p.norm, self.normed, self.inverse_rms);
        device.linear(t, self.normed, p.query, Write::Overwrite, b.query);
        device.linear(t, self.normed, p.key, Write::Overwrite, b.key);
        device.linear(t, self.normed, p.value, Write::Overwrite, b.value);
        device.rotate(Rotation::Forward, rows.positions, b.query);
        device.rotate(Rotation::Forward, rows.positions, b.key);
    }

    /// The output projection, added to the residual stream.
    pub fn close(&self, device: &mut Device<'_>, t: usize) {
        let b = &self.buffers;
        device.copy(t, b.input, b.middle);
        device.linear(t, b.attended, self.parameters.output, Write::Accumulate, b.middle);
    }

    /// Turns `d_stream` from the gradient by `middle` into the one by `input`.
    pub fn backward(&self, device: &mut Device<'_>, rows: Rows<'_>, d_stream: Buffer) {
        let (b, p, s, t) = (&self.buffers, &self.parameters, &self.scratch, rows.len());
        device.weight_backward(t, d_stream, b.attended, p.output);
        device.linear_backward(t, d_stream, p.output, Write::Overwrite, s.d_attended);
        let saved = [b.query, b.key, b.value, b.attended, b.log_sum_exp];
        let gradients = [s.d_attended, s.d_query, s.d_key, s.d_value];
        device.attend_backward(t, self.shape, rows.segments, saved, gradients);
        device.rotate(Rotation::Backward, rows.positions, s.d_query);
        device.rotate(Rotation::Backward, rows.positions, s.d_key);
        // The norm's output was not kept: it costs less to compute than to store.
        device.norm(t, self.eps, b.input, p.norm, self.normed, self.inverse_rms);
        device.weight_backward(t, s.d_query, self.normed, p.query);
        device.weight_backward(t, s.d_key, self.normed, p.key);
        device.weight_backward(t, s.d_value, self.normed, p.value);
        device.linear_backward(t, s.d_query, p.query, Write::Overwrite, self.d_normed);
        device.linear_backward(t, s.d_key, p.key, Write::Accumulate, self.d_normed);
        device.linear_backward(t, s.d_value, p.value, Write::Accumulate, self.d_normed);
        let (inverse, d) = (self.inverse_rms, self.d_normed);
        device.norm_backward(t, b.input, p.norm, inverse, d, Write::Accumulate, d_stream);
    }
}
