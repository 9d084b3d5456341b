//! Attention of one new row: the same sums as in a block of queries, with keys as lanes for the
//! scores and the head's dimension as lanes for the output.

use super::{CHAINS, KEYS, scale};
use crate::attention::{AttentionShape, DecodeRow};
use crate::cpu::lanes::larger;
use crate::cpu::level::Level;
use crate::cpu::math::exp;
use crate::cpu::pack::{Strided, pack_rows};
use crate::cpu::scratch::with_thread_scratch;
use crate::cpu::share::Shared;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::{Avx2, Avx512};
use crate::cpu::simd::{Plain, Simd};
use crate::cpu::tile::{STRIDED, Tile};
use crate::matmul::Write;
use crate::pool::Pool;

/// See `attention_decode`.
pub(crate) fn decode(pool: &Pool, shape: AttentionShape, rows: &mut [DecodeRow<'_>]) {
    let rows: Vec<_> = rows
        .iter_mut()
        .map(|row| Job {
            shape,
            q: row.q,
            keys: row.keys,
            values: row.values,
            out: Shared::new(row.out),
        })
        .collect();
    pool.run(rows.len() * shape.num_kv_heads, |piece| {
        rows[piece / shape.num_kv_heads].run(pool.level(), piece % shape.num_kv_heads);
    });
}

struct Job<'a> {
    shape: AttentionShape,
    q: &'a [f32],
    keys: &'a [f32],
    values: &'a [f32],
    out: Shared<'a, f32>,
}

impl Job<'_> {
    fn run(&self, level: Level, kv_head: usize) {
        let (group, width) = (self.shape.group(), self.padded(level.columns()));
        let length =
            (self.shape.head_dim + width) * KEYS + group * (KEYS + self.shape.head_dim + width);
        with_thread_scratch(length, |scratch| match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => level.run(
                #[inline(always)]
                // SAFETY: the level vouches for the instruction set.
                || unsafe { self.head::<Avx512>(kv_head, scratch) },
            ),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => level.run(
                #[inline(always)]
                // SAFETY: the level vouches for the instruction set.
                || unsafe { self.head::<Avx2>(kv_head, scratch) },
            ),
            // SAFETY: plain vectors need no instruction set.
            Level::Plain => unsafe { self.head::<Plain>(kv_head, scratch) },
        });
    }

    /// A head's dimension in whole tiles.
    fn padded(&self, columns: usize) -> usize {
        self.shape.head_dim.next_multiple_of(columns)
    }

    /// All query heads that read one key/value head.
    ///
    /// # Safety
    /// The processor must have `S`.
    #[inline(always)]
    unsafe fn head<S: Simd>(&self, kv_head: usize, scratch: &mut [f32]) {
        let AttentionShape { head_dim, .. } = self.shape;
        let (group, width) = (self.shape.group(), self.padded(S::COLUMNS));
        let (keys, scratch) = scratch.split_at_mut(head_dim * KEYS);
        let (values, scratch) = scratch.split_at_mut(KEYS * width);
        let (scores, scratch) = scratch.split_at_mut(group * KEYS);
        let (queries, mixed) = scratch.split_at_mut(group * head_dim);
        let first = kv_head * group * head_dim;
        let scale = scale(head_dim);
        for (q, &x) in queries.iter_mut().zip(&self.q[first..first + group * head_dim]) {
            *q = x * scale;
        }
        mixed.fill(0.0);
        let mut running = vec![(f32::NEG_INFINITY, 0.0f32); group];
        let kv_width = self.shape.kv_width();
        let offset = kv_head * head_dim;
        let length = self.keys.len() / kv_width;
        for start in (0..length).step_by(KEYS) {
            let count = KEYS.min(length - start);
            let rows = Strided::rows(self.keys, kv_width);
            // SAFETY: the caller vouches for `S`.
            unsafe { pack_rows::<S>(rows, start, count, offset..offset + head_dim, KEYS, keys) };
            let by_key = Right { rows: keys, step: KEYS };
            // SAFETY: the caller vouches for `S`.
            unsafe {
                by_key.product::<S>(head_dim, KEYS, queries, head_dim, scores, Write::Overwrite)
            };
            for (head, (max, sum)) in running.iter_mut().enumerate() {
                let shrink = add(&mut scores[head * KEYS..][..count], max, sum);
                mixed[head * width..][..width].iter_mut().for_each(|x| *x *= shrink);
            }
            let from = &self.values[start * kv_width + offset..];
            let by_dimension = if width == head_dim {
                Right { rows: from, step: kv_width }
            } else {
                for (to, from) in
                    values.chunks_exact_mut(width).zip(from.chunks(kv_width)).take(count)
                {
                    to[..head_dim].copy_from_slice(&from[..head_dim]);
                }
                Right { rows: values, step: width }
            };
            // SAFETY: as above.
            unsafe {
                by_dimension.product::<S>(count, width, scores, KEYS, mixed, Write::Accumulate)
            };
        }
        for (head, (_, sum)) in running.iter().enumerate() {
            let at = first + head * head_dim;
            // SAFETY: each head is in one piece.
            let out = unsafe { self.out.part(at..at + head_dim) };
            let inverse = 1.0 / sum;
            for (out, x) in out.iter_mut().zip(&mixed[head * width..]) {
                *out = x * inverse;
            }
        }
    }
}

/// Takes in a block of scores as `Running::add` does for many queries.
#[inline(always)]
fn add(scores: &mut [f32], max: &mut f32, sum: &mut f32) -> f32 {
    let new_max = scores.iter().fold(*max, |max, &score| larger(max, score));
    for score in scores.iter_mut() {
        *score = exp(*score - new_max);
    }
    let mut sums = [0.0f32; CHAINS];
    for powers in scores.chunks(CHAINS) {
        sums.iter_mut().zip(powers).for_each(|(sum, power)| *sum += power);
    }
    let shrink = exp(*max - new_max);
    *max = new_max;
    *sum = sum.mul_add(shrink, (sums[0] + sums[2]) + (sums[1] + sums[3]));
    shrink
}

/// The right operand of a small product, `[k][column]`.
#[derive(Clone, Copy)]
struct Right<'a> {
    rows: &'a [f32],
    step: usize,
}

impl Right<'_> {
    /// `to[row, column] (+)= sum over k of a[row, k] * self[k, column]` for whole tiles of columns;
    /// rows of `a` lie `a_row` apart, those of `to` lie `columns` apart and say how many there are.
    ///
    /// # Safety
    /// The processor must have `S`.
    #[inline(always)]
    unsafe fn product<S: Simd>(
        &self,
        k: usize,
        columns: usize,
        a: &[f32],
        a_row: usize,
        to: &mut [f32],
        write: Write,
    ) {
        let rows = to.len() / columns;
        assert!(columns.is_multiple_of(S::COLUMNS));
        assert!(k > 0 && a.len() >= (rows - 1) * a_row + k);
        assert!(self.rows.len() >= (k - 1) * self.step + columns);
        for row in (0..rows).step_by(S::ROWS) {
            for column in (0..columns).step_by(S::COLUMNS) {
                // SAFETY: the caller vouches for `S`; the lengths were checked above.
                unsafe {
                    let tile = Tile {
                        k,
                        a: a.as_ptr().add(row * a_row),
                        a_row,
                        a_k: 1,
                        b: self.rows.as_ptr().add(column),
                        b_k: self.step,
                        to: to.as_mut_ptr().add(row * columns + column),
                        to_row: columns,
                        columns: S::COLUMNS,
                        write,
                    };
                    tile.run::<S, STRIDED>(S::ROWS.min(rows - row));
                }
            }
        }
    }
}
