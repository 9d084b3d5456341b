//! Rearranging parts of matrices so that the matrix kernel reads them in order.

use crate::cpu::simd::Simd;
use std::ops::Range;

/// A matrix that is read at `row * row_step + column * column_step`.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) row_step: usize,
    pub(crate) column_step: usize,
}

impl<'a> Strided<'a> {
    /// Row-major with rows of `width`.
    pub(crate) fn rows(data: &'a [f32], width: usize) -> Strided<'a> {
        Strided { data, row_step: width, column_step: 1 }
    }

    /// The transpose of a row-major matrix with rows of `width`.
    pub(crate) fn transposed(data: &'a [f32], width: usize) -> Strided<'a> {
        Strided { data, row_step: 1, column_step: width }
    }
}

/// Packs `rows` rows from `row0` of `source` over `ks` as `[k][stride]`; columns `rows..stride` of the
/// result become zero.
///
/// # Safety
/// The processor must have `S`.
#[inline(always)]
pub(crate) unsafe fn pack_rows<S: Simd>(
    source: Strided<'_>,
    row0: usize,
    rows: usize,
    ks: Range<usize>,
    stride: usize,
    out: &mut [f32],
) {
    let k = ks.len();
    if rows == 0 || k == 0 {
        return;
    }
    let out = &mut out[..k * stride];
    let Strided { data, row_step, column_step } = source;
    let last = (row0 + rows - 1) * row_step + (ks.end - 1) * column_step;
    assert!(rows <= stride && last < data.len(), "a strip is outside of its matrix");
    let from = &data[row0 * row_step + ks.start * column_step..];
    if row_step == 1 {
        match rows {
            8 if stride == 8 => copy_rows::<8>(from, column_step, out),
            16 if stride == 16 => copy_rows::<16>(from, column_step, out),
            32 if stride == 32 => copy_rows::<32>(from, column_step, out),
            _ => {
                for (p, out) in out.chunks_exact_mut(stride).enumerate() {
                    out[..rows].copy_from_slice(&from[p * column_step..][..rows]);
                    out[rows..].fill(0.0);
                }
            }
        }
        return;
    }
    if rows < stride {
        out.fill(0.0);
    }
    // SAFETY: the last element of each was checked above; `rows` does not exceed `stride`.
    unsafe { transpose::<S>(from.as_ptr(), row_step, [rows, k], out.as_mut_ptr(), stride) };
}

/// Copies the first `N` elements of rows `step` apart. A known length saves the call that copies.
#[inline(always)]
fn copy_rows<const N: usize>(from: &[f32], step: usize, out: &mut [f32]) {
    for (p, out) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        if let Some(from) = from[p * step..].first_chunk() {
            *out = *from;
        }
    }
}

/// Writes a matrix of `rows` and `columns` with both exchanged.
///
/// # Safety
/// The processor must have `S`. `rows` rows of `columns` floats must be readable at `from`, `columns`
/// rows of `rows` floats writable at `to`, `from_row` and `to_row` apart.
#[inline(always)]
pub(crate) unsafe fn transpose<S: Simd>(
    from: *const f32,
    from_row: usize,
    [rows, columns]: [usize; 2],
    to: *mut f32,
    to_row: usize,
) {
    let (whole_rows, whole_columns) = (rows / 8 * 8, columns / 8 * 8);
    // SAFETY: all indices are below `rows` and `columns`.
    unsafe {
        for column in (0..whole_columns).step_by(8) {
            for row in (0..whole_rows).step_by(8) {
                let from = from.add(row * from_row + column);
                S::transpose(from, from_row, to.add(column * to_row + row), to_row);
            }
        }
        for column in 0..columns {
            let first = if column < whole_columns { whole_rows } else { 0 };
            for row in first..rows {
                *to.add(column * to_row + row) = *from.add(row * from_row + column);
            }
        }
    }
}
