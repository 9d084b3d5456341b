//! Tiles of attention: the lanes of a vector are queries, so that softmax needs no sums across lanes.
//!
//! A tile of scores is stored transposed, `[key][query]`. Keys come in blocks of [`KEYS`] from the
//! start of their sequence; softmax goes from block to block with a running maximum (Milakov and
//! Gimelshein 2018; Dao et al. 2022). Every score is one chain over the head's dimension, every
//! output one chain over keys that is rescaled between blocks, every sum of a block four chains over
//! keys. None of it depends on the block of queries, so one new row can do the same alone.

mod backward;
mod decode;
mod forward;

pub(crate) use backward::backward;
pub(crate) use decode::decode;
pub(crate) use forward::forward;

use crate::cpu::lanes::larger;
use crate::cpu::math::exp;
use crate::cpu::simd::Simd;
use crate::cpu::tile::{PACKED, STRIDED, TRIANGLE, Tile};
use crate::matmul::Write;
use std::ops::Range;

/// Keys of a block. Part of the order of summation.
pub(crate) const KEYS: usize = 64;
/// Chains over which a block's probabilities are summed. Part of the order of summation.
const CHAINS: usize = 4;

/// Rows of each sequence.
fn sequences(segments: &[u32], rows: usize) -> Vec<Range<usize>> {
    let ends = segments.iter().skip(1).map(|&end| end as usize).chain([rows]);
    segments.iter().zip(ends).map(|(&start, end)| start as usize..end).collect()
}

/// Rows of keys or values of one head, `step` apart.
#[derive(Clone, Copy)]
struct Rows {
    first: *const f32,
    step: usize,
    count: usize,
}

impl Rows {
    /// The head at `offset` in rows `rows` of `data`, whose rows have `width` elements.
    fn of(data: &[f32], width: usize, rows: Range<usize>, offset: usize, head_dim: usize) -> Rows {
        assert!(offset + head_dim <= width && rows.end * width <= data.len());
        let first = data[rows.start * width + offset..].as_ptr();
        Rows { first, step: width, count: rows.len() }
    }

    /// `to[row][query] = row · x` with `x` as `[head_dim][query]`.
    ///
    /// # Safety
    /// The processor must have `S`; `x` must have `head_dim` and `to` `count` rows of `S::COLUMNS`.
    #[inline(always)]
    unsafe fn scores<S: Simd>(&self, head_dim: usize, x: &[f32], to: &mut [f32]) {
        debug_assert!(x.len() >= head_dim * S::COLUMNS && to.len() >= self.count * S::COLUMNS);
        for row in (0..self.count).step_by(S::ROWS) {
            // SAFETY: `row` is below `count`; the caller vouches for the rest.
            unsafe {
                let tile = Tile {
                    k: head_dim,
                    a: self.first.add(row * self.step),
                    a_row: self.step,
                    a_k: 1,
                    b: x.as_ptr(),
                    b_k: S::COLUMNS,
                    to: to.as_mut_ptr().add(row * S::COLUMNS),
                    to_row: S::COLUMNS,
                    columns: S::COLUMNS,
                    write: Write::Overwrite,
                };
                tile.run::<S, STRIDED>(S::ROWS.min(self.count - row));
            }
        }
    }

