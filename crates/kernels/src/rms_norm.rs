//! Root-mean-square normalisation (Zhang and Sennrich 2019).

use crate::check::length;
use crate::cpu::lanes::{dot, dot3};
use crate::cpu::share::Shared;
use crate::matmul::Write;
use crate::pool::Pool;

/// Rows of a piece of work. It is also the block over which the gain's gradient is summed first, so it
/// is part of that sum's order.
const ROWS: usize = 64;

/// `out[t, d] = x[t, d] * inverse_rms[t] * gain[d]` with `inverse_rms = 1 / sqrt(mean(x²) + eps)`,
/// which is kept for the backward pass. `d` is the length of `gain`.
///
/// # Panics
/// If lengths do not fit.
pub fn rms_norm_forward(
    pool: &Pool,
    eps: f32,
    x: &[f32],
    gain: &[f32],
    out: &mut [f32],
    inverse_rms: &mut [f32],
) {
    let expected = inverse_rms.len() * gain.len();
    length("rms_norm_forward", "x", x, expected);
    length("rms_norm_forward", "out", out, expected);
    let (rows, d) = (inverse_rms.len(), gain.len());
    let (out, inverse_rms) = (Shared::new(out), Shared::new(inverse_rms));
    pool.run_ranges(rows, ROWS, |range| {
        // SAFETY: pieces' rows do not overlap.
        let (out, inverse_rms) =
            unsafe { (out.part(range.start * d..range.end * d), inverse_rms.part(range.clone())) };
        let x = &x[range.start * d..range.end * d];
        pool.level().run(
            #[inline(always)]
            || {
                for (row, inverse) in inverse_rms.iter_mut().enumerate() {
                    let (x, out) = (&x[row * d..][..d], &mut out[row * d..][..d]);
                    *inverse = 1.0 / (dot(x, x) / d as f32 + eps).sqrt();
                    for ((out, &x), &gain) in out.iter_mut().zip(x).zip(gain) {
                        *out = x * *inverse * gain;
                    }
                }
            },
        );
    });
}

/// Gradient by `x` (overwritten, or added: the residual's gradient is often there already), and by
/// `gain` (always added), from the one by the output.
///
/// # Panics
/// If lengths do not fit.
#[allow(clippy::too_many_arguments)]
pub fn rms_norm_backward(
    pool: &Pool,
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
    let (rows, d) = (inverse_rms.len(), gain.len());
    let mut partial = pool.buffers().take(rows.div_ceil(ROWS) * d);
    let (d_x, sums) = (Shared::new(d_x), Shared::new(&mut partial));
    pool.run_ranges(rows, ROWS, |range| {
        let block = range.start / ROWS;
        // SAFETY: pieces' rows do not overlap, and each block of rows has its own sums.
        let (d_x, sums) = unsafe {
            (d_x.part(range.start * d..range.end * d), sums.part(block * d..(block + 1) * d))
        };
        sums.fill(0.0);
        pool.level().run(
            #[inline(always)]
            || {
                for row in range.clone() {
                    let at = row * d..(row + 1) * d;
                    let saved = Row { x: &x[at.clone()], gain, inverse: inverse_rms[row] };
                    let d_x = &mut d_x[(row - range.start) * d..][..d];
                    saved.backward(&d_out[at], write, d_x, sums);
                }
            },
        );
    });
    for block in partial.chunks_exact(d.max(1)) {
        d_gain.iter_mut().zip(block).for_each(|(sum, x)| *sum += x);
    }
}

struct Row<'a> {
    x: &'a [f32],
    gain: &'a [f32],
    inverse: f32,
}

impl Row<'_> {
    /// With y = x r g and r the inverse: dx = r (g dy - x r² mean(g dy x)), dg = dy x r.
    #[inline(always)]
    fn backward(&self, d_out: &[f32], write: Write, d_x: &mut [f32], d_gain: &mut [f32]) {
        let r = self.inverse;
        let pull = r * r * dot3(d_out, self.gain, self.x) / self.x.len() as f32;
        if write == Write::Overwrite {
            d_x.fill(0.0);
        }
        let values = self.x.iter().zip(self.gain).zip(d_out);
        for (((&x, &gain), &d_out), (d_x, d_gain)) in values.zip(d_x.iter_mut().zip(d_gain)) {
            *d_x += r * (gain * d_out - x * pull);
            *d_gain = (d_out * x).mul_add(r, *d_gain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::testing::{assert_close, assert_gradient, bits, pools, values, weighted_sum};
    use proptest::prelude::*;

    const EPS: f32 = 1e-5;

    fn forward(pool: &Pool, x: &[f32], gain: &[f32]) -> [Vec<f32>; 2] {
        let mut out = vec![f32::NAN; x.len()];
        let mut inverse_rms = vec![f32::NAN; x.len() / gain.len()];
        rms_norm_forward(pool, EPS, x, gain, &mut out, &mut inverse_rms);
        [out, inverse_rms]
    }

    fn backward(
        pool: &Pool,
        x: &[f32],
        gain: &[f32],
        d_out: &[f32],
        write: Write,
    ) -> [Vec<f32>; 2] {
        let [_, inverse_rms] = forward(pool, x, gain);
        let (mut d_x, mut d_gain) = (values(8, x.len()), values(9, gain.len()));
        rms_norm_backward(pool, x, gain, &inverse_rms, d_out, write, &mut d_x, &mut d_gain);
        [d_x, d_gain]
    }

    fn check(rows: usize, d: usize, write: Write) {
        let (x, gain, d_out) = (values(1, rows * d), values(2, d), values(3, rows * d));
        let [mut out, mut inverse_rms] = [vec![0.0; x.len()], vec![0.0; rows]];
        reference::rms_norm_forward(EPS, &x, &gain, &mut out, &mut inverse_rms);
        let (mut d_x, mut d_gain) = (values(8, x.len()), values(9, d));
        reference::rms_norm_backward(&x, &gain, &inverse_rms, &d_out, write, &mut d_x, &mut d_gain);
        let mut first = None;
        for pool in pools() {
            let forward = forward(&pool, &x, &gain);
            assert_close("out", &forward[0], &out, 1e-5);
            assert_close("inverse_rms", &forward[1], &inverse_rms, 1e-5);
            let backward = backward(&pool, &x, &gain, &d_out, write);
            assert_close("d_x", &backward[0], &d_x, 2e-5);
            assert_close("d_gain", &backward[1], &d_gain, 2e-5);
            let found = [forward, backward].map(|pair| pair.map(|x| bits(&x)));
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{pool:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn agrees_with_its_twin_and_is_the_same_everywhere(rows in 0usize..200, d in 1usize..90) {
            check(rows, d, Write::Overwrite);
            check(rows, d, Write::Accumulate);
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let pool = Pool::new(1);
        let (x, gain, d_out) = (values(1, 5 * 12), values(2, 12), values(3, 5 * 12));
        let [d_x, mut d_gain] = backward(&pool, &x, &gain, &d_out, Write::Overwrite);
        d_gain.iter_mut().zip(values(9, 12)).for_each(|(x, old)| *x -= old);
        let loss = |x: &[f32], gain: &[f32]| weighted_sum(&forward(&pool, x, gain)[0], &d_out);
        assert_gradient("d_x", &x, &d_x, |x| loss(x, &gain));
        assert_gradient("d_gain", &gain, &d_gain, |gain| loss(&x, gain));
    }
}
