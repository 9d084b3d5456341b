//! Scores and their gradients with the whole row of logits.

use crate::{CrossEntropyShape, Score, ScoreGradients, Scores};

/// Scores of one row of logits.
fn score(logits: impl Iterator<Item = f64> + Clone, target: usize) -> Score {
    let max = logits.clone().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.clone().map(|z| (z - max).exp()).sum();
    let log_sum_exp = max + sum.ln();
    let mean: f64 = logits.clone().map(|z| (z - log_sum_exp).exp() * z).sum();
    let chosen = logits.clone().nth(target).unwrap_or(f64::NAN);
    Score {
        log_prob: (chosen - log_sum_exp) as f32,
        log_sum_exp: log_sum_exp as f32,
        entropy: (log_sum_exp - mean) as f32,
    }
}

fn logits(shape: CrossEntropyShape, row: &[f32], head: &[f32]) -> Vec<f64> {
    head.chunks_exact(shape.d_model)
        .map(|w| w.iter().zip(row).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum())
        .collect()
}

/// See [`crate::cross_entropy_forward`].
pub fn cross_entropy_forward(
    shape: CrossEntropyShape,
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    scores: Scores<'_>,
) {
    for (row, &target) in targets.iter().enumerate() {
        let logits = logits(shape, &hidden[row * shape.d_model..][..shape.d_model], head);
        let score = score(logits.iter().copied(), target as usize);
        scores.log_prob[row] = score.log_prob;
        scores.log_sum_exp[row] = score.log_sum_exp;
        scores.entropy[row] = score.entropy;
    }
}

/// See [`crate::cross_entropy_backward`]. With p = exp(z - lse) and H the entropy, the gradient by
/// logit j is p_j (-g_lp + g_lse - g_H (ln p_j + H)), and g_lp more at the target.
#[allow(clippy::too_many_arguments)]
pub fn cross_entropy_backward(
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
    let d = shape.d_model;
    let mut d_head_sum: Vec<f64> = d_head.iter().map(|&g| f64::from(g)).collect();
    for (row, &target) in targets.iter().enumerate() {
        let x = &hidden[row * d..][..d];
        let [g_lp, g_lse, g_h] =
            [gradients.d_log_prob, gradients.d_log_sum_exp, gradients.d_entropy]
                .map(|g| f64::from(g[row]));
        let mut d_row = vec![0.0f64; d];
        for (j, z) in logits(shape, x, head).into_iter().enumerate() {
            let log_p = z - f64::from(log_sum_exp[row]);
            let mut d_z = log_p.exp() * (g_lse - g_lp - g_h * (log_p + f64::from(entropy[row])));
            if j == target as usize {
                d_z += g_lp;
            }
            for i in 0..d {
                d_row[i] += d_z * f64::from(head[j * d + i]);
                d_head_sum[j * d + i] += d_z * f64::from(x[i]);
            }
        }
        d_row.iter().enumerate().for_each(|(i, &g)| d_hidden[row * d + i] = g as f32);
    }
    d_head.iter_mut().zip(d_head_sum).for_each(|(to, from)| *to = from as f32);
}
