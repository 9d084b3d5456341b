//! The memory plan: every buffer of a forward and backward pass, laid out before the first step.
//!
//! What a block's backward pass needs is kept for each block: its input, the queries, keys, values,
//! output and log-sum-exp of attention, the residual after attention, and the two inputs of SwiGLU.
//! The rest is cheap to compute again (norms, SwiGLU's output) or lives only inside one layer, and
//! shares one scratch region: the phases of a pass lay their buffers over each other there.

use crate::config::ModelConfig;
use std::ops::Range;

/// The type of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// IEEE 754 single precision.
    F32,
}

impl Dtype {
    /// Size of one element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
        }
    }
}

/// A matrix in the arena, with room for a planned number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    offset: usize,
    rows: usize,
    pub columns: usize,
    pub dtype: Dtype,
}

impl Buffer {
    /// The place of its first `rows` rows.
    pub fn first(&self, rows: usize) -> Range<usize> {
        debug_assert!(rows <= self.rows, "{rows} rows of {}", self.rows);
        self.offset..self.offset + rows * self.columns
    }
}

/// How much a pass may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Tokens in a batch.
    pub tokens: usize,
    /// Scored rows in a batch.
    pub targets: usize,
}

/// What the memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Forward and backward: every block keeps its activations, and there are gradients.
    Training,
    /// Forward only: blocks share their activations, except keys and values.
    Inference,
}

/// What one block keeps from its forward pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockBuffers {
    /// Residual stream before attention.
    pub input: Buffer,
    pub query: Buffer,
    pub key: Buffer,
    pub value: Buffer,
    /// Attention's output, before its projection.
    pub attended: Buffer,
    pub log_sum_exp: Buffer,
    /// Residual stream after attention.
    pub middle: Buffer,
    pub gate: Buffer,
    pub up: Buffer,
}

/// Scratch of attention's backward pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionScratch {
    pub d_attended: Buffer,
    pub d_query: Buffer,
    pub d_key: Buffer,
    pub d_value: Buffer,
}

/// Scratch of the feed-forward layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedForwardScratch {
    /// SwiGLU's output, then the gradient by it.
    pub hidden: Buffer,
    pub d_gate: Buffer,
    pub d_up: Buffer,
}

/// Scratch of the heads, over the scored rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadScratch {
    pub gathered: Buffer,
    pub normed: Buffer,
    pub d_normed: Buffer,
    pub inverse_rms: Buffer,
}

/// Every buffer of a pass.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    capacity: Capacity,
    purpose: Purpose,
    parameters: usize,
    elements: usize,
    pub(crate) blocks: Vec<BlockBuffers>,
    /// Residual stream after the last block.
    pub(crate) output: Buffer,
    /// Gradient by the residual stream.
    pub(crate) d_stream: Buffer,
    /// A layer's normalised input.
    pub(crate) normed: Buffer,
    pub(crate) d_normed: Buffer,
    pub(crate) inverse_rms: Buffer,
    pub(crate) attention: AttentionScratch,
    pub(crate) feed_forward: FeedForwardScratch,
    pub(crate) head: HeadScratch,
}

impl MemoryPlan {
    /// Lays out a pass of a model.
    pub fn new(config: &ModelConfig, capacity: Capacity, purpose: Purpose) -> Self {
        let mut arena = Arena { end: 0, highest: 0 };
        let t = capacity.tokens;
        // Without a backward pass nothing reads gradients: their buffers are empty.
        let t_back = if purpose == Purpose::Training { t } else { 0 };
        let blocks = blocks(&mut arena, config, t, purpose);
        let output = arena.add(t, config.d_model);
        let d_stream = arena.add(t_back, config.d_model);
        let normed = arena.add(t, config.d_model);
        let inverse_rms = arena.add(t, 1);
        let scratch = arena.end;
        let d_normed = arena.add(t_back, config.d_model);
        let layers = arena.end;
        let attention = AttentionScratch {
            d_attended: arena.add(t_back, config.query_width()),
            d_query: arena.add(t_back, config.query_width()),
            d_key: arena.add(t_back, config.kv_width()),
            d_value: arena.add(t_back, config.kv_width()),
        };
        arena.rewind(layers);
        let feed_forward = FeedForwardScratch {
            hidden: arena.add(t, config.d_ff),
            d_gate: arena.add(t_back, config.d_ff),
            d_up: arena.add(t_back, config.d_ff),
        };
        arena.rewind(scratch);
        let head = head_scratch(&mut arena, config, capacity.targets, purpose);
        Self {
            capacity,
            purpose,
            parameters: config.num_parameters(),
            elements: arena.highest,
            blocks,
            output,
            d_stream,
            normed,
            d_normed,
            inverse_rms,
            attention,
            feed_forward,
            head,
        }
    }

