//! Vectors of one instruction set, as the matrix kernels use them.

/// A vector type of some instruction set.
pub(crate) trait Simd: Copy + 'static {
    /// The vector.
    type V: Copy;
    /// Its number of lanes.
    const LANES: usize;
    /// Rows of the matrix kernel's tile: as many as registers allow beside two vectors of columns.
    const ROWS: usize;
    /// Columns of the matrix kernel's tile.
    const COLUMNS: usize = 2 * Self::LANES;

    /// All lanes `x`.
    ///
    /// # Safety
    /// The processor must have this instruction set; so for all functions here.
    unsafe fn splat(x: f32) -> Self::V;
    /// The lanes at `from`.
    ///
    /// # Safety
    /// `LANES` floats must be readable at `from`.
    unsafe fn load(from: *const f32) -> Self::V;
    /// Writes the lanes to `to`.
    ///
    /// # Safety
    /// `LANES` floats must be writable at `to`.
    unsafe fn store(to: *mut f32, v: Self::V);
    /// `a * b`.
    ///
    /// # Safety
    /// As of the instruction set.
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once.
    ///
    /// # Safety
    /// As of the instruction set.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a * b + c` in the lanes from `first` on, `c` in those before.
    ///
    /// # Safety
    /// As of the instruction set.
    unsafe fn fma_from(a: Self::V, b: Self::V, c: Self::V, first: usize) -> Self::V;
    /// Writes a block of eight by eight with rows and columns exchanged.
    ///
    /// # Safety
    /// Eight rows of eight floats must be readable at `from` and writable at `to`, `from_row` and
    /// `to_row` apart.
    unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize);
}

/// AVX-512: 8x32 tiles in 16 of the 32 registers, which hides the latency of four cycles.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// AVX2 with FMA: 6x16 tiles in 12 of the 16 registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Arrays that the compiler turns into whatever vectors it may use.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Avx2, Avx512, Simd};
    use std::arch::x86_64::*;

    impl Simd for Avx512 {
        type V = __m512;
        const LANES: usize = 16;
        const ROWS: usize = 8;

        #[inline(always)]
        unsafe fn splat(x: f32) -> __m512 {
            // SAFETY: the caller vouches for AVX-512.
            unsafe { _mm512_set1_ps(x) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m512 {
            // SAFETY: the caller vouches for AVX-512 and the memory.
            unsafe { _mm512_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(to: *mut f32, v: __m512) {
            // SAFETY: the caller vouches for AVX-512 and the memory.
            unsafe { _mm512_storeu_ps(to, v) }
        }

        #[inline(always)]
        unsafe fn mul(a: __m512, b: __m512) -> __m512 {
            // SAFETY: the caller vouches for AVX-512.
            unsafe { _mm512_mul_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
            // SAFETY: the caller vouches for AVX-512.
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }

        #[inline(always)]
        unsafe fn fma_from(a: __m512, b: __m512, c: __m512, first: usize) -> __m512 {
            let mask = (0xffff_u32 << first.min(16)) as u16;
            // SAFETY: the caller vouches for AVX-512.
            unsafe { _mm512_mask3_fmadd_ps(a, b, c, mask) }
        }

        #[inline(always)]
        unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
            // SAFETY: the caller vouches for the memory; AVX-512 includes AVX2.
            unsafe { Avx2::transpose(from, from_row, to, to_row) }
        }
    }

    impl Simd for Avx2 {
        type V = __m256;
        const LANES: usize = 8;
        const ROWS: usize = 6;

        #[inline(always)]
        unsafe fn splat(x: f32) -> __m256 {
            // SAFETY: the caller vouches for AVX2.
            unsafe { _mm256_set1_ps(x) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m256 {
            // SAFETY: the caller vouches for AVX2 and the memory.
            unsafe { _mm256_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(to: *mut f32, v: __m256) {
            // SAFETY: the caller vouches for AVX2 and the memory.
            unsafe { _mm256_storeu_ps(to, v) }
        }

        #[inline(always)]
        unsafe fn mul(a: __m256, b: __m256) -> __m256 {
            // SAFETY: the caller vouches for AVX2.
            unsafe { _mm256_mul_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: the caller vouches for FMA.
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }

        #[inline(always)]
        unsafe fn fma_from(a: __m256, b: __m256, c: __m256, first: usize) -> __m256 {
            // Eight lanes from here on have `first` zeros before their ones.
            static MASKS: [i32; 16] = [0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1];
            // SAFETY: the caller vouches for AVX2 and FMA; 8 lanes from at most 8 on are in the table.
            unsafe {
                let mask = _mm256_loadu_ps(MASKS.as_ptr().add(8 - first.min(8)).cast());
                _mm256_blendv_ps(c, _mm256_fmadd_ps(a, b, c), mask)
            }
        }

        #[inline(always)]
        unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
            // SAFETY: the caller vouches for AVX2 and the memory.
            unsafe {
                let row = |r: usize| _mm256_loadu_ps(from.add(r * from_row));
                // Pairs of rows, then fours of them, then halves of vectors.
                let pair = |r| {
                    let (a, b) = (row(r), row(r + 1));
                    (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b))
                };
                let four = |r| {
                    let ((a, b), (c, d)) = (pair(r), pair(r + 2));
                    [
                        _mm256_shuffle_ps::<0x44>(a, c),
                        _mm256_shuffle_ps::<0xee>(a, c),
                        _mm256_shuffle_ps::<0x44>(b, d),
                        _mm256_shuffle_ps::<0xee>(b, d),
                    ]
                };
                let (upper, lower) = (four(0), four(4));
                for c in 0..4 {
                    let left = _mm256_permute2f128_ps::<0x20>(upper[c], lower[c]);
                    let right = _mm256_permute2f128_ps::<0x31>(upper[c], lower[c]);
                    _mm256_storeu_ps(to.add(c * to_row), left);
                    _mm256_storeu_ps(to.add((c + 4) * to_row), right);
                }
            }
        }
    }
}

impl Simd for Plain {
    type V = [f32; 8];
    const LANES: usize = 8;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; 8] {
        [x; 8]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 8] {
        // SAFETY: the caller vouches for the memory.
        unsafe { from.cast::<[f32; 8]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: [f32; 8]) {
        // SAFETY: the caller vouches for the memory.
        unsafe { to.cast::<[f32; 8]>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn mul(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    unsafe fn fma(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    unsafe fn fma_from(a: [f32; 8], b: [f32; 8], c: [f32; 8], first: usize) -> [f32; 8] {
        std::array::from_fn(|i| if i < first { c[i] } else { a[i].mul_add(b[i], c[i]) })
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
        for r in 0..8 {
            for c in 0..8 {
                // SAFETY: the caller vouches for the memory.
                unsafe { *to.add(c * to_row + r) = *from.add(r * from_row + c) };
            }
        }
    }
}
