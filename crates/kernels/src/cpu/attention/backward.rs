//! Gradients of attention: probabilities once more from the saved log-sum-exp, then five products of
//! tiles.

use super::{KEYS, Rows, scale, scale_columns, sequences};
use crate::attention::{AttentionGradients, AttentionShape, SavedAttention};
use crate::cpu::lanes::dot;
use crate::cpu::level::Level;
use crate::cpu::math::exp;
use crate::cpu::pack::{Strided, pack_rows, transpose};
use crate::cpu::scratch::with_thread_scratch;
use crate::cpu::share::Shared;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::{Avx2, Avx512};
use crate::cpu::simd::{Plain, Simd};
use crate::cpu::tile::{STRIDED, Tile};
use crate::matmul::Write;
use crate::pool::Pool;
use std::ops::Range;

/// See `attention_backward`. A piece is a sequence and a key/value head with all its query heads, so
/// that no two pieces add to the same gradient.
pub(crate) fn backward(
    pool: &Pool,
    shape: AttentionShape,
    segments: &[u32],
    saved: SavedAttention<'_>,
    d_out: &[f32],
    gradients: AttentionGradients<'_>,
) {
    let mut sequences = sequences(segments, saved.q.len() / shape.q_width());
    sequences.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
    let job = Job {
        shape,
        saved,
        d_out,
        d_q: Shared::new(gradients.d_q),
        d_k: Shared::new(gradients.d_k),
        d_v: Shared::new(gradients.d_v),
    };
    pool.run(sequences.len() * shape.num_kv_heads, |piece| {
        let rows = sequences[piece / shape.num_kv_heads].clone();
        job.run(pool.level(), rows, piece % shape.num_kv_heads);
    });
}

struct Job<'a> {
    shape: AttentionShape,
    saved: SavedAttention<'a>,
    d_out: &'a [f32],
    d_q: Shared<'a, f32>,
    d_k: Shared<'a, f32>,
    d_v: Shared<'a, f32>,
}

