//! The matrix kernel: tiles of the output stay in registers while k runs, a panel of B stays in the
//! first cache, a block of A in the second (Goto and van de Geijn 2008).
//!
//! Every output element is one chain of fused multiply-adds over ascending k. Where k is cut into
//! blocks, the chain goes on from the element's value in memory, so the bits depend on neither blocks
//! nor tiles nor threads.

use crate::cpu::level::Level;
use crate::cpu::pack::{Strided, pack_rows};
use crate::cpu::scratch::with_thread_scratch;
use crate::cpu::share::Shared;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::{Avx2, Avx512};
use crate::cpu::simd::{Plain, Simd};
use crate::cpu::tile::{PACKED, Tile};
use crate::matmul::{Dims, Write};
use crate::pool::Pool;
use std::ops::Range;

/// Length of a block of k: a panel of B and a strip of A over it fit the first cache.
const K_BLOCK: usize = 256;
/// Most columns of B that are packed at a time; a multiple of every level's panel.
const N_BLOCK: usize = 4096;
/// Elements of B that are packed at a time (8 MiB), unless a block of k has more. Threads meet twice
/// for each such part, so parts are large.
const PACKED_SIZE: usize = 1 << 21;
/// Most rows of a block of A: with `K_BLOCK` it takes a quarter of a megabyte of the second cache.
const M_BLOCK: usize = 256;
/// Fewest rows of a block when there are threads to feed.
const M_BLOCK_MIN: usize = 64;
/// Multiply-adds under which a second piece does not pay for waking a thread.
const PIECE_WORK: usize = 1 << 18;

/// The right operand, as columns over k.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a> {
    /// To be packed now; rows of this matrix are columns of B.
    Strided(Strided<'a>),
    /// Packed over the whole of k by [`pack_panels`].
    Packed(&'a [f32]),
}

impl Level {
    /// Columns of a panel of packed B.
    pub(crate) fn columns(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Avx512::COLUMNS,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Avx2::COLUMNS,
            Level::Plain => Plain::COLUMNS,
        }
    }

    fn rows(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Avx512::ROWS,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Avx2::ROWS,
            Level::Plain => Plain::ROWS,
        }
    }
}

/// Packs columns of B (rows of `b`) into panels over `ks`, each `[k][columns of a panel]`.
pub(crate) fn pack_panels(
    pool: &Pool,
    level: Level,
    b: Strided<'_>,
    columns: Range<usize>,
    ks: Range<usize>,
    out: &mut [f32],
) {
    let (width, k) = (level.columns(), ks.len());
    let panels = columns.len().div_ceil(width);
    let per_piece = (PIECE_WORK / 4 / (k * width).max(1)).max(1);
    let packing = Packing { b, columns, ks, out: Shared::new(out) };
    pool.run_ranges(panels, per_piece, |panels| match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => level.run(
            #[inline(always)]
            // SAFETY: the level vouches for the instruction set.
            || unsafe { packing.panels::<Avx512>(panels) },
        ),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => level.run(
            #[inline(always)]
            // SAFETY: the level vouches for the instruction set.
            || unsafe { packing.panels::<Avx2>(panels) },
        ),
        // SAFETY: plain vectors need no instruction set.
        Level::Plain => unsafe { packing.panels::<Plain>(panels) },
    });
}

struct Packing<'a> {
    b: Strided<'a>,
    columns: Range<usize>,
    ks: Range<usize>,
    out: Shared<'a, f32>,
}

impl Packing<'_> {
    /// # Safety
    /// The processor must have `S`.
    #[inline(always)]
    unsafe fn panels<S: Simd>(&self, panels: Range<usize>) {
        let size = self.ks.len() * S::COLUMNS;
        for panel in panels {
            let first = self.columns.start + panel * S::COLUMNS;
            let rows = S::COLUMNS.min(self.columns.end - first);
            // SAFETY: panels do not overlap, and each is in one piece; the caller vouches for `S`.
            unsafe {
                let out = self.out.part(panel * size..(panel + 1) * size);
                pack_rows::<S>(self.b, first, rows, self.ks.clone(), S::COLUMNS, out);
            }
        }
    }
}

/// `out (+)= A · B` with the rows of `a` as rows of A.
pub(crate) fn gemm(
    pool: &Pool,
    level: Level,
    dims: Dims,
    a: Strided<'_>,
    b: Right<'_>,
    write: Write,
    out: &mut [f32],
) {
    let Dims { m, n, k } = dims;
    if k == 0 && write == Write::Overwrite {
        out.fill(0.0);
    }
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    let product = Product { level, dims, a, b, out: Shared::new(out) };
    for first in (0..n).step_by(N_BLOCK) {
        let columns = first..(first + N_BLOCK).min(n);
        let k_step = match b {
            Right::Strided(_) => {
                (PACKED_SIZE / columns.len() / K_BLOCK).max(1).saturating_mul(K_BLOCK)
            }
            Right::Packed(_) => k,
        };
        for k0 in (0..k).step_by(k_step) {
            let ks = k0..(k0 + k_step).min(k);
            let write = if k0 == 0 { write } else { Write::Accumulate };
            product.part(pool, columns.clone(), ks, write);
        }
    }
}

/// A product that is under way.
struct Product<'a> {
    level: Level,
    dims: Dims,
    a: Strided<'a>,
    b: Right<'a>,
    out: Shared<'a, f32>,
}

