//! Rotary position embedding (Su et al. 2021), with halves paired as Hugging Face's `rotate_half`
//! does: element `i` turns with element `i + head_dim / 2`.

use crate::check::{ids_below, length};
use crate::cpu::share::Shared;
use crate::pool::Pool;

/// Elements of a piece of work.
const PIECE: usize = 1 << 14;

/// Cosines and sines of every position's angles.
pub struct RopeTable {
    head_dim: usize,
    max_positions: usize,
    /// `[position, head_dim / 2]`.
    pub(crate) cosines: Vec<f32>,
    /// `[position, head_dim / 2]`.
    pub(crate) sines: Vec<f32>,
}

impl RopeTable {
    /// Angles `position * theta^(-2i / head_dim)`, computed in double precision.
    ///
    /// # Panics
    /// If `head_dim` is odd or zero.
    pub fn new(max_positions: usize, head_dim: usize, theta: f64) -> RopeTable {
        assert!(
            head_dim > 0 && head_dim.is_multiple_of(2),
            "RopeTable::new: head_dim is {head_dim}, expected even"
        );
        let half = head_dim / 2;
        let angles = (0..max_positions).flat_map(|position| {
            (0..half).map(move |i| position as f64 * theta.powf(-2.0 * i as f64 / head_dim as f64))
        });
        let (cosines, sines) = angles.map(|a| (a.cos() as f32, a.sin() as f32)).unzip();
        RopeTable { head_dim, max_positions, cosines, sines }
    }

    /// Length of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Number of positions it knows.
    pub fn max_positions(&self) -> usize {
        self.max_positions
    }
}

/// Which way to turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// As the layer does.
    Forward,
    /// Back: what gradients need.
    Backward,
}

/// Turns every head of every row of `x[t, heads * head_dim]` in place; row `t` stands at
/// `positions[t]`. The number of heads follows from the lengths.
///
/// # Panics
/// If `x` is not made of whole heads, or a position is beyond the table.
pub fn rope(pool: &Pool, table: &RopeTable, rotation: Rotation, positions: &[u32], x: &mut [f32]) {
    if positions.is_empty() {
        length("rope", "x", x, 0);
        return;
    }
    let heads = x.len() / (positions.len() * table.head_dim);
    length("rope", "x", x, positions.len() * heads * table.head_dim);
    ids_below("rope", "positions", positions, table.max_positions);
    let width = heads * table.head_dim;
    let x = Shared::new(x);
    pool.run_ranges(positions.len(), PIECE / width.max(1), |range| {
        // SAFETY: pieces' rows do not overlap.
        let x = unsafe { x.part(range.start * width..range.end * width) };
        pool.level().run(
            #[inline(always)]
            || {
                for (row, &position) in positions[range].iter().enumerate() {
                    table.turn(rotation, position as usize, &mut x[row * width..][..width]);
                }
            },
        );
    });
}

impl RopeTable {
    #[inline(always)]
    fn turn(&self, rotation: Rotation, position: usize, row: &mut [f32]) {
        let half = self.head_dim / 2;
        let cosines = &self.cosines[position * half..][..half];
        let sines = &self.sines[position * half..][..half];
        let sign = match rotation {
            Rotation::Forward => 1.0,
            Rotation::Backward => -1.0,
        };
        for head in row.chunks_exact_mut(self.head_dim) {
            let (first, second) = head.split_at_mut(half);
            let pairs = first.iter_mut().zip(second);
            for ((a, b), (&cosine, &sine)) in pairs.zip(cosines.iter().zip(sines)) {
                let sine = sign * sine;
                (*a, *b) = (*a * cosine - *b * sine, *b * cosine + *a * sine);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::testing::{assert_close, bits, pools, values};

    fn check(rows: usize, heads: usize, head_dim: usize, rotation: Rotation) {
        let table = RopeTable::new(50, head_dim, 10_000.0);
        let positions: Vec<u32> = (0..rows).map(|row| (row * 7 % 50) as u32).collect();
        let x = values(1, rows * heads * head_dim);
        let mut expected = x.clone();
        reference::rope(&table, rotation, &positions, &mut expected);
        let mut first = None;
        for pool in pools() {
            let mut found = x.clone();
            rope(&pool, &table, rotation, &positions, &mut found);
            assert_close("x", &found, &expected, 1e-6);
            assert_eq!(first.get_or_insert_with(|| bits(&found)), &bits(&found), "{pool:?}");
        }
    }

    #[test]
    fn agrees_with_its_twin_and_is_the_same_everywhere() {
        for (rows, heads, head_dim) in [(0, 1, 2), (1, 1, 2), (9, 3, 10), (700, 4, 64)] {
            check(rows, heads, head_dim, Rotation::Forward);
            check(rows, heads, head_dim, Rotation::Backward);
        }
    }

    #[test]
    fn turning_forth_and_back_changes_nothing() {
        let pool = Pool::new(1);
        let table = RopeTable::new(100, 32, 500_000.0);
        let (positions, x) = ([0, 3, 99], values(1, 3 * 64));
        let mut turned = x.clone();
        rope(&pool, &table, Rotation::Forward, &positions, &mut turned);
        assert_eq!(bits(&turned[..64]), bits(&x[..64]), "position 0 does not turn");
        assert!(turned[64..] != x[64..]);
        rope(&pool, &table, Rotation::Backward, &positions, &mut turned);
        assert_close("x", &turned, &x, 1e-6);
    }

    /// One head of four at position 1: the pairs are (0, 2) by one radian and (1, 3) by theta^(-1/2).
    #[test]
    fn halves_are_paired() {
        let table = RopeTable::new(2, 4, 100.0);
        let mut x = [1.0, 1.0, 0.0, 0.0];
        rope(&Pool::new(1), &table, Rotation::Forward, &[1], &mut x);
        let expected = [1.0f32.cos(), 0.1f32.cos(), 1.0f32.sin(), 0.1f32.sin()];
        assert_close("x", &x, &expected, 1e-6);
    }

    #[test]
    #[should_panic(expected = "rope: positions[0] is 2, expected below 2")]
    fn a_position_beyond_the_table_is_named() {
        let table = RopeTable::new(2, 4, 100.0);
        rope(&Pool::new(1), &table, Rotation::Forward, &[2], &mut [0.0; 4]);
    }
}
