//! The heads: from hidden states to scores of tokens, or to rewards, and back. Logits of the
//! vocabulary are never whole.

use crate::device::Device;
use crate::layout::Parameter;
use crate::memory::HeadScratch;
use kernels::{CrossEntropyShape, Dims, ScoreGradients, Scores, Write};

/// What the model thinks of each target, in the order of the batch's targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenScores {
    /// Log-probability of the target token, in nats.
    pub log_prob: Vec<f32>,
    /// Log of the sum of the exponentials of the logits.
    pub log_sum_exp: Vec<f32>,
    /// Entropy of the predicted distribution, in nats.
    pub entropy: Vec<f32>,
}

impl TokenScores {
    /// Room for `targets` scores.
    pub(crate) fn zeros(targets: usize) -> Self {
        let zeros = vec![0.0; targets];
        Self { log_prob: zeros.clone(), log_sum_exp: zeros.clone(), entropy: zeros }
    }
}

/// Gradients of a loss by [`TokenScores`], in the same order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenGradients {
    /// By each log-probability.
    pub d_log_prob: Vec<f32>,
    /// By each log-sum-exp.
    pub d_log_sum_exp: Vec<f32>,
    /// By each entropy.
    pub d_entropy: Vec<f32>,
}

impl TokenGradients {
    /// Gradients by the log-probabilities alone; the others are zero.
    pub fn of_log_prob(d_log_prob: Vec<f32>) -> Self {
        let zeros = vec![0.0; d_log_prob.len()];
        Self { d_log_prob, d_log_sum_exp: zeros.clone(), d_entropy: zeros }
    }
}

/// The heads over one memory plan.
pub(crate) struct Head {
    pub scratch: HeadScratch,
    pub table: Parameter,
    pub score: Option<Parameter>,
}

impl Head {
    fn shape(&self) -> CrossEntropyShape {
        CrossEntropyShape { d_model: self.table.columns, vocab_size: self.table.rows }
    }

    /// Scores of the targets whose hidden states lie in the scratch.
    pub fn scores(&self, device: &mut Device<'_>, targets: &[u32]) -> TokenScores {
        let mut scores = TokenScores::zeros(targets.len());
        let hidden = &device.memory.activations[self.scratch.normed.first(targets.len())];
        let table = &device.weights[self.table.range()];
        let out = Scores {
            log_prob: &mut scores.log_prob,
            log_sum_exp: &mut scores.log_sum_exp,
            entropy: &mut scores.entropy,
        };
        kernels::cross_entropy_forward(device.pool, self.shape(), hidden, table, targets, out);
        scores
    }

    /// Logits of `n` hidden states, written to the front of `out`: `[n, vocab_size]`. For generation,
    /// which has few rows at once.
    pub fn logits<'a>(&self, device: &mut Device<'_>, n: usize, out: &'a mut [f32]) -> &'a [f32] {
        let out = &mut out[..n * self.table.rows];
        let hidden = &device.memory.activations[self.scratch.normed.first(n)];
        if let Some(packed) = device.packed.get(&self.table.offset) {
            packed.matmul(device.pool, n, hidden, Write::Overwrite, out);
        } else {
            let dims = Dims { m: n, n: self.table.rows, k: self.table.columns };
            let table = &device.weights[self.table.range()];
            kernels::matmul_nt(device.pool, dims, hidden, table, Write::Overwrite, out);
        }
        out
    }

    /// Gradients by the hidden states and the table. Logits are computed again.
    pub fn scores_backward(
        &self,
        device: &mut Device<'_>,
        targets: &[u32],
        scores: &TokenScores,
        gradients: &TokenGradients,
    ) {
        let [hidden, d_hidden] = self.hidden_pair(&mut device.memory.activations, targets.len());
        kernels::cross_entropy_backward(
            device.pool,
            self.shape(),
            hidden,
            &device.weights[self.table.range()],
            targets,
            &scores.log_sum_exp,
            &scores.entropy,
            ScoreGradients {
                d_log_prob: &gradients.d_log_prob,
                d_log_sum_exp: &gradients.d_log_sum_exp,
                d_entropy: &gradients.d_entropy,
            },
            d_hidden,
            &mut device.memory.gradients[self.table.range()],
        );
    }

    /// Forward and backward in one pass over the logits. Gives the log-probabilities.
    pub fn next_token(
        &self,
        device: &mut Device<'_>,
        targets: &[u32],
        d_log_prob: &[f32],
    ) -> Vec<f32> {
        let mut log_prob = vec![0.0; targets.len()];
        let [hidden, d_hidden] = self.hidden_pair(&mut device.memory.activations, targets.len());
        kernels::cross_entropy_fused(
            device.pool,
            self.shape(),
            hidden,
            &device.weights[self.table.range()],
            targets,
            d_log_prob,
            &mut log_prob,
            d_hidden,
            &mut device.memory.gradients[self.table.range()],
        );
        log_prob
    }

    /// Rewards of `n` hidden states: their products with the score vector.
    pub fn rewards(&self, device: &mut Device<'_>, n: usize, score: Parameter) -> Vec<f32> {
        let mut rewards = vec![0.0; n];
        let hidden = &device.memory.activations[self.scratch.normed.first(n)];
        let score_d = &device.weights[score.range()];
        let dims = Dims { m: n, n: 1, k: score.columns };
        kernels::matmul_nt(device.pool, dims, hidden, score_d, Write::Overwrite, &mut rewards);
        rewards
    }

    /// Gradients by the hidden states and the score vector.
    pub fn rewards_backward(&self, device: &mut Device<'_>, score: Parameter, d_reward: &[f32]) {
        let n = d_reward.len();
        let d = score.columns;
        let [hidden, d_hidden] = self.hidden_pair(&mut device.memory.activations, n);
        let score_d = &device.weights[score.range()];
        let d_score_d = &mut device.memory.gradients[score.range()];
        let (pool, into_hidden, into_score) =
            (device.pool, Dims { m: n, n: d, k: 1 }, Dims { m: 1, n: d, k: n });
        kernels::matmul_nn(pool, into_hidden, d_reward, score_d, Write::Overwrite, d_hidden);
        kernels::matmul_tn(pool, into_score, d_reward, hidden, Write::Accumulate, d_score_d);
    }

    fn hidden_pair<'a>(&self, activations: &'a mut [f32], n: usize) -> [&'a mut [f32]; 2] {
        let ranges = [self.scratch.normed.first(n), self.scratch.d_normed.first(n)];
        crate::device::places(activations, ranges)
    }
}