impl Job<'_> {
    fn run(&self, level: Level, rows: Range<usize>, kv_head: usize) {
        let AttentionShape { head_dim, .. } = self.shape;
        for row in rows.clone() {
            let at = row * self.shape.kv_width() + kv_head * head_dim;
            for gradient in [&self.d_k, &self.d_v] {
                // SAFETY: each pair of row and key/value head is in one piece.
                unsafe { gradient.part(at..at + head_dim) }.fill(0.0);
            }
        }
        let queries = level.columns();
        let length = Scratch::length(head_dim, queries);
        with_thread_scratch(length, |scratch| {
            let mut scratch = Scratch::cut(scratch, head_dim, queries);
            let group = self.shape.group();
            for head in kv_head * group..(kv_head + 1) * group {
                for first in rows.clone().step_by(queries) {
                    let block = first..(first + queries).min(rows.end);
                    self.dispatch(level, rows.start, block, head, &mut scratch);
                }
            }
        });
    }

    fn dispatch(
        &self,
        level: Level,
        start: usize,
        rows: Range<usize>,
        head: usize,
        scratch: &mut Scratch<'_>,
    ) {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => level.run(
                #[inline(always)]
                // SAFETY: the level vouches for the instruction set.
                || unsafe { self.block::<Avx512, 32>(start, rows, head, scratch) },
            ),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => level.run(
                #[inline(always)]
                // SAFETY: the level vouches for the instruction set.
                || unsafe { self.block::<Avx2, 16>(start, rows, head, scratch) },
            ),
            // SAFETY: plain vectors need no instruction set.
            Level::Plain => unsafe { self.block::<Plain, 16>(start, rows, head, scratch) },
        }
    }

    /// One block of queries against all keys before it.
    ///
    /// # Safety
    /// The processor must have `S`, and `Q` must be `S::COLUMNS`.
    #[inline(always)]
    unsafe fn block<S: Simd, const Q: usize>(
        &self,
        start: usize,
        rows: Range<usize>,
        head: usize,
        scratch: &mut Scratch<'_>,
    ) {
        let AttentionShape { head_dim, .. } = self.shape;
        let kv_width = self.shape.kv_width();
        let offset = self.shape.kv_head(head) * head_dim;
        // SAFETY: as the caller vouches.
        let (log_sum_exp, delta) = unsafe { self.load::<S, Q>(rows.clone(), head, scratch) };
        let Scratch { q, d_out, q_rows, d_out_rows, d_q, powers, d_scores, width } = scratch;
        d_q.fill(0.0);
        for first in (start..rows.end).step_by(KEYS) {
            let keys = first..(first + KEYS).min(rows.end);
            let of = |data| Rows::of(data, kv_width, keys.clone(), offset, head_dim);
            let (k, v) = (of(self.saved.k), of(self.saved.v));
            // SAFETY: the caller vouches for `S`; scratch was cut for `Q` queries and `KEYS` keys.
            unsafe {
                k.scores::<S>(head_dim, q, powers);
                v.scores::<S>(head_dim, d_out, d_scores);
            }
            let diagonal = rows.start.saturating_sub(first);
            let tiles =
                powers.as_chunks_mut::<Q>().0.iter_mut().zip(d_scores.as_chunks_mut::<Q>().0);
            for (key, (power, d_score)) in tiles.take(keys.len()).enumerate() {
                let hidden = key.saturating_sub(diagonal).min(Q);
                for i in 0..Q {
                    power[i] = exp(power[i] - log_sum_exp[i]);
                    d_score[i] = power[i] * (d_score[i] - delta[i]);
                }
                power[..hidden].fill(0.0);
                d_score[..hidden].fill(0.0);
            }
            // SAFETY: as above; each pair of key and key/value head is in one piece.
            unsafe {
                k.mix::<S>(head_dim, keys.len(), d_scores, d_q);
                let [d_k, d_v] = [&self.d_k, &self.d_v]
                    .map(|gradient| gradient.start().add(keys.start * kv_width + offset));
                let outer =
                    Outer { keys: keys.len(), queries: rows.len(), head_dim, width: *width };
                outer.add::<S>(powers, d_out_rows, d_v, kv_width);
                outer.add::<S>(d_scores, q_rows, d_k, kv_width);
            }
        }
        let width = self.shape.q_width();
        // SAFETY: the caller vouches for `S`; the rows of this head are inside `d_q` and belong to
        // this piece alone.
        unsafe {
            scale_columns::<S, Q>(d_q, &[scale(head_dim); Q]);
            let to = self.d_q.start().add(rows.start * width + head * head_dim);
            transpose::<S>(d_q.as_ptr(), Q, [head_dim, rows.len()], to, width);
        }
    }

    /// Lays the block's queries and gradients out both ways. Returns the saved log-sum-exp of each
    /// query and the product of its output with the output's gradient.
    ///
    /// # Safety
    /// The processor must have `S`, and `Q` must be `S::COLUMNS`.
    #[inline(always)]
    unsafe fn load<S: Simd, const Q: usize>(
        &self,
        rows: Range<usize>,
        head: usize,
        scratch: &mut Scratch<'_>,
    ) -> ([f32; Q], [f32; Q]) {
        let AttentionShape { head_dim, num_heads, .. } = self.shape;
        let (q_width, offset) = (self.shape.q_width(), head * head_dim);
        let scale = scale(head_dim);
        let columns = offset..offset + head_dim;
        for (data, to) in [(self.saved.q, &mut scratch.q), (self.d_out, &mut scratch.d_out)] {
            let source = Strided::rows(data, q_width);
            // SAFETY: the caller vouches for `S`.
            unsafe { pack_rows::<S>(source, rows.start, rows.len(), columns.clone(), Q, to) };
        }
        scratch.q.iter_mut().for_each(|q| *q *= scale);
        let (mut log_sum_exp, mut delta) = ([0.0; Q], [0.0; Q]);
        for (i, row) in rows.enumerate() {
            let at = row * q_width + offset..row * q_width + offset + head_dim;
            let to = i * scratch.width..i * scratch.width + head_dim;
            let d_out = &self.d_out[at.clone()];
            scratch.d_out_rows[to.clone()].copy_from_slice(d_out);
            for (to, q) in scratch.q_rows[to].iter_mut().zip(&self.saved.q[at.clone()]) {
                *to = q * scale;
            }
            delta[i] = dot(d_out, &self.saved.out[at]);
            log_sum_exp[i] = self.saved.log_sum_exp[row * num_heads + head];
        }
        (log_sum_exp, delta)
    }
}

