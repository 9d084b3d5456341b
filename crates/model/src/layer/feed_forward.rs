//! The feed-forward layer: `next = middle + swiglu(norm(middle)) · downᵀ`.

use crate::config::ModelConfig;
use crate::device::Device;
use crate::layout::FeedForwardParameters;
use crate::memory::{Buffer, FeedForwardScratch, MemoryPlan};
use kernels::Write;

/// One block's feed-forward layer.
pub(crate) struct FeedForward {
    parameters: FeedForwardParameters,
    scratch: FeedForwardScratch,
    middle: Buffer,
    gate: Buffer,
    up: Buffer,
    /// The next block's input, or the model's output.
    next: Buffer,
    normed: Buffer,
    d_normed: Buffer,
    inverse_rms: Buffer,
    eps: f32,
}

impl FeedForward {
    /// The feed-forward layer of block `layer`.
    pub fn new(
        config: &ModelConfig,
        parameters: FeedForwardParameters,
        plan: &MemoryPlan,
        layer: usize,
    ) -> Self {
        let buffers = plan.blocks[layer];
        Self {
            parameters,
            scratch: plan.feed_forward,
            middle: buffers.middle,
            gate: buffers.gate,
            up: buffers.up,
            next: plan.blocks.get(layer + 1).map_or(plan.output, |block| block.input),
            normed: plan.normed,
            d_normed: plan.d_normed,
            inverse_rms: plan.inverse_rms,
            eps: config.norm_eps,
        }
    }

    /// The layer over `t` rows.
    pub fn forward(&self, device: &mut Device<'_>, t: usize) {
        let (p, hidden) = (&self.parameters, self.scratch.hidden);
        device.norm(t, self.eps, self.middle, p.norm, self.normed, self.inverse_rms);
        device.linear(t, self.normed, p.gate, Write::Overwrite, self.gate);
        device.linear(t, self.normed, p.up, Write::Overwrite, self.up);
        device.swiglu(t, self.gate, self.up, hidden);
        device.copy(t, self.middle, self.next);
        device.linear(t, hidden, p.down, Write::Accumulate, self.next);
    }

    /// Turns `d_stream` from the gradient by `next` into the one by `middle`.
    pub fn backward(&self, device: &mut Device<'_>, t: usize, d_stream: Buffer) {
        let (p, s) = (&self.parameters, &self.scratch);
        device.swiglu(t, self.gate, self.up, s.hidden);
        device.weight_backward(t, d_stream, s.hidden, p.down);
        device.linear_backward(t, d_stream, p.down, Write::Overwrite, s.hidden);
        device.swiglu_backward(t, [self.gate, self.up], s.hidden, [s.d_gate, s.d_up]);
        device.norm(t, self.eps, self.middle, p.norm, self.normed, self.inverse_rms);
        device.weight_backward(t, s.d_gate, self.normed, p.gate);
        device.weight_backward(t, s.d_up, self.normed, p.up);
        device.linear_backward(t, s.d_gate, p.gate, Write::Overwrite, self.d_normed);
        device.linear_backward(t, s.d_up, p.up, Write::Accumulate, self.d_normed);
        let (inverse, d) = (self.inverse_rms, self.d_normed);
        device.norm_backward(t, self.middle, p.norm, inverse, d, Write::Accumulate, d_stream);
    }
}
