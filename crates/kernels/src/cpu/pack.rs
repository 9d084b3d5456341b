//! Rearranging parts of matrices so that the matrix kernel reads them in order.

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

/// Packs `rows` rows from `row0` of `source` over columns `k0..k0 + k` as `[k][stride]`; columns
/// `rows..stride` of the result become zero.
#[inline(always)]
pub(crate) fn pack_rows(
    source: Strided<'_>,
    row0: usize,
    rows: usize,
    k0: usize,
    k: usize,
    stride: usize,
    out: &mut [f32],
) {
    if k == 0 {
        return;
    }
    let out = &mut out[..k * stride];
    if source.row_step == 1 {
        for (p, out) in out.chunks_exact_mut(stride).enumerate() {
            let from = (k0 + p) * source.column_step + row0;
            out[..rows].copy_from_slice(&source.data[from..from + rows]);
            out[rows..].fill(0.0);
        }
        return;
    }
    if rows < stride {
        out.fill(0.0);
    }
    let mut r = 0;
    while r + 8 <= rows {
        transpose_into::<8>(source, row0 + r, k0, k, stride, &mut out[r..]);
        r += 8;
    }
    while r < rows {
        transpose_into::<1>(source, row0 + r, k0, k, stride, &mut out[r..]);
        r += 1;
    }
}

/// `R` rows of a row-major source become `R` neighbouring columns, eight at a time.
#[inline(always)]
fn transpose_into<const R: usize>(
    source: Strided<'_>,
    row0: usize,
    k0: usize,
    k: usize,
    stride: usize,
    out: &mut [f32],
) {
    let row = |r: usize| &source.data[(row0 + r) * source.row_step + k0..][..k];
    let rows: [&[f32]; R] = std::array::from_fn(row);
    let whole = k / 8 * 8;
    for p in (0..whole).step_by(8) {
        let block: [[f32; 8]; R] = std::array::from_fn(|r| std::array::from_fn(|q| rows[r][p + q]));
        for q in 0..8 {
            for (r, row) in block.iter().enumerate() {
                out[(p + q) * stride + r] = row[q];
            }
        }
    }
    for p in whole..k {
        for (r, row) in rows.iter().enumerate() {
            out[p * stride + r] = row[p];
        }
    }
}