    /// `to[d][query] += sum over rows of row[d] * p[row][query]`; from the row `diagonal` on, row
    /// `diagonal + i` only adds to the queries from `i` on.
    ///
    /// # Safety
    /// As of `scores`, with `p` and `to` in the places of `to` and `x`; `diagonal` must not exceed
    /// `count`.
    #[inline(always)]
    unsafe fn mix<S: Simd>(&self, head_dim: usize, diagonal: usize, p: &[f32], to: &mut [f32]) {
        debug_assert!(to.len() >= head_dim * S::COLUMNS && p.len() >= self.count * S::COLUMNS);
        for d in (0..head_dim).step_by(S::ROWS) {
            let height = S::ROWS.min(head_dim - d);
            // SAFETY: `d` is below `head_dim`; the caller vouches for the rest.
            unsafe {
                let tile = Tile {
                    k: diagonal,
                    a: self.first.add(d),
                    a_row: 1,
                    a_k: self.step,
                    b: p.as_ptr(),
                    b_k: S::COLUMNS,
                    to: to.as_mut_ptr().add(d * S::COLUMNS),
                    to_row: S::COLUMNS,
                    columns: S::COLUMNS,
                    write: Write::Accumulate,
                };
                tile.run::<S, PACKED>(height);
                if diagonal < self.count {
                    let triangle = Tile {
                        k: self.count - diagonal,
                        a: tile.a.add(diagonal * self.step),
                        b: tile.b.add(diagonal * S::COLUMNS),
                        ..tile
                    };
                    triangle.run::<S, TRIANGLE>(height);
                }
            }
        }
    }
}

/// Softmax of some queries so far.
struct Running<const Q: usize> {
    max: [f32; Q],
    sum: [f32; Q],
}

impl<const Q: usize> Running<Q> {
    fn new() -> Running<Q> {
        Running { max: [f32::NEG_INFINITY; Q], sum: [0.0; Q] }
    }

    /// Takes in a block of scores, which become exp(score - maximum). From the key `diagonal` on, key
    /// `diagonal + i` is hidden from the queries before `i`. Returns the factor by which what was
    /// summed before has shrunk.
    #[inline(always)]
    fn add(&mut self, scores: &mut [[f32; Q]], diagonal: usize) -> [f32; Q] {
        let mut max = self.max;
        for (key, scores) in scores.iter_mut().enumerate() {
            if key > diagonal {
                scores[..(key - diagonal).min(Q)].fill(f32::NEG_INFINITY);
            }
            for i in 0..Q {
                max[i] = larger(max[i], scores[i]);
            }
        }
        let mut sums = [[0.0f32; Q]; CHAINS];
        let (whole, rest) = scores.as_chunks_mut::<CHAINS>();
        for scores in whole {
            for (sums, scores) in sums.iter_mut().zip(scores) {
                add_powers(scores, &max, sums);
            }
        }
        for (sums, scores) in sums.iter_mut().zip(rest) {
            add_powers(scores, &max, sums);
        }
        let mut shrink = [0.0f32; Q];
        for i in 0..Q {
            shrink[i] = exp(self.max[i] - max[i]);
            let sum = (sums[0][i] + sums[2][i]) + (sums[1][i] + sums[3][i]);
            self.sum[i] = self.sum[i].mul_add(shrink[i], sum);
        }
        self.max = max;
        shrink
    }
}

#[inline(always)]
fn add_powers<const Q: usize>(scores: &mut [f32; Q], max: &[f32; Q], sums: &mut [f32; Q]) {
    for i in 0..Q {
        scores[i] = exp(scores[i] - max[i]);
        sums[i] += scores[i];
    }
}

/// Multiplies each query's column of `x`, `[d][query]`, by its factor. Written out in vectors: left to
/// itself the compiler goes along the columns, with gathers and scatters.
///
/// # Safety
/// The processor must have `S`, and `Q` must be `S::COLUMNS`.
#[inline(always)]
unsafe fn scale_columns<S: Simd, const Q: usize>(x: &mut [f32], factors: &[f32; Q]) {
    // SAFETY: the caller vouches for `S`; factors and each row have `Q` elements, two vectors.
    unsafe {
        let factors = [S::load(factors.as_ptr()), S::load(factors[S::LANES..].as_ptr())];
        for row in x.as_chunks_mut::<Q>().0 {
            for (half, factor) in row.chunks_exact_mut(S::LANES).zip(factors) {
                S::store(half.as_mut_ptr(), S::mul(S::load(half.as_ptr()), factor));
            }
        }
    }
}

/// One over the root of the head's dimension: queries are scaled by it before they meet keys.
fn scale(head_dim: usize) -> f32 {
    (1.0 / (head_dim as f64).sqrt()) as f32
}
