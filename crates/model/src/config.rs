//! The configuration of a model, and the one dial that derives it.

use crate::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the output head has weights of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Embeddings {
    /// The output head is the embedding matrix.
    #[default]
    Tied,
    /// The output head is a matrix of its own.
    Untied,
}

/// Whether the model also gives a reward for a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RewardHead {
    /// A language model only.
    #[default]
    Absent,
    /// One more vector, whose product with the last hidden state is the reward.
    Present,
}

/// The shape of a Llama-style decoder: RMSNorm before each sublayer, rotary positions,
/// grouped-query attention, SwiGLU, no biases (arXiv 2407.21783, section 3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelConfig {
    /// Number of blocks (attention and feed-forward).
    pub num_layers: usize,
    /// Number of query heads.
    pub num_heads: usize,
    /// Number of key/value heads; divides `num-heads`.
    pub num_kv_heads: usize,
    /// Width of one head; even, since rotary positions turn pairs.
    pub head_dim: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Inner width of the feed-forward layer.
    pub d_ff: usize,
    /// Number of token ids.
    pub vocab_size: usize,
    /// The longest sequence, in tokens.
    pub max_seq_len: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f32,
    /// Added to the mean square in RMSNorm.
    pub norm_eps: f32,
    /// Whether the output head shares the embedding matrix.
    pub embeddings: Embeddings,
    /// Whether there is a reward head.
    #[serde(default)]
    pub reward_head: RewardHead,
}

impl Default for ModelConfig {
    /// The dial at 4 with 4,096 token ids and sequences of 512.
    fn default() -> Self {
        Self::from_depth(4, 4096, 512)
    }
}

impl ModelConfig {
    /// The dial: one number from which the whole shape follows.
    ///
    /// * `d_model = 64 * depth`, and 32 at depth 0, which is the tiny model of tests;
    /// * `num_layers = depth`, and 2 below depth 2, so that width and depth grow together
    ///   (parameters grow with the cube of the dial);
    /// * `head_dim = 64` where that gives an even number of heads (depth 4, 6, 8…), else 32;
    /// * `num_kv_heads = num_heads / 2`, at least 1: half the key/value cache;
    /// * `d_ff` is 8/3 of `d_model` rounded to the nearest multiple of 32, which keeps the size of
    ///   a plain feed-forward layer four times as wide (Shazeer 2020, arXiv 2002.05202);
    /// * tied embeddings: at these sizes a second vocabulary matrix would be a large share of all
    ///   parameters (arXiv 2402.14905, section 2.2.2);
    /// * `rope_theta` 10,000, `norm_eps` 1e-5.
    pub fn from_depth(depth: usize, vocab_size: usize, max_seq_len: usize) -> Self {
        let d_model = if depth == 0 { 32 } else { 64 * depth };
        let head_dim = if depth >= 4 && depth.is_multiple_of(2) { 64 } else { 32 };
        let num_heads = d_model / head_dim;
        Self {
            num_layers: depth.max(2),
            num_heads,
            num_kv_heads: (num_heads / 2).max(1),
            head_dim,
            d_model,
            d_ff: (d_model * 8 / 3 + 16) / 32 * 32,
            vocab_size,
            max_seq_len,
            rope_theta: 10_000.0,
            norm_eps: 1e-5,
            embeddings: Embeddings::Tied,
            reward_head: RewardHead::Absent,
        }
    }

    /// The same shape with what [`Weights::init_copying`](crate::Weights::init_copying) needs: an output
    /// head of its own, and rotary positions on the base of Llama 3 (500,000; section 3.2), whose slow
    /// pairs let tokens be compared over a distance.
    pub fn for_copying(self) -> Self {
        Self { embeddings: Embeddings::Untied, rope_theta: 500_000.0, ..self }
    }

    /// Refuses shapes that no model can have.
    ///
    /// # Errors
    /// [`Error::Config`] names the first setting at fault.
    pub fn validate(&self) -> Result<(), Error> {
        let refuse = |setting, found: String, expected: &str| {
            Err(Error::Config { setting, found, expected: expected.to_owned() })
        };
        // The upper bounds keep every product of sizes within 64 bits.
        let sizes = [
            ("num-layers", self.num_layers, 1 << 12),
            ("num-heads", self.num_heads, 1 << 14),
            ("num-kv-heads", self.num_kv_heads, 1 << 14),
            ("head-dim", self.head_dim, 1 << 14),
            ("d-model", self.d_model, 1 << 20),
            ("d-ff", self.d_ff, 1 << 20),
            ("vocab-size", self.vocab_size, 1 << 24),
            ("max-seq-len", self.max_seq_len, 1 << 24),
        ];
        for (setting, size, most) in sizes {
            if size == 0 || size > most {
                return refuse(setting, size.to_string(), &format!("1 to {most}"));
            }
        }
        if !self.num_heads.is_multiple_of(self.num_kv_heads) {
            let expected = format!("a divisor of num-heads, {}", self.num_heads);
            return refuse("num-kv-heads", self.num_kv_heads.to_string(), &expected);
        }
        if !self.head_dim.is_multiple_of(2) {
            return refuse("head-dim", self.head_dim.to_string(), "an even number");
        }
        if !(self.rope_theta > 1.0 && self.rope_theta.is_finite()) {
            return refuse("rope-theta", self.rope_theta.to_string(), "a number above 1");
        }
        if !(self.norm_eps > 0.0 && self.norm_eps < 1.0) {
            return refuse("norm-eps", self.norm_eps.to_string(), "a number between 0 and 1");
        }
        Ok(())
    }

