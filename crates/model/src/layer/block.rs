//! One block: attention, then the feed-forward layer.

use crate::config::ModelConfig;
use crate::device::Device;
use crate::layer::{Attention, FeedForward, Rows};
use crate::layout::BlockParameters;
use crate::memory::{Buffer, MemoryPlan};

/// One block of the transformer.
pub(crate) struct Block {
    pub attention: Attention,
    pub feed_forward: FeedForward,
}

impl Block {
    /// Block `layer`.
    pub fn new(
        config: &ModelConfig,
        parameters: BlockParameters,
        plan: &MemoryPlan,
        layer: usize,
    ) -> Self {
        Self {
            attention: Attention::new(config, parameters.attention, plan, layer),
            feed_forward: FeedForward::new(config, parameters.feed_forward, plan, layer),
        }
    }

    /// From the block's input to the next one's.
    pub fn forward(&self, device: &mut Device<'_>, rows: Rows<'_>) {
        self.attention.forward(device, rows);
        self.feed_forward.forward(device, rows.len());
    }

    /// Turns `d_stream` from the gradient by the block's output into the one by its input.
    pub fn backward(&self, device: &mut Device<'_>, rows: Rows<'_>, d_stream: Buffer) {
        self.feed_forward.backward(device, rows.len(), d_stream);
        self.attention.backward(device, rows, d_stream);
    }
}
