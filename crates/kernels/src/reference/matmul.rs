//! Matrix product, one element at a time.

use crate::{Dims, Write};

/// How the operands of a product lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A is `[m, k]`, B is `[n, k]`.
    Nt,
    /// A is `[m, k]`, B is `[k, n]`.
    Nn,
    /// A is `[k, m]`, B is `[k, n]`.
    Tn,
}

/// `out[m, n] (+)= A · B`: for each element one chain of fused multiply-adds over ascending `k`, from
/// zero or from the old value. The fast kernels give the same bits.
pub fn matmul(layout: Layout, dims: Dims, a: &[f32], b: &[f32], write: Write, out: &mut [f32]) {
    let Dims { m, n, k } = dims;
    for i in 0..m {
        for j in 0..n {
            let mut sum = match write {
                Write::Overwrite => 0.0,
                Write::Accumulate => out[i * n + j],
            };
            for p in 0..k {
                let (x, y) = match layout {
                    Layout::Nt => (a[i * k + p], b[j * k + p]),
                    Layout::Nn => (a[i * k + p], b[p * n + j]),
                    Layout::Tn => (a[p * m + i], b[p * n + j]),
                };
                sum = x.mul_add(y, sum);
            }
            out[i * n + j] = sum;
        }
    }
}
