//! The head and the log-probabilities of targets, in chunks: the logits are never whole.

use crate::check::{ids_below, length};
use crate::pool::Pool;
use crate::reference;

/// Extents of the head: logits are `hidden[rows, d_model] · head[vocab_size, d_model]ᵀ`. The number
/// of rows is that of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossEntropyShape {
    /// Width of the hidden rows.
    pub d_model: usize,
    /// Number of logits of a row.
    pub vocab_size: usize,
}

/// What the forward pass writes for each row.
pub struct Scores<'a> {
    /// Log-probability of the target (nats).
    pub log_prob: &'a mut [f32],
    /// Log of the sum of the exponentials of the logits.
    pub log_sum_exp: &'a mut [f32],
    /// Entropy of the predicted distribution (nats).
    pub entropy: &'a mut [f32],
}

/// The three gradients of each row that the backward pass starts from.
#[derive(Clone, Copy)]
pub struct ScoreGradients<'a> {
    /// By the log-probability of the target.
    pub d_log_prob: &'a [f32],
    /// By the log-sum-exp.
    pub d_log_sum_exp: &'a [f32],
    /// By the entropy.
    pub d_entropy: &'a [f32],
}

/// Scores of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Log-probability of the target (nats).
    pub log_prob: f32,
    /// Log of the sum of the exponentials of the logits.
    pub log_sum_exp: f32,
    /// Entropy of the predicted distribution (nats).
    pub entropy: f32,
}

/// Log-probability of each row's target, log-sum-exp and entropy.
///
/// # Panics
/// If lengths do not fit or a target is beyond the vocabulary.
pub fn cross_entropy_forward(
    _pool: &Pool,
    shape: CrossEntropyShape,
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    scores: Scores<'_>,
) {
    let operation = "cross_entropy_forward";
    shape.check(operation, hidden, head, targets);
    length(operation, "log_prob", scores.log_prob, targets.len());
    length(operation, "log_sum_exp", scores.log_sum_exp, targets.len());
    length(operation, "entropy", scores.entropy, targets.len());
    reference::cross_entropy_forward(shape, hidden, head, targets, scores);
}

/// Gradients by the hidden rows (overwritten) and by the head (added), from those by the scores. The
/// logits are computed again; `log_sum_exp` and `entropy` are those of the forward pass.
///
/// # Panics
/// If lengths do not fit or a target is beyond the vocabulary.
#[allow(clippy::too_many_arguments)]
pub fn cross_entropy_backward(
    _pool: &Pool,
    shape: CrossEntropyShape,
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    log_sum_exp: &[f32],
    entropy: &[f32],
    gradients: ScoreGradients<'_>,
    d_hidden: &mut [f32],
    d_head: &mut [f32],
) {
    let operation = "cross_entropy_backward";
    shape.check(operation, hidden, head, targets);
    length(operation, "log_sum_exp", log_sum_exp, targets.len());
    length(operation, "entropy", entropy, targets.len());
    length(operation, "d_log_prob", gradients.d_log_prob, targets.len());
    length(operation, "d_log_sum_exp", gradients.d_log_sum_exp, targets.len());
    length(operation, "d_entropy", gradients.d_entropy, targets.len());
    length(operation, "d_hidden", d_hidden, hidden.len());
    length(operation, "d_head", d_head, head.len());
    reference::cross_entropy_backward(
        shape,
        hidden,
        head,
        targets,
        log_sum_exp,
        entropy,
        gradients,
        d_hidden,
        d_head,
    );
}

/// Forward and backward at once, for objectives whose gradient by each log-probability is known
/// beforehand: logits are computed once. Writes `log_prob` and `d_hidden`, adds to `d_head`.
///
/// # Panics
/// If lengths do not fit or a target is beyond the vocabulary.
#[allow(clippy::too_many_arguments)]
pub fn cross_entropy_fused(
    pool: &Pool,
    shape: CrossEntropyShape,
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    d_log_prob: &[f32],
    log_prob: &mut [f32],
    d_hidden: &mut [f32],
    d_head: &mut [f32],
) {
    let zeros = vec![0.0; targets.len()];
    let mut log_sum_exp = zeros.clone();
    let mut entropy = zeros.clone();
    cross_entropy_forward(
        pool,
        shape,
        hidden,
        head,
        targets,
        Scores { log_prob, log_sum_exp: &mut log_sum_exp, entropy: &mut entropy },
    );
    cross_entropy_backward(
        pool,
        shape,
        hidden,
        head,
        targets,
        &log_sum_exp,
        &entropy,
        ScoreGradients { d_log_prob, d_log_sum_exp: &zeros, d_entropy: &zeros },
        d_hidden,
        d_head,
    );
}

/// Scores of one row of logits, with the same bits as [`cross_entropy_forward`] gives.
///
/// # Panics
/// If `target` is beyond the logits.
pub fn score_logits(logits: &[f32], target: u32) -> Score {
    ids_below("score_logits", "target", &[target], logits.len());
    reference::score(logits.iter().map(|&z| f64::from(z)), target as usize)
}

impl CrossEntropyShape {
    fn check(&self, operation: &str, hidden: &[f32], head: &[f32], targets: &[u32]) {
        length(operation, "hidden", hidden, targets.len() * self.d_model);
        length(operation, "head", head, self.vocab_size * self.d_model);
        ids_below(operation, "targets", targets, self.vocab_size);
    }
}