/// Sums over queries, into the gradients of keys and values.
struct Outer {
    keys: usize,
    queries: usize,
    head_dim: usize,
    width: usize,
}

impl Outer {
    /// `to[key][d] += sum over queries of tile[key][query] * rows[query][d]`.
    ///
    /// # Safety
    /// The processor must have `S`; `to` must be writable for `keys` rows of `head_dim`, `to_row`
    /// apart.
    #[inline(always)]
    unsafe fn add<S: Simd>(&self, tile: &[f32], rows: &[f32], to: *mut f32, to_row: usize) {
        debug_assert!(tile.len() >= self.keys * S::COLUMNS);
        debug_assert!(rows.len() >= self.queries * self.width);
        for column in (0..self.head_dim).step_by(S::COLUMNS) {
            for key in (0..self.keys).step_by(S::ROWS) {
                // SAFETY: `key` and `column` are inside; rows are padded to whole tiles; the caller
                // vouches for the rest.
                unsafe {
                    let tile = Tile {
                        k: self.queries,
                        a: tile.as_ptr().add(key * S::COLUMNS),
                        a_row: S::COLUMNS,
                        a_k: 1,
                        b: rows.as_ptr().add(column),
                        b_k: self.width,
                        to: to.add(key * to_row + column),
                        to_row,
                        columns: S::COLUMNS.min(self.head_dim - column),
                        write: Write::Accumulate,
                    };
                    tile.run::<S, STRIDED>(S::ROWS.min(self.keys - key));
                }
            }
        }
    }
}

/// What a block needs, cut from the thread's scratch.
struct Scratch<'a> {
    /// Scaled queries `[head_dim][query]`.
    q: &'a mut [f32],
    /// Gradients of the output `[head_dim][query]`.
    d_out: &'a mut [f32],
    /// Scaled queries `[query][width]`.
    q_rows: &'a mut [f32],
    /// Gradients of the output `[query][width]`.
    d_out_rows: &'a mut [f32],
    /// Gradients of the queries `[head_dim][query]`.
    d_q: &'a mut [f32],
    /// Probabilities `[key][query]`.
    powers: &'a mut [f32],
    /// Gradients of the scores `[key][query]`.
    d_scores: &'a mut [f32],
    /// The head's dimension in whole tiles.
    width: usize,
}

impl<'a> Scratch<'a> {
    fn length(head_dim: usize, queries: usize) -> usize {
        (3 * head_dim + 2 * head_dim.next_multiple_of(queries) + 2 * KEYS) * queries
    }

    fn cut(scratch: &'a mut [f32], head_dim: usize, queries: usize) -> Scratch<'a> {
        let width = head_dim.next_multiple_of(queries);
        let (q, rest) = scratch.split_at_mut(head_dim * queries);
        let (d_out, rest) = rest.split_at_mut(head_dim * queries);
        let (d_q, rest) = rest.split_at_mut(head_dim * queries);
        let (q_rows, rest) = rest.split_at_mut(queries * width);
        let (d_out_rows, rest) = rest.split_at_mut(queries * width);
        let (powers, d_scores) = rest.split_at_mut(KEYS * queries);
        Scratch { q, d_out, q_rows, d_out_rows, d_q, powers, d_scores, width }
    }
}
