//! The model at work on answers: prompts into the cache, then one token at a time for all slots.

use crate::cache::Cache;
use crate::device::{Device, Memory, Packed};
use crate::head::Head;
use crate::layer::Rows;
use crate::layout::{Layout, Parameter};
use crate::memory::{Capacity, MemoryPlan, Purpose};
use crate::transformer::Transformer;
use crate::weights::Weights;
use kernels::{PackedMatrix, Pool, RopeTable};

/// Weights packed once, a cache, and the memory of a forward pass.
pub(crate) struct Decoder<'a> {
    weights: &'a Weights,
    pool: &'a Pool,
    plan: MemoryPlan,
    memory: Memory,
    rope: RopeTable,
    packed: Packed,
    transformer: Transformer,
    head: Head,
    cache: Cache,
    logits: Vec<f32>,
}

/// One sequence's next step: the token that it reads, and where.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub slot: usize,
    pub position: usize,
    pub token: u32,
}

impl<'a> Decoder<'a> {
    /// A decoder with `slots` sequences of up to `length` tokens, reading up to `prefill` tokens of
    /// prompts at once.
    pub fn new(
        weights: &'a Weights,
        pool: &'a Pool,
        slots: usize,
        length: usize,
        prefill: usize,
    ) -> Self {
        let (config, layout) = (weights.config(), weights.layout());
        let capacity = Capacity { tokens: prefill.max(slots), targets: slots };
        let plan = MemoryPlan::new(config, capacity, Purpose::Inference);
        Self {
            weights,
            pool,
            memory: Memory::new(&plan),
            rope: RopeTable::new(length, config.head_dim, f64::from(config.rope_theta)),
            packed: pack(weights, pool),
            transformer: Transformer::new(config, layout, &plan),
            head: Head { scratch: plan.head, table: layout.head, score: None },
            plan,
            cache: Cache::new(config, slots, length),
            logits: vec![0.0; slots * config.vocab_size],
        }
    }

    /// Reads whole prompts into their slots. Gives the logits of each one's last row.
    pub fn prefill(&mut self, prompts: &[(usize, &[u32])]) -> &[f32] {
        let tokens: Vec<u32> = prompts.iter().flat_map(|(_, prompt)| *prompt).copied().collect();
        let lengths = prompts.iter().map(|(_, prompt)| prompt.len());
        let positions: Vec<u32> = lengths.clone().flat_map(|n| 0..n as u32).collect();
        let ends: Vec<u32> = lengths
            .scan(0, |end, n| {
                *end += n as u32;
                Some(*end)
            })
            .collect();
        let segments: Vec<u32> = [0].into_iter().chain(ends.iter().copied()).collect();
        let segments = &segments[..prompts.len()];
        let last: Vec<u32> = ends.iter().map(|end| end - 1).collect();
        let rows = Rows { positions: &positions, segments };
        let (mut device, transformer, head, cache, logits) = self.parts();
        transformer.forward(&mut device, &tokens, rows);
        for (layer, block) in transformer.blocks.iter().enumerate() {
            let (keys, values) = block.attention.keys_and_values(&device, tokens.len());
            let width = keys.len() / tokens.len().max(1);
            for (&(slot, prompt), &start) in prompts.iter().zip(segments) {
                let rows = start as usize * width..(start as usize + prompt.len()) * width;
                cache.store(slot, layer, 0, &keys[rows.clone()], &values[rows]);
            }
        }
        transformer.hidden(&mut device, tokens.len(), &last);
        head.logits(&mut device, last.len(), logits)
    }

    /// Reads one more token of each sequence. Gives the logits that follow it.
    pub fn step(&mut self, steps: &[Step]) -> &[f32] {
        let tokens: Vec<u32> = steps.iter().map(|step| step.token).collect();
        let positions: Vec<u32> = steps.iter().map(|step| step.position as u32).collect();
        let every_row: Vec<u32> = (0..steps.len() as u32).collect();
        let rows = Rows { positions: &positions, segments: &[] };
        let (mut device, transformer, head, cache, logits) = self.parts();
        transformer.embed(&mut device, &tokens);
        for (layer, block) in transformer.blocks.iter().enumerate() {
            block.attention.decode(&mut device, rows, cache, layer, steps);
            block.feed_forward.forward(&mut device, steps.len());
        }
        transformer.hidden(&mut device, steps.len(), &every_row);
        head.logits(&mut device, steps.len(), logits)
    }

    /// Tokens of prompts that fit into one [`Decoder::prefill`].
    pub fn prefill_tokens(&self) -> usize {
        self.plan.capacity().tokens
    }

    #[allow(clippy::type_complexity)]
    fn parts(&mut self) -> (Device<'_>, &Transformer, &Head, &mut Cache, &mut Vec<f32>) {
        let device = Device {
            pool: self.pool,
            rope: &self.rope,
            memory: &mut self.memory,
            weights: self.weights.as_slice(),
            packed: &self.packed,
        };
        (device, &self.transformer, &self.head, &mut self.cache, &mut self.logits)
    }
}

/// Every matrix that rows are multiplied by.
fn pack(weights: &Weights, pool: &Pool) -> Packed {
    let layout: &Layout = weights.layout();
    let matrices = layout.blocks.iter().flat_map(|block| {
        let (a, f) = (&block.attention, &block.feed_forward);
        [a.query, a.key, a.value, a.output, f.gate, f.up, f.down]
    });
    let pack = |matrix: Parameter| {
        let values = &weights.as_slice()[matrix.range()];
        (matrix.offset, PackedMatrix::new(pool, matrix.rows, matrix.columns, values))
    };
    matrices.chain([layout.head]).map(pack).collect()
}
