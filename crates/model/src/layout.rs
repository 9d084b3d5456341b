//! Which tensors a configuration has and where each lies in one arena.

use crate::config::{Embeddings, ModelConfig, RewardHead};
use std::ops::Range;

/// A named tensor of the arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name: `blocks.0.attention.query`…
    pub name: String,
    /// Its shape: [outputs, inputs] for a matrix.
    pub shape: Vec<usize>,
    /// Its place in [`crate::Weights::as_slice`] and in [`crate::Engine::gradients`].
    pub range: Range<usize>,
    /// Whether weight decay applies: matrices yes; norms and embeddings no (OLMo 2, arXiv
    /// 2501.00656, section 3.3.2: decay makes embeddings small and early gradients large).
    pub decays: bool,
}

/// The place of a tensor of two dimensions; a vector has one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Index of its first element in the arena.
    pub offset: usize,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub columns: usize,
}

impl Parameter {
    /// Its place in the arena.
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.columns
    }
}

/// The parameters of a block's attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionParameters {
    pub norm: Parameter,
    pub query: Parameter,
    pub key: Parameter,
    pub value: Parameter,
    pub output: Parameter,
}

/// The parameters of a block's feed-forward layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedForwardParameters {
    pub norm: Parameter,
    pub gate: Parameter,
    pub up: Parameter,
    pub down: Parameter,
}

/// The parameters of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockParameters {
    pub attention: AttentionParameters,
    pub feed_forward: FeedForwardParameters,
}

/// All parameters of a model, in the order of the arena.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub embedding: Parameter,
    pub blocks: Vec<BlockParameters>,
    pub final_norm: Parameter,
    /// The output head: the embedding where the two are tied.
    pub head: Parameter,
    pub score: Option<Parameter>,
    pub tensors: Vec<Tensor>,
}

impl Layout {
    /// Lays out the tensors of a configuration: embedding, blocks, final norm, output head, score.
    pub fn new(config: &ModelConfig) -> Self {
        let mut arena = Arena::default();
        let (d, v) = (config.d_model, config.vocab_size);
        let embedding = arena.add("embedding", [v, d], Kind::Table);
        let blocks = (0..config.num_layers).map(|layer| block(&mut arena, config, layer)).collect();
        let final_norm = arena.add("final_norm", [1, d], Kind::Norm);
        let head = match config.embeddings {
            Embeddings::Tied => embedding,
            Embeddings::Untied => arena.add("head", [v, d], Kind::Matrix),
        };
        let score = match config.reward_head {
            RewardHead::Absent => None,
            RewardHead::Present => Some(arena.add("score", [1, d], Kind::Matrix)),
        };
        Self { embedding, blocks, final_norm, head, score, tensors: arena.tensors }
    }

    /// Number of elements in the arena.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range.end)
    }
}

fn block(arena: &mut Arena, config: &ModelConfig, layer: usize) -> BlockParameters {
    let (d, f) = (config.d_model, config.d_ff);
    let (q, k) = (config.query_width(), config.kv_width());
    let mut add =
        |name: &str, shape, kind| arena.add(&format!("blocks.{layer}.{name}"), shape, kind);
    BlockParameters {
        attention: AttentionParameters {
            norm: add("attention.norm", [1, d], Kind::Norm),
            query: add("attention.query", [q, d], Kind::Matrix),
            key: add("attention.key", [k, d], Kind::Matrix),
            value: add("attention.value", [k, d], Kind::Matrix),
            output: add("attention.output", [d, q], Kind::Matrix),
        },
        feed_forward: FeedForwardParameters {
            norm: add("feed_forward.norm", [1, d], Kind::Norm),
            gate: add("feed_forward.gate", [f, d], Kind::Matrix),
            up: add("feed_forward.up", [f, d], Kind::Matrix),
            down: add("feed_forward.down", [d, f], Kind::Matrix),
        },
    }
}

/// What a tensor is, which decides its decay and how its shape is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Table,
    Matrix,
    Norm,
}

/// Hands out places one after the other.
#[derive(Default)]
struct Arena {
    tensors: Vec<Tensor>,
    end: usize,
}

impl Arena {
    fn add(&mut self, name: &str, [rows, columns]: [usize; 2], kind: Kind) -> Parameter {
        let parameter = Parameter { offset: self.end, rows, columns };
        self.end = parameter.range().end;
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape: if kind == Kind::Norm { vec![columns] } else { vec![rows, columns] },
            range: parameter.range(),
            decays: kind == Kind::Matrix,
        });
        parameter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_fill_the_arena_without_gaps() {
        let config = ModelConfig {
            embeddings: Embeddings::Untied,
            reward_head: RewardHead::Present,
            ..ModelConfig::from_depth(1, 50, 16)
        };
        let layout = Layout::new(&config);
        let mut end = 0;
        for tensor in &layout.tensors {
            assert_eq!(tensor.range.start, end, "{}", tensor.name);
            assert_eq!(tensor.range.len(), tensor.shape.iter().product::<usize>());
            end = tensor.range.end;
        }
        assert_eq!((end, layout.len()), (config.num_parameters(), end));
    }

    #[test]
    fn matrices_decay_and_norms_and_embeddings_do_not() {
        let config =
            ModelConfig { embeddings: Embeddings::Untied, ..ModelConfig::from_depth(0, 50, 16) };
        for tensor in Layout::new(&config).tensors {
            let exempt = tensor.name.contains("norm") || tensor.name == "embedding";
            assert_eq!(tensor.decays, !exempt, "{}", tensor.name);
        }
    }
}
