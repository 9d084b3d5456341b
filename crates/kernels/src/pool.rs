//! The threads that operations run on.

use crate::cpu::level::Level;
use crate::cpu::scratch::Buffers;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fixed number of threads, of which the calling one is the first.
pub struct Pool {
    threads: usize,
    workers: Option<rayon::ThreadPool>,
    level: Level,
    buffers: Buffers,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).field("level", &self.level).finish()
    }
}

impl Pool {
    /// A pool that computes with `threads` threads (at least one).
    ///
    /// # Panics
    /// If the system refuses to start a thread.
    pub fn new(threads: usize) -> Pool {
        let threads = threads.max(1);
        let workers = (threads > 1).then(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads - 1)
                .thread_name(|i| format!("kernels-{i}"))
                .build()
                .unwrap_or_else(|error| panic!("cannot start {threads} threads: {error}"))
        });
        Pool { threads, workers, level: Level::best(), buffers: Buffers::default() }
    }

    /// The same with an instruction set that is not the best.
    #[cfg(test)]
    pub(crate) fn with_level(threads: usize, level: Level) -> Pool {
        Pool { level, ..Pool::new(threads) }
    }

    /// The instruction set that operations use.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Scratch memory that outlives a call.
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// How many threads compute, the calling one included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Cuts `0..length` into ranges of `step` (at least one) and runs them as pieces.
    pub(crate) fn run_ranges(
        &self,
        length: usize,
        step: usize,
        piece: impl Fn(Range<usize>) + Sync,
    ) {
        let step = step.max(1);
        self.run(length.div_ceil(step), |i| piece(i * step..((i + 1) * step).min(length)));
    }

    /// Calls `piece(i)` once for every `i` below `pieces`, on all threads, and returns when all are
    /// done. Which thread takes which piece is not fixed; results must not depend on it.
    ///
    /// # Panics
    /// If a piece panics.
    pub fn run(&self, pieces: usize, piece: impl Fn(usize) + Sync) {
        let Some(workers) = self.workers.as_ref().filter(|_| pieces > 1) else {
            (0..pieces).for_each(piece);
            return;
        };
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= pieces {
                    break;
                }
                piece(i);
            }
        };
        workers.in_place_scope(|scope| {
            for _ in 1..self.threads.min(pieces) {
                scope.spawn(|_| work());
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_piece_runs_once() {
        for threads in [0, 1, 2, 5] {
            let pool = Pool::new(threads);
            assert_eq!(pool.threads(), threads.max(1));
            for pieces in [0, 1, 2, 64] {
                let seen = AtomicU64::new(0);
                pool.run(pieces, |i| {
                    assert_eq!(0, seen.fetch_xor(1 << i, Ordering::Relaxed) >> i & 1)
                });
                let all = u64::MAX.checked_shr(64 - pieces as u32).unwrap_or(0);
                assert_eq!(seen.into_inner(), all, "{threads} threads, {pieces} pieces");
            }
        }
    }

    #[test]
    fn pieces_may_run_pieces() {
        let pool = Pool::new(3);
        let count = AtomicUsize::new(0);
        pool.run(4, |_| pool.run(5, |_| _ = count.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(count.into_inner(), 20);
    }

    #[test]
    fn a_panic_in_a_piece_comes_back() {
        let pool = Pool::new(2);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(8, |i| assert!(i != 5, "piece five"));
        }));
        assert!(result.is_err());
        pool.run(8, |_| ());
    }
}
