//! Root-mean-square normalisation (Zhang and Sennrich 2019).

use crate::check::length;
use crate::matmul::Write;
use crate::pool::Pool;
use crate::reference;

/// `out[t, d] = x[t, d] * inverse_rms[t] * gain[d]` with `inverse_rms = 1 / sqrt(mean(x²) + eps)`,
/// which is kept for the backward pass. `d` is the length of `gain`.
///
/// # Panics
/// If lengths do not fit.
pub fn rms_norm_forward(
    _pool: &Pool,
    eps: f32,
    x: &[f32],
    gain: &[f32],
    out: &mut [f32],
    inverse_rms: &mut [f32],
) {
    let expected = inverse_rms.len() * gain.len();
    length("rms_norm_forward", "x", x, expected);
    length("rms_norm_forward", "out", out, expected);
    reference::rms_norm_forward(eps, x, gain, out, inverse_rms);
}

/// Gradient by `x` (overwritten, or added: the residual's gradient is often there already), and by
/// `gain` (always added), from the one by the output.
///
/// # Panics
/// If lengths do not fit.
#[allow(clippy::too_many_arguments)]
pub fn rms_norm_backward(
    _pool: &Pool,
    x: &[f32],
    gain: &[f32],
    inverse_rms: &[f32],
    d_out: &[f32],
    write: Write,
    d_x: &mut [f32],
    d_gain: &mut [f32],
) {
    let expected = inverse_rms.len() * gain.len();
    length("rms_norm_backward", "x", x, expected);
    length("rms_norm_backward", "d_out", d_out, expected);
    length("rms_norm_backward", "d_x", d_x, expected);
    length("rms_norm_backward", "d_gain", d_gain, gain.len());
    reference::rms_norm_backward(x, gain, inverse_rms, d_out, write, d_x, d_gain);
}
