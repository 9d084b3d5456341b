//! The stack: embedding, blocks, and the rows that the heads read.

use crate::config::ModelConfig;
use crate::device::Device;
use crate::layer::{Block, Rows};
use crate::layout::{Layout, Parameter};
use crate::memory::{Buffer, HeadScratch, MemoryPlan};
use kernels::Write;

/// The transformer over one memory plan.
pub(crate) struct Transformer {
    pub blocks: Vec<Block>,
    embedding: Parameter,
    final_norm: Parameter,
    input: Buffer,
    output: Buffer,
    d_stream: Buffer,
    head: HeadScratch,
    eps: f32,
}

impl Transformer {
    /// Binds a layout's parameters to a plan's buffers.
    pub fn new(config: &ModelConfig, layout: &Layout, plan: &MemoryPlan) -> Self {
        let blocks = layout.blocks.iter().enumerate();
        Self {
            blocks: blocks.map(|(l, &block)| Block::new(config, block, plan, l)).collect(),
            embedding: layout.embedding,
            final_norm: layout.final_norm,
            input: plan.blocks.first().map_or(plan.output, |block| block.input),
            output: plan.output,
            d_stream: plan.d_stream,
            head: plan.head,
            eps: config.norm_eps,
        }
    }

    /// Looks up the tokens' embeddings.
    pub fn embed(&self, device: &mut Device<'_>, tokens: &[u32]) {
        device.embed(tokens, self.embedding, self.input);
    }

    /// From tokens to the residual stream after the last block.
    pub fn forward(&self, device: &mut Device<'_>, tokens: &[u32], rows: Rows<'_>) {
        self.embed(device, tokens);
        for block in &self.blocks {
            block.forward(device, rows);
        }
    }

    /// Hidden states of the rows that a head reads, normalised: `plan.head.normed`.
    pub fn hidden(&self, device: &mut Device<'_>, t: usize, indices: &[u32]) {
        let (h, n) = (&self.head, indices.len());
        device.gather(indices, t, self.output, h.gathered);
        device.norm(n, self.eps, h.gathered, self.final_norm, h.normed, h.inverse_rms);
    }

    /// From the gradient by the hidden states, in `plan.head.d_normed`, to all weights.
    pub fn backward(
        &self,
        device: &mut Device<'_>,
        tokens: &[u32],
        rows: Rows<'_>,
        indices: &[u32],
    ) {
        let (h, t, n) = (&self.head, rows.len(), indices.len());
        // The hidden states are not read again, so their place takes the gradient by the rows.
        let (d_hidden, d_gathered) = (h.d_normed, h.normed);
        let (norm, inverse) = (self.final_norm, h.inverse_rms);
        device.norm_backward(n, h.gathered, norm, inverse, d_hidden, Write::Overwrite, d_gathered);
        device.zero(t, self.d_stream);
        device.scatter_add(indices, d_gathered, t, self.d_stream);
        for block in self.blocks.iter().rev() {
            block.backward(device, rows, self.d_stream);
        }
        device.embed_backward(tokens, self.d_stream, self.embedding);
    }
}
