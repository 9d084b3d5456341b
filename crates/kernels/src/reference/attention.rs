//! Attention with the whole matrix of scores of a row.

use crate::{AttentionGradients, AttentionShape, SavedAttention};

/// The row range of each segment.
fn ranges(segments: &[u32], rows: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let ends = segments.iter().skip(1).map(|&s| s as usize).chain([rows]);
    segments.iter().zip(ends).map(|(&start, end)| start as usize..end)
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// See [`crate::attention_forward`].
pub fn attention_forward(
    shape: AttentionShape,
    segments: &[u32],
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: &mut [f32],
    log_sum_exp: &mut [f32],
) {
    let AttentionShape { num_heads, num_kv_heads, head_dim } = shape;
    let scale = 1.0 / (head_dim as f64).sqrt();
    for range in ranges(segments, q.len() / shape.q_width()) {
        for t in range.clone() {
            for head in 0..num_heads {
                let kv = head / (num_heads / num_kv_heads);
                let at = |u: usize| u * shape.kv_width() + kv * head_dim;
                let from = t * shape.q_width() + head * head_dim;
                let query = &q[from..from + head_dim];
                let scores: Vec<f64> = (range.start..=t)
                    .map(|u| scale * dot(query, &k[at(u)..][..head_dim]))
                    .collect();
                let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = scores.iter().map(|s| (s - max).exp()).sum();
                log_sum_exp[t * num_heads + head] = (max + sum.ln()) as f32;
                for d in 0..head_dim {
                    let mix: f64 = (range.start..=t)
                        .zip(&scores)
                        .map(|(u, s)| (s - max).exp() / sum * f64::from(v[at(u) + d]))
                        .sum();
                    out[from + d] = mix as f32;
                }
            }
        }
    }
}

/// See [`crate::attention_backward`].
pub fn attention_backward(
    shape: AttentionShape,
    segments: &[u32],
    saved: SavedAttention<'_>,
    d_out: &[f32],
    gradients: AttentionGradients<'_>,
) {
    let AttentionShape { num_heads, num_kv_heads, head_dim } = shape;
    let scale = 1.0 / (head_dim as f64).sqrt();
    let mut d_q = vec![0.0f64; saved.q.len()];
    let mut d_k = vec![0.0f64; saved.k.len()];
    let mut d_v = vec![0.0f64; saved.v.len()];
    for range in ranges(segments, saved.q.len() / shape.q_width()) {
        for t in range.clone() {
            for head in 0..num_heads {
                let kv = head / (num_heads / num_kv_heads);
                let from = t * shape.q_width() + head * head_dim;
                let (query, d_row) = (&saved.q[from..][..head_dim], &d_out[from..][..head_dim]);
                let delta = dot(&saved.out[from..][..head_dim], d_row);
                let log_sum_exp = f64::from(saved.log_sum_exp[t * num_heads + head]);
                for u in range.start..=t {
                    let at = u * shape.kv_width() + kv * head_dim;
                    let (key, value) = (&saved.k[at..][..head_dim], &saved.v[at..][..head_dim]);
                    let p = (scale * dot(query, key) - log_sum_exp).exp();
                    let d_score = p * (dot(d_row, value) - delta) * scale;
                    for d in 0..head_dim {
                        d_q[from + d] += d_score * f64::from(key[d]);
                        d_k[at + d] += d_score * f64::from(query[d]);
                        d_v[at + d] += p * f64::from(d_row[d]);
                    }
                }
            }
        }
    }
    let round = |to: &mut [f32], from: &[f64]| {
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from as f32);
    };
    round(gradients.d_q, &d_q);
    round(gradients.d_k, &d_k);
    round(gradients.d_v, &d_v);
}
