//! The gated activation of the feed-forward layer: silu(gate) * up (Shazeer 2020).

use crate::check::length;
use crate::cpu::math::exp;
use crate::cpu::share::Shared;
use crate::pool::Pool;

/// Elements of a piece of work.
const PIECE: usize = 1 << 13;

/// `out = gate / (1 + exp(-gate)) * up`, element by element over any equal shapes.
///
/// # Panics
/// If lengths differ.
pub fn swiglu_forward(pool: &Pool, gate: &[f32], up: &[f32], out: &mut [f32]) {
    length("swiglu_forward", "gate", gate, out.len());
    length("swiglu_forward", "up", up, out.len());
    let length = out.len();
    let out = Shared::new(out);
    pool.run_ranges(length, PIECE, |range| {
        // SAFETY: pieces' ranges do not overlap.
        let out = unsafe { out.part(range.clone()) };
        let (gate, up) = (&gate[range.clone()], &up[range]);
        pool.level().run(
            #[inline(always)]
            || {
                for ((out, &gate), &up) in out.iter_mut().zip(gate).zip(up) {
                    *out = gate * sigmoid(gate) * up;
                }
            },
        );
    });
}

/// Gradients by `gate` and `up` (overwritten) from the one by the output.
///
/// # Panics
/// If lengths differ.
pub fn swiglu_backward(
    pool: &Pool,
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
    let (d_gate, d_up) = (Shared::new(d_gate), Shared::new(d_up));
    pool.run_ranges(expected, PIECE, |range| {
        // SAFETY: pieces' ranges do not overlap.
        let (d_gate, d_up) = unsafe { (d_gate.part(range.clone()), d_up.part(range.clone())) };
        let (gate, up, d_out) = (&gate[range.clone()], &up[range.clone()], &d_out[range]);
        pool.level().run(
            #[inline(always)]
            || {
                let values = gate.iter().zip(up).zip(d_out);
                let gradients = d_gate.iter_mut().zip(d_up);
                for (((&gate, &up), &d_out), (d_gate, d_up)) in values.zip(gradients) {
                    let s = sigmoid(gate);
                    *d_gate = d_out * up * s * (gate * (1.0 - s) + 1.0);
                    *d_up = d_out * gate * s;
                }
            },
        );
    });
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::testing::{assert_close, assert_gradient, bits, pools, values, weighted_sum};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_its_twin_and_is_the_same_everywhere(n in 0usize..20_000, size in 0.1f32..30.0) {
            let gate: Vec<f32> = values(1, n).iter().map(|x| size * x).collect();
            let (up, d_out) = (values(2, n), values(3, n));
            let zeros = || vec![0.0; n];
            let (mut out, mut d_gate, mut d_up) = (zeros(), zeros(), zeros());
            reference::swiglu_forward(&gate, &up, &mut out);
            reference::swiglu_backward(&gate, &up, &d_out, &mut d_gate, &mut d_up);
            let mut first = None;
            for pool in pools() {
                let mut found = [zeros(), zeros(), zeros()];
                let [found_out, found_gate, found_up] = &mut found;
                swiglu_forward(&pool, &gate, &up, found_out);
                swiglu_backward(&pool, &gate, &up, &d_out, found_gate, found_up);
                assert_close("out", found_out, &out, 1e-6);
                assert_close("d_gate", found_gate, &d_gate, 2e-6);
                assert_close("d_up", found_up, &d_up, 1e-6);
                let found = found.map(|x| bits(&x));
                assert_eq!(first.get_or_insert_with(|| found.clone()), &found);
            }
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let pool = Pool::new(1);
        let (gate, up, d_out) = (values(1, 50), values(2, 50), values(3, 50));
        let (mut d_gate, mut d_up) = (vec![0.0; 50], vec![0.0; 50]);
        swiglu_backward(&pool, &gate, &up, &d_out, &mut d_gate, &mut d_up);
        let loss = |gate: &[f32], up: &[f32]| {
            let mut out = vec![0.0; 50];
            swiglu_forward(&pool, gate, up, &mut out);
            weighted_sum(&out, &d_out)
        };
        assert_gradient("d_gate", &gate, &d_gate, |gate| loss(gate, &up));
        assert_gradient("d_up", &up, &d_up, |up| loss(&gate, up));
    }

    #[test]
    fn far_from_zero_it_is_the_gate_or_nothing() {
        let mut out = [0.0; 4];
        let gate = [200.0, -200.0, f32::NAN, f32::INFINITY];
        swiglu_forward(&Pool::new(1), &gate, &[1.0; 4], &mut out);
        assert_eq!((out[0], out[1], out[3]), (200.0, 0.0, f32::INFINITY));
        assert!(out[2].is_nan());
    }
}