    /// How much a pass may hold.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// What the memory is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Elements of activations and scratch.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Elements of gradients.
    pub(crate) fn gradient_elements(&self) -> usize {
        if self.purpose == Purpose::Training { self.parameters } else { 0 }
    }

    /// Bytes of all that the plan holds: activations, scratch and gradients, without the weights.
    pub fn bytes(&self) -> usize {
        (self.elements + self.gradient_elements()) * Dtype::F32.bytes()
    }
}

fn blocks(
    arena: &mut Arena,
    config: &ModelConfig,
    t: usize,
    purpose: Purpose,
) -> Vec<BlockBuffers> {
    let (d, f) = (config.d_model, config.d_ff);
    let mut lay = || BlockBuffers {
        input: arena.add(t, d),
        query: arena.add(t, config.query_width()),
        key: arena.add(t, config.kv_width()),
        value: arena.add(t, config.kv_width()),
        attended: arena.add(t, config.query_width()),
        log_sum_exp: arena.add(t, config.num_heads),
        middle: arena.add(t, d),
        gate: arena.add(t, f),
        up: arena.add(t, f),
    };
    match purpose {
        Purpose::Training => (0..config.num_layers).map(|_| lay()).collect(),
        Purpose::Inference => {
            // A block writes the next one's input after its own was read: one set serves all.
            let shared = lay();
            let own = |layer: usize| BlockBuffers {
                key: if layer == 0 { shared.key } else { arena.add(t, config.kv_width()) },
                value: if layer == 0 { shared.value } else { arena.add(t, config.kv_width()) },
                ..shared
            };
            (0..config.num_layers).map(own).collect()
        }
    }
}

fn head_scratch(
    arena: &mut Arena,
    config: &ModelConfig,
    targets: usize,
    purpose: Purpose,
) -> HeadScratch {
    let back = if purpose == Purpose::Training { targets } else { 0 };
    HeadScratch {
        gathered: arena.add(targets, config.d_model),
        normed: arena.add(targets, config.d_model),
        d_normed: arena.add(back, config.d_model),
        inverse_rms: arena.add(targets, 1),
    }
}

/// Hands out places; a rewind lets the next buffers lie over earlier ones.
struct Arena {
    end: usize,
    highest: usize,
}

impl Arena {
    /// Elements to which places are rounded up: one cache line.
    const ALIGNMENT: usize = 16;

    fn add(&mut self, rows: usize, columns: usize) -> Buffer {
        let buffer = Buffer { offset: self.end, rows, columns, dtype: Dtype::F32 };
        self.end += (rows * columns).next_multiple_of(Self::ALIGNMENT);
        self.highest = self.highest.max(self.end);
        buffer
    }

    fn rewind(&mut self, end: usize) {
        self.end = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_step_of_4096_tokens_stays_well_below_300_megabytes() {
        let config = ModelConfig::from_depth(4, 4096, 512);
        let capacity = Capacity { tokens: 4096, targets: 4096 };
        let bytes = MemoryPlan::new(&config, capacity, Purpose::Training).bytes();
        assert!(bytes < 240_000_000, "{bytes}");
        // Whole logits alone would take this much.
        assert!(bytes - config.num_parameters() * 4 < 4 * 67_108_864, "{bytes}");
    }

    #[test]
    fn inference_takes_a_fraction() {
        let config = ModelConfig::from_depth(4, 4096, 512);
        let capacity = Capacity { tokens: 1024, targets: 32 };
        let of = |purpose| MemoryPlan::new(&config, capacity, purpose).bytes();
        assert!(3 * of(Purpose::Inference) < of(Purpose::Training));
    }
}
