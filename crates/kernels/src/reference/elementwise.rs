//! Operations on single elements or single rows.

use crate::{AdamW, Moments, RopeTable, Rotation, Write};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// See [`crate::swiglu_forward`].
pub fn swiglu_forward(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for i in 0..out.len() {
        let g = f64::from(gate[i]);
        out[i] = (g * sigmoid(g) * f64::from(up[i])) as f32;
    }
}

/// See [`crate::swiglu_backward`].
pub fn swiglu_backward(
    gate: &[f32],
    up: &[f32],
    d_out: &[f32],
    d_gate: &mut [f32],
    d_up: &mut [f32],
) {
    for i in 0..d_out.len() {
        let (g, u, d) = (f64::from(gate[i]), f64::from(up[i]), f64::from(d_out[i]));
        let s = sigmoid(g);
        d_gate[i] = (d * u * s * (1.0 + g * (1.0 - s))) as f32;
        d_up[i] = (d * g * s) as f32;
    }
}

/// See [`crate::rms_norm_forward`].
pub fn rms_norm_forward(
    eps: f32,
    x: &[f32],
    gain: &[f32],
    out: &mut [f32],
    inverse_rms: &mut [f32],
) {
    let d = gain.len();
    for (row, inverse) in inverse_rms.iter_mut().enumerate() {
        let x = &x[row * d..][..d];
        let mean = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / d as f64;
        let exact = 1.0 / (mean + f64::from(eps)).sqrt();
        *inverse = exact as f32;
        for j in 0..d {
            out[row * d + j] = (f64::from(x[j]) * exact * f64::from(gain[j])) as f32;
        }
    }
}

/// See [`crate::rms_norm_backward`].
pub fn rms_norm_backward(
    x: &[f32],
    gain: &[f32],
    inverse_rms: &[f32],
    d_out: &[f32],
    write: Write,
    d_x: &mut [f32],
    d_gain: &mut [f32],
) {
    let d = gain.len();
    let mut sums: Vec<f64> = d_gain.iter().map(|&g| f64::from(g)).collect();
    for (row, &inverse) in inverse_rms.iter().enumerate() {
        let inverse = f64::from(inverse);
        let at = |slice: &[f32], j: usize| f64::from(slice[row * d + j]);
        let dot = (0..d).map(|j| at(d_out, j) * f64::from(gain[j]) * at(x, j)).sum::<f64>();
        for j in 0..d {
            sums[j] += at(d_out, j) * at(x, j) * inverse;
            let value = inverse
                * (at(d_out, j) * f64::from(gain[j]) - at(x, j) * inverse.powi(2) * dot / d as f64);
            let old = if write == Write::Accumulate { at(d_x, j) } else { 0.0 };
            d_x[row * d + j] = (old + value) as f32;
        }
    }
    for (d_gain, sum) in d_gain.iter_mut().zip(sums) {
        *d_gain = sum as f32;
    }
}

/// See [`crate::rope`].
pub fn rope(table: &RopeTable, rotation: Rotation, positions: &[u32], x: &mut [f32]) {
    let half = table.head_dim() / 2;
    let width = x.len() / positions.len().max(1);
    for (row, &position) in x.chunks_exact_mut(width.max(1)).zip(positions) {
        for head in row.chunks_exact_mut(2 * half) {
            for i in 0..half {
                let angle = position as usize * half + i;
                let cosine = f64::from(table.cosines[angle]);
                let sine = match rotation {
                    Rotation::Forward => f64::from(table.sines[angle]),
                    Rotation::Backward => -f64::from(table.sines[angle]),
                };
                let (a, b) = (f64::from(head[i]), f64::from(head[i + half]));
                head[i] = (a * cosine - b * sine) as f32;
                head[i + half] = (b * cosine + a * sine) as f32;
            }
        }
    }
}

/// See [`crate::embedding_backward`].
pub fn embedding_backward(d_model: usize, token_ids: &[u32], d_out: &[f32], d_table: &mut [f32]) {
    for (row, &id) in token_ids.iter().enumerate() {
        for j in 0..d_model {
            d_table[id as usize * d_model + j] += d_out[row * d_model + j];
        }
    }
}

/// See [`crate::adamw`].
pub fn adamw(settings: &AdamW, gradients: &[f32], moments: Moments<'_>, weights: &mut [f32]) {
    let (beta1, beta2) = (f64::from(settings.beta1), f64::from(settings.beta2));
    let rate = f64::from(settings.learning_rate);
    let correct1 = 1.0 - beta1.powi(settings.step as i32);
    let correct2 = 1.0 - beta2.powi(settings.step as i32);
    for i in 0..weights.len() {
        let g = f64::from(gradients[i]) * f64::from(settings.gradient_scale);
        let first = beta1 * f64::from(moments.first[i]) + (1.0 - beta1) * g;
        let second = beta2 * f64::from(moments.second[i]) + (1.0 - beta2) * g * g;
        let update = first / correct1 / ((second / correct2).sqrt() + f64::from(settings.epsilon));
        let kept = f64::from(weights[i]) * (1.0 - rate * f64::from(settings.weight_decay));
        moments.first[i] = first as f32;
        moments.second[i] = second as f32;
        weights[i] = (kept - rate * update) as f32;
    }
}

/// See [`crate::sum_of_squares`].
pub fn sum_of_squares(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x).powi(2)).sum()
}
