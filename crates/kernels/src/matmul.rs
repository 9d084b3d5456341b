//! Matrix products in the three layouts that a linear layer needs.

use crate::check::length;
use crate::pool::Pool;
use crate::reference::{self, Layout};

/// Extents of a product: `out` is `[m, n]`, sums run over `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    /// Rows of the output.
    pub m: usize,
    /// Columns of the output.
    pub n: usize,
    /// Length of each sum.
    pub k: usize,
}

/// What becomes of the output's old values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// They are replaced.
    Overwrite,
    /// The result is added to them: sums start from the old value.
    Accumulate,
}

/// `out[m, n] (+)= a[m, k] · b[n, k]ᵀ`: a linear layer's forward, y = x Wᵀ.
///
/// # Panics
/// If a slice's length does not fit `dims`.
pub fn matmul_nt(pool: &Pool, dims: Dims, a: &[f32], b: &[f32], write: Write, out: &mut [f32]) {
    matmul(pool, Layout::Nt, dims, a, b, write, out);
}

/// `out[m, n] (+)= a[m, k] · b[k, n]`: a linear layer's gradient by its input, dx = dy W.
///
/// # Panics
/// If a slice's length does not fit `dims`.
pub fn matmul_nn(pool: &Pool, dims: Dims, a: &[f32], b: &[f32], write: Write, out: &mut [f32]) {
    matmul(pool, Layout::Nn, dims, a, b, write, out);
}

/// `out[m, n] (+)= a[k, m]ᵀ · b[k, n]`: a linear layer's gradient by its weight, dW = dyᵀ x.
///
/// # Panics
/// If a slice's length does not fit `dims`.
pub fn matmul_tn(pool: &Pool, dims: Dims, a: &[f32], b: &[f32], write: Write, out: &mut [f32]) {
    matmul(pool, Layout::Tn, dims, a, b, write, out);
}

fn matmul(
    _pool: &Pool,
    layout: Layout,
    dims: Dims,
    a: &[f32],
    b: &[f32],
    write: Write,
    out: &mut [f32],
) {
    length("matmul", "a", a, dims.m * dims.k);
    length("matmul", "b", b, dims.n * dims.k);
    length("matmul", "out", out, dims.m * dims.n);
    reference::matmul(layout, dims, a, b, write, out);
}

/// A weight `[n, k]` packed once for many products, as generation needs it.
pub struct PackedMatrix {
    n: usize,
    k: usize,
    data: Vec<f32>,
}

impl PackedMatrix {
    /// Packs `weight[n, k]`.
    ///
    /// # Panics
    /// If `weight` does not have `n * k` elements.
    pub fn new(_pool: &Pool, n: usize, k: usize, weight: &[f32]) -> PackedMatrix {
        length("PackedMatrix::new", "weight", weight, n * k);
        PackedMatrix { n, k, data: weight.to_vec() }
    }

    /// Columns of the output: rows of the weight.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Length of the input's rows.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Memory that the packed weight takes.
    pub fn bytes(&self) -> usize {
        self.data.len() * size_of::<f32>()
    }

    /// `out[m, n] (+)= a[m, k] · weightᵀ`, with the same bits as [`matmul_nt`].
    ///
    /// # Panics
    /// If a slice's length does not fit.
    pub fn matmul(&self, pool: &Pool, m: usize, a: &[f32], write: Write, out: &mut [f32]) {
        let dims = Dims { m, n: self.n, k: self.k };
        matmul(pool, Layout::Nt, dims, a, &self.data, write, out);
    }
}
