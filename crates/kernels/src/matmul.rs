//! Matrix products in the three layouts that a linear layer needs.

use crate::check::length;
use crate::cpu::gemm::{Right, gemm, pack_panels};
use crate::cpu::level::Level;
use crate::cpu::pack::Strided;
use crate::pool::Pool;
use crate::reference::Layout;

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
    pool: &Pool,
    layout: Layout,
    dims: Dims,
    a: &[f32],
    b: &[f32],
    write: Write,
    out: &mut [f32],
) {
    let Dims { m, n, k } = dims;
    length("matmul", "a", a, m * k);
    length("matmul", "b", b, n * k);
    length("matmul", "out", out, m * n);
    let a = match layout {
        Layout::Nt | Layout::Nn => Strided::rows(a, k),
        Layout::Tn => Strided::transposed(a, m),
    };
    let b = match layout {
        Layout::Nt => Strided::rows(b, k),
        Layout::Nn | Layout::Tn => Strided::transposed(b, n),
    };
    gemm(pool, pool.level(), dims, a, Right::Strided(b), write, out);
}

/// A weight `[n, k]` packed once for many products, as generation needs it.
pub struct PackedMatrix {
    n: usize,
    k: usize,
    level: Level,
    data: Vec<f32>,
}

impl PackedMatrix {
    /// Packs `weight[n, k]`.
    ///
    /// # Panics
    /// If `weight` does not have `n * k` elements.
    pub fn new(pool: &Pool, n: usize, k: usize, weight: &[f32]) -> PackedMatrix {
        length("PackedMatrix::new", "weight", weight, n * k);
        let level = pool.level();
        let mut data = vec![0.0; n.next_multiple_of(level.columns()) * k];
        pack_panels(pool, level, Strided::rows(weight, k), 0..n, 0..k, &mut data);
        PackedMatrix { n, k, level, data }
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
        length("PackedMatrix::matmul", "a", a, m * self.k);
        length("PackedMatrix::matmul", "out", out, m * self.n);
        gemm(
            pool,
            self.level,
            dims,
            Strided::rows(a, self.k),
            Right::Packed(&self.data),
            write,
            out,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::level::Level;
    use crate::reference;
    use crate::testing::{bits, values};
    use proptest::prelude::*;

    fn check(pool: &Pool, layout: Layout, dims: Dims, write: Write) {
        let Dims { m, n, k } = dims;
        let (a, b) = (values(1, m * k), values(2, n * k));
        let mut expected = values(3, m * n);
        let mut found = expected.clone();
        reference::matmul(layout, dims, &a, &b, write, &mut expected);
        matmul(pool, layout, dims, &a, &b, write, &mut found);
        assert_eq!(bits(&found), bits(&expected), "{layout:?} {dims:?} {write:?} {pool:?}");
        if layout == Layout::Nt {
            let packed = PackedMatrix::new(pool, n, k, &b);
            let mut found = values(3, m * n);
            packed.matmul(pool, m, &a, write, &mut found);
            assert_eq!(bits(&found), bits(&expected), "packed {dims:?} {write:?} {pool:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn every_level_gives_the_bits_of_the_naive_chain(
            m in 0usize..80,
            n in 0usize..80,
            k in 0usize..40,
            threads in 1usize..4,
        ) {
            for level in Level::available() {
                let pool = Pool::with_level(threads, level);
                for layout in [Layout::Nt, Layout::Nn, Layout::Tn] {
                    check(&pool, layout, Dims { m, n, k }, Write::Overwrite);
                    check(&pool, layout, Dims { m, n, k }, Write::Accumulate);
                }
            }
        }
    }

    #[test]
    fn blocks_of_k_and_of_rows_do_not_break_the_chain() {
        for threads in [1, 3] {
            let pool = Pool::new(threads);
            for layout in [Layout::Nt, Layout::Nn, Layout::Tn] {
                check(&pool, layout, Dims { m: 301, n: 67, k: 777 }, Write::Overwrite);
                check(&pool, layout, Dims { m: 65, n: 200, k: 513 }, Write::Accumulate);
                check(&pool, layout, Dims { m: 3, n: 4100, k: 1100 }, Write::Overwrite);
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_in_a_batch() {
        let pool = Pool::new(2);
        let (n, k) = (300, 520);
        let weight = values(1, n * k);
        let packed = PackedMatrix::new(&pool, n, k, &weight);
        let x = values(2, 70 * k);
        let mut whole = vec![0.0; 70 * n];
        matmul_nt(&pool, Dims { m: 70, n, k }, &x, &weight, Write::Overwrite, &mut whole);
        for (row, expected) in whole.chunks_exact(n).enumerate() {
            let mut found = vec![0.0; n];
            packed.matmul(&pool, 1, &x[row * k..][..k], Write::Overwrite, &mut found);
            assert_eq!(bits(&found), bits(expected), "row {row}");
        }
    }

    #[test]
    fn a_not_a_number_reaches_its_row_and_no_other() {
        let pool = Pool::new(1);
        let mut a = values(1, 9 * 5);
        a[2 * 5 + 3] = f32::NAN;
        let b = values(2, 7 * 5);
        let mut out = vec![0.0; 9 * 7];
        matmul_nt(&pool, Dims { m: 9, n: 7, k: 5 }, &a, &b, Write::Overwrite, &mut out);
        for (i, x) in out.iter().enumerate() {
            assert_eq!(x.is_nan(), i / 7 == 2, "element {i}");
        }
    }

    #[test]
    #[should_panic(expected = "matmul: b has 5 elements, expected 6")]
    fn a_wrong_length_is_named() {
        let pool = Pool::new(1);
        let dims = Dims { m: 1, n: 2, k: 3 };
        matmul_nt(&pool, dims, &[0.0; 3], &[0.0; 5], Write::Overwrite, &mut [0.0; 2]);
    }
}
