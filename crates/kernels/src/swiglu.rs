//! The gated activation of the feed-forward layer: silu(gate) * up (Shazeer 2020).

use crate::check::length;
use crate::pool::Pool;
use crate::reference;

/// `out = gate / (1 + exp(-gate)) * up`, element by element over any equal shapes.
///
/// # Panics
/// If lengths differ.
pub fn swiglu_forward(_pool: &Pool, gate: &[f32], up: &[f32], out: &mut [f32]) {
    length("swiglu_forward", "gate", gate, out.len());
    length("swiglu_forward", "up", up, out.len());
    reference::swiglu_forward(gate, up, out);
}

/// Gradients by `gate` and `up` (overwritten) from the one by the output.
///
/// # Panics
/// If lengths differ.
pub fn swiglu_backward(
    _pool: &Pool,
    gate: &[f32],
    up: &[f32],
    d_out: &[f32],
    d_gate: &mut [f32],
    d_up: &mut [f32],
) {
    let expected = d_out.len();
    length("swiglu_backward", "gate", gate, expected);
    length("swiglu_backward", "up", up, expected);
    length("swiglu_backward", "d_gate", d_gate, expected);
    length("swiglu_backward", "d_up", d_up, expected);
    reference::swiglu_backward(gate, up, d_out, d_gate, d_up);
}
