//! Attention of a block of queries over the keys before it.

use super::{KEYS, Rows, Running, scale, scale_columns, sequences};
use crate::attention::AttentionShape;
use crate::cpu::level::Level;
use crate::cpu::pack::{Strided, pack_rows, transpose};
use crate::cpu::scratch::with_thread_scratch;
use crate::cpu::share::Shared;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::{Avx2, Avx512};
use crate::cpu::simd::{Plain, Simd};
use crate::pool::Pool;
use std::ops::Range;

/// See `attention_forward`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn forward(
    pool: &Pool,
    shape: AttentionShape,
    segments: &[u32],
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: &mut [f32],
    log_sum_exp: &mut [f32],
) {
    let queries = pool.level().columns();
    let mut blocks = Vec::new();
    for sequence in sequences(segments, q.len() / shape.q_width()) {
        for first in sequence.clone().step_by(queries) {
            blocks.push((sequence.start, first..(first + queries).min(sequence.end)));
        }
    }
    // Late blocks have most keys; taking them first leaves the small ones to fill the end.
    blocks.sort_by_key(|(start, rows)| std::cmp::Reverse(rows.start - start));
    let job = Job { shape, q, k, v, out: Shared::new(out), log_sum_exp: Shared::new(log_sum_exp) };
    pool.run(blocks.len() * shape.num_heads, |piece| {
        let (start, rows) = blocks[piece / shape.num_heads].clone();
        job.run(pool.level(), start, rows, piece % shape.num_heads);
    });
}

struct Job<'a> {
    shape: AttentionShape,
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    out: Shared<'a, f32>,
    log_sum_exp: Shared<'a, f32>,
}

impl Job<'_> {
    fn run(&self, level: Level, start: usize, rows: Range<usize>, head: usize) {
        let length = (2 * self.shape.head_dim + KEYS) * level.columns();
        with_thread_scratch(length, |scratch| match level {
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
        });
    }

    /// # Safety
    /// The processor must have `S`, and `Q` must be `S::COLUMNS`.
    #[inline(always)]
    unsafe fn block<S: Simd, const Q: usize>(
        &self,
        start: usize,
        rows: Range<usize>,
        head: usize,
        scratch: &mut [f32],
    ) {
        let AttentionShape { head_dim, .. } = self.shape;
        let (queries, rest) = scratch.split_at_mut(head_dim * Q);
        let (mixed, scores) = rest.split_at_mut(head_dim * Q);
        let source = Strided::rows(self.q, self.shape.q_width());
        let columns = head * head_dim..(head + 1) * head_dim;
        // SAFETY: the caller vouches for `S`.
        unsafe { pack_rows::<S>(source, rows.start, rows.len(), columns, Q, queries) };
        let scale = scale(head_dim);
        queries.iter_mut().for_each(|q| *q *= scale);
        mixed.fill(0.0);
        let mut running = Running::<Q>::new();
        for first in (start..rows.end).step_by(KEYS) {
            let keys = first..(first + KEYS).min(rows.end);
            let diagonal = rows.start.saturating_sub(first).min(keys.len());
            // SAFETY: the caller vouches for `S`; scratch was cut to these sizes.
            unsafe { self.rows(self.k, keys.clone(), head).scores::<S>(head_dim, queries, scores) };
            let (tile, _) = scores[..keys.len() * Q].as_chunks_mut::<Q>();
            let shrink = running.add(tile, diagonal);
            // SAFETY: as above.
            unsafe {
                scale_columns::<S, Q>(mixed, &shrink);
                self.rows(self.v, keys, head).mix::<S>(head_dim, diagonal, scores, mixed);
            }
        }
        // SAFETY: the caller vouches for `S`.
        unsafe { self.write::<S, Q>(rows, head, &running, mixed) };
    }

    fn rows(&self, data: &[f32], rows: Range<usize>, head: usize) -> Rows {
        let offset = self.shape.kv_head(head) * self.shape.head_dim;
        Rows::of(data, self.shape.kv_width(), rows, offset, self.shape.head_dim)
    }

    /// # Safety
    /// The processor must have `S`, and `Q` must be `S::COLUMNS`.
    #[inline(always)]
    unsafe fn write<S: Simd, const Q: usize>(
        &self,
        rows: Range<usize>,
        head: usize,
        running: &Running<Q>,
        mixed: &mut [f32],
    ) {
        let AttentionShape { head_dim, num_heads, .. } = self.shape;
        let inverse = running.sum.map(
            #[inline(always)]
            |sum| 1.0 / sum,
        );
        // SAFETY: as the caller vouches.
        unsafe { scale_columns::<S, Q>(mixed, &inverse) };
        for (i, row) in rows.clone().enumerate() {
            let saved = row * num_heads + head;
            // SAFETY: each pair of row and head is in one piece.
            let log_sum_exp = unsafe { self.log_sum_exp.part(saved..saved + 1) };
            log_sum_exp[0] = running.max[i] + running.sum[i].ln();
        }
        let width = self.shape.q_width();
        // SAFETY: the rows of this head are inside `out` and belong to this piece alone.
        unsafe {
            let to = self.out.start().add(rows.start * width + head * head_dim);
            transpose::<S>(mixed.as_ptr(), Q, [head_dim, rows.len()], to, width);
        }
    }
}