    /// Width of all query heads together.
    pub fn query_width(&self) -> usize {
        self.num_heads * self.head_dim
    }

    /// Width of all key heads together, and of all value heads.
    pub fn kv_width(&self) -> usize {
        self.num_kv_heads * self.head_dim
    }

    /// Number of parameters; a tied head counts once.
    pub fn num_parameters(&self) -> usize {
        let vocabulary = self.vocab_size * self.d_model;
        let tables = match self.embeddings {
            Embeddings::Tied => vocabulary,
            Embeddings::Untied => 2 * vocabulary,
        };
        let score = match self.reward_head {
            RewardHead::Absent => 0,
            RewardHead::Present => self.d_model,
        };
        let norms = (2 * self.num_layers + 1) * self.d_model;
        tables + self.num_layers * self.block_matrices() + norms + score
    }

    /// Parameters in the matrices of one block.
    fn block_matrices(&self) -> usize {
        let attention = 2 * self.d_model * (self.query_width() + self.kv_width());
        attention + 3 * self.d_model * self.d_ff
    }

    /// Floating-point operations of training per token, forward and backward, at a sequence length
    /// of `seq_len`: 6 per matrix parameter (the output head included, the embedding look-up not),
    /// and attention's two products over the visible half of the keys (arXiv 2204.02311,
    /// appendix B, which counts the masked half too).
    pub fn flops_per_token(&self, seq_len: usize) -> f64 {
        let head = self.vocab_size * self.d_model;
        let matrices = self.num_layers * self.block_matrices() + head;
        let attention = self.num_layers * self.query_width() * seq_len;
        6.0 * matrices as f64 + 6.0 * attention as f64
    }

    /// The configuration as one line of JSON, for messages and file headers.
    pub(crate) fn to_json(&self) -> String {
        // A struct of numbers and names always serializes.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Weights;
    use base::Seed;

    #[test]
    fn the_dial_gives_valid_shapes_that_grow() {
        let mut last = 0;
        for depth in 0..=16 {
            let config = ModelConfig::from_depth(depth, 512, 64);
            config.validate().unwrap();
            assert_eq!(config.query_width(), config.d_model, "depth {depth}");
            assert!(config.num_parameters() > last, "depth {depth}");
            last = config.num_parameters();
        }
    }

    #[test]
    fn parameters_are_counted_as_they_are_laid_out() {
        for embeddings in [Embeddings::Tied, Embeddings::Untied] {
            for reward_head in [RewardHead::Absent, RewardHead::Present] {
                let base = ModelConfig::from_depth(1, 40, 16);
                let config = ModelConfig { embeddings, reward_head, ..base };
                let weights = Weights::init(&config, Seed(1)).unwrap();
                assert_eq!(weights.as_slice().len(), config.num_parameters());
            }
        }
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        let base = ModelConfig::from_depth(2, 64, 16);
        let check = |config: ModelConfig, setting: &str| {
            let message = config.validate().unwrap_err().to_string();
            assert!(message.contains(setting), "{message}");
        };
        check(ModelConfig { num_layers: 0, ..base.clone() }, "num-layers");
        check(ModelConfig { num_kv_heads: 3, ..base.clone() }, "num-kv-heads");
        check(ModelConfig { head_dim: 31, ..base.clone() }, "head-dim");
        check(ModelConfig { vocab_size: usize::MAX, ..base.clone() }, "vocab-size");
        check(ModelConfig { rope_theta: f32::NAN, ..base.clone() }, "rope-theta");
        check(ModelConfig { norm_eps: 0.0, ..base }, "norm-eps");
    }

    #[test]
    fn flops_are_near_six_per_parameter() {
        let config = ModelConfig::from_depth(6, 8192, 512);
        let ratio = config.flops_per_token(512) / (6.0 * config.num_parameters() as f64);
        assert!((1.0..1.2).contains(&ratio), "{ratio}");
    }
}
