//! The innermost loop of every matrix product: a tile of the output in registers while k runs.

use crate::cpu::simd::Simd;
use crate::matmul::Write;

/// The elements of A's rows lie side by side (`a_row` is 1).
pub(crate) const PACKED: u8 = 0;
/// They lie `a_row` apart.
pub(crate) const STRIDED: u8 = 1;
/// As `PACKED`, and step `p` of k only changes the columns from `p` on: the triangle that a causal
/// mask leaves.
pub(crate) const TRIANGLE: u8 = 2;

/// `to[r, c] (+)= sum over k of a[r, k] * b[k, c]` for up to `S::ROWS` rows and `S::COLUMNS` columns.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    pub(crate) k: usize,
    pub(crate) a: *const f32,
    /// From one row of A to the next.
    pub(crate) a_row: usize,
    /// From one k to the next.
    pub(crate) a_k: usize,
    pub(crate) b: *const f32,
    pub(crate) b_k: usize,
    pub(crate) to: *mut f32,
    pub(crate) to_row: usize,
    pub(crate) columns: usize,
    pub(crate) write: Write,
}

impl Tile {
    /// # Safety
    /// The processor must have `S`. `a` must be readable for `rows` rows and `k` steps, `b` for `k`
    /// steps of `S::COLUMNS` floats (whatever `columns` is), `to` writable for `rows` rows of
    /// `columns` floats.
    #[inline(always)]
    pub(crate) unsafe fn run<S: Simd, const KIND: u8>(&self, rows: usize) {
        // SAFETY: as the caller vouches.
        unsafe {
            match rows {
                8 => self.rows::<S, KIND, 8>(),
                7 => self.rows::<S, KIND, 7>(),
                6 => self.rows::<S, KIND, 6>(),
                5 => self.rows::<S, KIND, 5>(),
                4 => self.rows::<S, KIND, 4>(),
                3 => self.rows::<S, KIND, 3>(),
                2 => self.rows::<S, KIND, 2>(),
                _ => self.rows::<S, KIND, 1>(),
            }
        }
    }

    /// # Safety
    /// As of `run`.
    #[inline(always)]
    unsafe fn rows<S: Simd, const KIND: u8, const R: usize>(&self) {
        // A tile at the right edge is computed in a whole one of its own.
        let mut edge = [[0.0f32; 32]; R];
        let whole = self.columns == S::COLUMNS;
        // SAFETY: the caller vouches for these elements of `to`; `edge` has R rows of 32 floats, no
        // less than COLUMNS.
        unsafe {
            let (to, step) =
                if whole { (self.to, self.to_row) } else { (edge.as_mut_ptr().cast(), 32) };
            if !whole && self.write == Write::Accumulate {
                for r in 0..R {
                    let from = self.to.add(r * self.to_row);
                    from.copy_to_nonoverlapping(to.add(r * step), self.columns);
                }
            }
            self.whole::<S, KIND, R>(to, step);
            if !whole {
                for r in 0..R {
                    let from = to.add(r * step);
                    from.copy_to_nonoverlapping(self.to.add(r * self.to_row), self.columns);
                }
            }
        }
    }

    /// # Safety
    /// As of `run`, with R rows of `COLUMNS` floats writable at `to`.
    #[inline(always)]
    unsafe fn whole<S: Simd, const KIND: u8, const R: usize>(&self, to: *mut f32, step: usize) {
        let a_row = if KIND == STRIDED { self.a_row } else { 1 };
        // SAFETY: as the caller vouches.
        unsafe {
            let mut sums = [[S::splat(0.0); 2]; R];
            if self.write == Write::Accumulate {
                for (r, sums) in sums.iter_mut().enumerate() {
                    let from = to.add(r * step);
                    *sums = [S::load(from), S::load(from.add(S::LANES))];
                }
            }
            for p in 0..self.k {
                let (a, b) = (self.a.add(p * self.a_k), self.b.add(p * self.b_k));
                let (b0, b1) = (S::load(b), S::load(b.add(S::LANES)));
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = S::splat(*a.add(r * a_row));
                    *sums = if KIND == TRIANGLE {
                        let second = p.saturating_sub(S::LANES);
                        [S::fma_from(x, b0, sums[0], p), S::fma_from(x, b1, sums[1], second)]
                    } else {
                        [S::fma(x, b0, sums[0]), S::fma(x, b1, sums[1])]
                    };
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                let to = to.add(r * step);
                S::store(to, sums[0]);
                S::store(to.add(S::LANES), sums[1]);
            }
        }
    }
}
