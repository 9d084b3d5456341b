//! The square of a gradient's norm.

use crate::cpu::share::Shared;
use crate::pool::Pool;

/// Elements of a leaf of the tree.
const LEAF: usize = 1 << 14;

/// Sum of the squares of `x` in double precision, over a fixed tree.
pub fn sum_of_squares(pool: &Pool, x: &[f32]) -> f64 {
    let mut leaves = vec![0.0f64; x.len().div_ceil(LEAF)];
    let shared = Shared::new(&mut leaves);
    pool.run_ranges(x.len(), LEAF, |range| {
        // SAFETY: each range has a leaf of its own.
        let leaf = unsafe { shared.part(range.start / LEAF..range.start / LEAF + 1) };
        leaf[0] = pool.level().run(
            #[inline(always)]
            || leaf_sum(&x[range]),
        );
    });
    tree(&leaves)
}

#[inline(always)]
fn leaf_sum(x: &[f32]) -> f64 {
    let mut lanes = [0.0f64; 16];
    let (blocks, rest) = x.as_chunks::<16>();
    for block in blocks {
        for i in 0..16 {
            lanes[i] = f64::from(block[i]).mul_add(f64::from(block[i]), lanes[i]);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = f64::from(x).mul_add(f64::from(x), *lane);
    }
    tree(&lanes)
}

/// Halves summed by themselves, then together.
fn tree(sums: &[f64]) -> f64 {
    match sums {
        [] => 0.0,
        [sum] => *sum,
        _ => {
            let (left, right) = sums.split_at(sums.len() / 2);
            tree(left) + tree(right)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::testing::{pools, values};

    #[test]
    fn agrees_with_its_twin_and_is_the_same_everywhere() {
        for n in [0, 1, 15, 17, LEAF, LEAF + 1, 7 * LEAF + 333] {
            let x = values(1, n);
            let expected = reference::sum_of_squares(&x);
            let first = sum_of_squares(&Pool::new(1), &x);
            assert!((first - expected).abs() <= 1e-12 * expected, "{n}: {first}, {expected}");
            for pool in pools() {
                assert_eq!(sum_of_squares(&pool, &x).to_bits(), first.to_bits(), "{n} {pool:?}");
            }
        }
    }

    #[test]
    fn what_is_not_finite_comes_out() {
        let mut x = values(1, 100_000);
        x[77_777] = f32::INFINITY;
        assert_eq!(sum_of_squares(&Pool::new(2), &x), f64::INFINITY);
        x[3] = f32::NAN;
        assert!(sum_of_squares(&Pool::new(2), &x).is_nan());
    }
}
