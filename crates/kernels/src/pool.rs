//! The threads that operations run on.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A fixed number of threads, of which the calling one is the first.
pub struct Pool {
    threads: usize,
    workers: Option<rayon::ThreadPool>,
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
        Pool { threads, workers }
    }

    /// How many threads compute, the calling one included.
    pub fn threads(&self) -> usize {
        self.threads
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