impl Product<'_> {
    /// Computes some columns over a part of k.
    fn part(&self, pool: &Pool, columns: Range<usize>, ks: Range<usize>, write: Write) {
        let width = self.level.columns();
        let mut scratch = None;
        let (packed, panel_step) = match self.b {
            Right::Packed(packed) => {
                (&packed[columns.start * self.dims.k + ks.start * width..], self.dims.k * width)
            }
            Right::Strided(b) => {
                let step = ks.len() * width;
                let panels = columns.len().div_ceil(width);
                let buffer = scratch.insert(pool.buffers().take(panels * step));
                pack_panels(pool, self.level, b, columns.clone(), ks.clone(), buffer);
                (&buffer[..], step)
            }
        };
        let extent = Dims { m: self.dims.m, n: columns.len(), k: ks.len() };
        let grid = Grid::new(pool.threads(), self.level, extent);
        let part = Part {
            a: self.a,
            ks,
            packed,
            panel_step,
            out: self.out,
            columns,
            step: self.dims.n,
            write,
        };
        pool.run(grid.pieces(), |piece| {
            let (rows, panels) = grid.piece(piece);
            part.run(self.level, rows, panels);
        });
    }
}

/// How the output is cut into pieces: blocks of rows times blocks of panels.
struct Grid {
    m: usize,
    panels: usize,
    rows_step: usize,
    panels_step: usize,
}

impl Grid {
    fn new(threads: usize, level: Level, dims: Dims) -> Grid {
        let Dims { m, n, k } = dims;
        let (tile, panels) = (level.rows(), n.div_ceil(level.columns()));
        let work = m * n * k;
        let wanted = if threads == 1 { 1 } else { (4 * threads).min(work / PIECE_WORK).max(1) };
        let blocks = m.div_ceil(M_BLOCK).max(wanted.min(m / M_BLOCK_MIN));
        let rows_step = m.div_ceil(blocks).next_multiple_of(tile);
        let columns = wanted.div_ceil(m.div_ceil(rows_step)).clamp(1, panels);
        Grid { m, panels, rows_step, panels_step: panels.div_ceil(columns) }
    }

    fn pieces(&self) -> usize {
        self.m.div_ceil(self.rows_step) * self.panels.div_ceil(self.panels_step)
    }

    fn piece(&self, piece: usize) -> (Range<usize>, Range<usize>) {
        let across = self.panels.div_ceil(self.panels_step);
        let (row, column) = (piece / across * self.rows_step, piece % across * self.panels_step);
        (
            row..(row + self.rows_step).min(self.m),
            column..(column + self.panels_step).min(self.panels),
        )
    }
}

/// Some columns of a product over a part of k.
struct Part<'a> {
    a: Strided<'a>,
    ks: Range<usize>,
    packed: &'a [f32],
    panel_step: usize,
    out: Shared<'a, f32>,
    columns: Range<usize>,
    step: usize,
    write: Write,
}

impl Part<'_> {
    /// Computes the output at `rows` and `panels`.
    fn run(&self, level: Level, rows: Range<usize>, panels: Range<usize>) {
        let length = rows.len().next_multiple_of(level.rows()) * K_BLOCK.min(self.ks.len());
        with_thread_scratch(length, |packed_a| match level {
            // SAFETY: the level vouches for the instruction set.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => level.run(
                #[inline(always)]
                || unsafe { self.blocks::<Avx512>(rows, panels, packed_a) },
            ),
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => level.run(
                #[inline(always)]
                || unsafe { self.blocks::<Avx2>(rows, panels, packed_a) },
            ),
            // SAFETY: plain vectors need no instruction set.
            Level::Plain => unsafe { self.blocks::<Plain>(rows, panels, packed_a) },
        });
    }

    /// # Safety
    /// The processor must have `S`.
    #[inline(always)]
    unsafe fn blocks<S: Simd>(
        &self,
        rows: Range<usize>,
        panels: Range<usize>,
        packed_a: &mut [f32],
    ) {
        for k0 in self.ks.clone().step_by(K_BLOCK) {
            let ks = k0..(k0 + K_BLOCK).min(self.ks.end);
            // SAFETY: the caller vouches for `S`.
            unsafe { self.tiles::<S>(rows.clone(), panels.clone(), ks, packed_a) };
        }
    }

    /// One block of k.
    ///
    /// # Safety
    /// The processor must have `S`.
    #[inline(always)]
    unsafe fn tiles<S: Simd>(
        &self,
        rows: Range<usize>,
        panels: Range<usize>,
        ks: Range<usize>,
        packed_a: &mut [f32],
    ) {
        let (k, before) = (ks.len(), (ks.start - self.ks.start) * S::COLUMNS);
        let write = if before == 0 { self.write } else { Write::Accumulate };
        for row in rows.clone().step_by(S::ROWS) {
            let height = S::ROWS.min(rows.end - row);
            let strip = &mut packed_a[(row - rows.start) * k..];
            // SAFETY: the caller vouches for `S`.
            unsafe { pack_rows::<S>(self.a, row, height, ks.clone(), height, strip) };
        }
        for panel in panels {
            let b = &self.packed[panel * self.panel_step + before..][..k * S::COLUMNS];
            let first = self.columns.start + panel * S::COLUMNS;
            let columns = S::COLUMNS.min(self.columns.end - first);
            for row in rows.clone().step_by(S::ROWS) {
                let height = S::ROWS.min(rows.end - row);
                let a = &packed_a[(row - rows.start) * k..][..k * height];
                // SAFETY: the tile's first element is inside `out`.
                let to = unsafe { self.out.start().add(row * self.step + first) };
                let tile = Tile {
                    k,
                    a: a.as_ptr(),
                    a_row: 1,
                    a_k: height,
                    b: b.as_ptr(),
                    b_k: S::COLUMNS,
                    to,
                    to_row: self.step,
                    columns,
                    write,
                };
                // SAFETY: the caller vouches for `S`; `a` and `b` are packed over k; `height` rows
                // and `columns` columns from `to` are inside `out` and belong to this piece alone.
                unsafe { tile.run::<S, PACKED>(height) };
            }
        }
    }
}
