//! The residual's sum.

use crate::check::length;
use crate::cpu::share::Shared;
use crate::pool::Pool;

/// Elements of a piece of work.
const PIECE: usize = 1 << 15;

/// `out += x`, element by element.
///
/// # Panics
/// If lengths differ.
pub fn add(pool: &Pool, x: &[f32], out: &mut [f32]) {
    length("add", "x", x, out.len());
    let level = pool.level();
    let length = out.len();
    let out = Shared::new(out);
    pool.run_ranges(length, PIECE, |range| {
        // SAFETY: pieces' ranges do not overlap.
        let out = unsafe { out.part(range.clone()) };
        let x = &x[range];
        level.run(
            #[inline(always)]
            || out.iter_mut().zip(x).for_each(|(out, x)| *out += x),
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pools, values};

    #[test]
    fn adds_every_element_once() {
        for n in [0, 1, 33, PIECE + 1, 5 * PIECE - 1] {
            let (x, old) = (values(1, n), values(2, n));
            let expected: Vec<f32> = x.iter().zip(&old).map(|(a, b)| a + b).collect();
            for pool in pools() {
                let mut out = old.clone();
                add(&pool, &x, &mut out);
                assert_eq!(out, expected, "{n} {pool:?}");
            }
        }
    }
}
