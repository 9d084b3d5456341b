//! Measures the operations on shapes of small models: `cargo run --release -p kernels --example
//! throughput -- [THREADS]`.
#![allow(clippy::print_stdout)]

use kernels::{Dims, PackedMatrix, Pool, Write, matmul_nn, matmul_nt, matmul_tn};
use std::time::Instant;

/// Median seconds of a call, over at least a few tenths of a second.
fn seconds(mut call: impl FnMut()) -> f64 {
    call();
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 5 || start.elapsed().as_secs_f64() < 0.4 {
        let start = Instant::now();
        call();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1009) as f32 / 1009.0 - 0.5).collect()
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let pool = Pool::new(threads);
    println!("run of no pieces' work: {:.2} us", 1e6 * seconds(|| pool.run(threads, |_| ())));
    for (m, n, k) in [
        (2048, 256, 256),
        (2048, 768, 256),
        (2048, 256, 768),
        (4096, 1024, 384),
        (2048, 4096, 256),
        (1024, 128, 128),
        (4096, 1024, 1024),
        (2000, 344, 200),
    ] {
        let (a, b) = (values(m * k), values(n * k));
        let mut out = vec![0.0; m * n];
        let dims = Dims { m, n, k };
        let rate = |s: f64| 2e-9 * (m * n * k) as f64 / s;
        let nt = rate(seconds(|| matmul_nt(&pool, dims, &a, &b, Write::Overwrite, &mut out)));
        let nn = rate(seconds(|| matmul_nn(&pool, dims, &a, &b, Write::Overwrite, &mut out)));
        // The weight's gradient: k is the number of tokens.
        let dims = Dims { m: n, n: k, k: m };
        let (a, b) = (values(m * n), values(m * k));
        let mut out = vec![0.0; n * k];
        let tn = rate(seconds(|| matmul_tn(&pool, dims, &a, &b, Write::Accumulate, &mut out)));
        println!("m {m:5} n {n:5} k {k:5}: NT {nt:6.1}  NN {nn:6.1}  TN {tn:6.1} GFLOP/s");
    }
    for m in [1, 4, 16, 64] {
        let (n, k) = (1024, 256);
        let packed = PackedMatrix::new(&pool, n, k, &values(n * k));
        let a = values(m * k);
        let mut out = vec![0.0; m * n];
        let s = seconds(|| packed.matmul(&pool, m, &a, Write::Overwrite, &mut out));
        println!(
            "packed m {m:3} n {n} k {k}: {:6.2} us {:6.1} GFLOP/s",
            s * 1e6,
            2e-9 * (m * n * k) as f64 / s
        );
    }
}
