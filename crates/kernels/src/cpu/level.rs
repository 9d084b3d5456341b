//! Which instruction set to run a loop with.

use std::sync::OnceLock;

/// An instruction set that kernels are compiled for. All give the same bits: every kernel states each
/// rounding (fused or not) itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// AVX-512 on x86-64.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 and FMA on x86-64.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What the compiler was told to assume.
    Plain,
}

impl Level {
    /// All levels that this processor runs, the best first.
    pub(crate) fn available() -> Vec<Level> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if avx512 {
                levels.push(Level::Avx512);
            }
            if avx2 {
                levels.push(Level::Avx2);
            }
        }
        levels.push(Level::Plain);
        levels
    }

    /// The best level of this processor.
    pub(crate) fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Level::available()[0])
    }

    /// Runs `body` compiled for this level. What `body` calls must be inlined into it to gain.
    #[inline(always)]
    pub(crate) fn run<R>(self, body: impl FnOnce() -> R) -> R {
        match self {
            // SAFETY: a level other than Plain is only made by `available`, which has asked the
            // processor for exactly these features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { with_avx512(body) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { with_avx2(body) },
            Level::Plain => body(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn with_avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}
