//! Measures the operations on shapes of small models:
//! `cargo run --release -p kernels --example throughput -- [THREADS]`.
//!
//! Each number is the best of many calls, so that other programs on the machine disturb it least.
#![allow(clippy::print_stdout)]

use kernels::*;
use std::time::Instant;

/// Seconds of the fastest call.
fn seconds(mut call: impl FnMut()) -> f64 {
    let (mut best, start) = (f64::INFINITY, Instant::now());
    let mut calls = 0;
    while calls < 5 || start.elapsed().as_secs_f64() < 0.5 {
        let start = Instant::now();
        call();
        best = best.min(start.elapsed().as_secs_f64());
        calls += 1;
    }
    best
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1009) as f32 / 1009.0 - 0.5).collect()
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let pool = Pool::new(threads);
    println!("{threads} threads");
    println!("a run of empty pieces: {:.2} us", 1e6 * seconds(|| pool.run(threads, |_| ())));
    matrices(&pool);
    packed(&pool);
    attention(&pool);
    cross_entropy(&pool);
    rows(&pool);
}

fn matrices(pool: &Pool) {
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
        let nt = rate(seconds(|| matmul_nt(pool, dims, &a, &b, Write::Overwrite, &mut out)));
        let nn = rate(seconds(|| matmul_nn(pool, dims, &a, &b, Write::Overwrite, &mut out)));
        // The weight's gradient: k is the number of tokens.
        let dims = Dims { m: n, n: k, k: m };
        let (a, b) = (values(m * n), values(m * k));
        let mut out = vec![0.0; n * k];
        let tn = rate(seconds(|| matmul_tn(pool, dims, &a, &b, Write::Accumulate, &mut out)));
        println!("m {m:5} n {n:5} k {k:5}: NT {nt:6.1}  NN {nn:6.1}  TN {tn:6.1} GFLOP/s");
    }
}

fn packed(pool: &Pool) {
    let (n, k) = (1024, 256);
    let packed = PackedMatrix::new(pool, n, k, &values(n * k));
    for m in [1, 2, 4, 8, 16, 64] {
        let a = values(m * k);
        let mut out = vec![0.0; m * n];
        let s = seconds(|| packed.matmul(pool, m, &a, Write::Overwrite, &mut out));
        let rate = 2e-9 * (m * n * k) as f64 / s;
        println!("packed m {m:3} n {n} k {k}: {:7.2} us {rate:6.1} GFLOP/s", s * 1e6);
    }
}

fn attention(pool: &Pool) {
    for (t, length, heads, kv_heads, head_dim) in
        [(2048, 512, 4, 2, 64), (2048, 2048, 4, 2, 64), (2048, 64, 4, 4, 64), (2048, 512, 6, 3, 48)]
    {
        let shape = AttentionShape { num_heads: heads, num_kv_heads: kv_heads, head_dim };
        let segments: Vec<u32> = (0..t as u32).step_by(length).collect();
        let (q, k, v) = (
            values(t * shape.q_width()),
            values(t * shape.kv_width()),
            values(t * shape.kv_width()),
        );
        let (mut out, mut lse) = (vec![0.0; q.len()], vec![0.0; t * heads]);
        let forward = seconds(|| {
            attention_forward(pool, shape, &segments, &q, &k, &v, &mut out, &mut lse);
        });
        let (mut d_q, mut d_k, mut d_v) = (q.clone(), k.clone(), v.clone());
        let backward = seconds(|| {
            let saved = SavedAttention { q: &q, k: &k, v: &v, out: &out, log_sum_exp: &lse };
            let gradients = AttentionGradients { d_q: &mut d_q, d_k: &mut d_k, d_v: &mut d_v };
            attention_backward(pool, shape, &segments, saved, &out, gradients);
        });
        // Pairs of query and key that count, times two products (forward) or five.
        let pairs = (t * (length + 1) / 2 * heads * head_dim) as f64 * 2e-9;
        println!(
            "attention t {t} of {length} h {heads}/{kv_heads}x{head_dim}: forward {:.2} ms {:.1}, backward {:.2} ms {:.1} GFLOP/s",
            forward * 1e3,
            2.0 * pairs / forward,
            backward * 1e3,
            5.0 * pairs / backward
        );
    }
    let shape = AttentionShape { num_heads: 4, num_kv_heads: 2, head_dim: 64 };
    let (q, keys) = (values(shape.q_width()), values(512 * shape.kv_width()));
    let mut out = values(shape.q_width());
    let s = seconds(|| {
        let row = DecodeRow { q: &q, keys: &keys, values: &keys, out: &mut out };
        attention_decode(pool, shape, &mut [row]);
    });
    println!("attention of one row over 512 keys: {:.2} us", s * 1e6);
}

fn cross_entropy(pool: &Pool) {
    let (rows, d_model, vocab_size) = (2048, 256, 4096);
    let shape = CrossEntropyShape { d_model, vocab_size };
    let (hidden, head) = (values(rows * d_model), values(vocab_size * d_model));
    let targets: Vec<u32> = (0..rows as u32).collect();
    let zeros = || vec![0.0f32; rows];
    let (mut log_prob, mut lse, mut entropy) = (zeros(), zeros(), zeros());
    let (mut d_hidden, mut d_head) = (hidden.clone(), head.clone());
    let product = 2e-9 * (rows * d_model * vocab_size) as f64;
    let forward = seconds(|| {
        let scores =
            Scores { log_prob: &mut log_prob, log_sum_exp: &mut lse, entropy: &mut entropy };
        cross_entropy_forward(pool, shape, &hidden, &head, &targets, scores);
    });
    let weights = vec![-1.0; rows];
    let fused = seconds(|| {
        cross_entropy_fused(
            pool,
            shape,
            &hidden,
            &head,
            &targets,
            &weights,
            &mut log_prob,
            &mut d_hidden,
            &mut d_head,
        );
    });
    println!(
        "cross entropy {rows} x {vocab_size} d {d_model}: forward {:.2} ms {:.1}, fused {:.2} ms {:.1} GFLOP/s",
        forward * 1e3,
        product / forward,
        fused * 1e3,
        3.0 * product / fused
    );
}

fn rows(pool: &Pool) {
    let (t, d) = (2048, 768);
    let n = t * d;
    let (x, gain, y) = (values(n), values(d), values(n));
    let (mut out, mut other, mut inverse) = (values(n), values(n), vec![0.0; t]);
    let mut d_gain = gain.clone();
    let report = |name: &str, s: f64| {
        println!("{name} {t} x {d}: {:.3} ms, {:.3} ns an element", s * 1e3, s * 1e9 / n as f64);
    };
    report(
        "rms_norm forward",
        seconds(|| rms_norm_forward(pool, 1e-5, &x, &gain, &mut out, &mut inverse)),
    );
    report(
        "rms_norm backward",
        seconds(|| {
            let write = Write::Accumulate;
            rms_norm_backward(pool, &x, &gain, &inverse, &y, write, &mut out, &mut d_gain);
        }),
    );
    report("swiglu forward", seconds(|| swiglu_forward(pool, &x, &y, &mut out)));
    report("swiglu backward", seconds(|| swiglu_backward(pool, &x, &y, &x, &mut out, &mut other)));
    let table = RopeTable::new(t, 64, 1e4);
    let positions: Vec<u32> = (0..t as u32).collect();
    report("rope", seconds(|| rope(pool, &table, Rotation::Forward, &positions, &mut out)));
    report("add", seconds(|| add(pool, &x, &mut out)));
    report("sum_of_squares", seconds(|| assert!(sum_of_squares(pool, &x) > 0.0)));
    let (mut first, mut second) = (vec![0.0; n], vec![0.0; n]);
    let settings = AdamW {
        learning_rate: 1e-3,
        beta1: 0.9,
        beta2: 0.95,
        epsilon: 1e-8,
        weight_decay: 0.1,
        gradient_scale: 1.0,
        step: 10,
    };
    report(
        "adamw",
        seconds(|| {
            let moments = Moments { first: &mut first, second: &mut second };
            adamw(pool, &settings, &x, moments, &mut out);
        }),
    );
    let ids: Vec<u32> = (0..t as u32).map(|i| i * 7 % 1000).collect();
    report("embedding forward", seconds(|| embedding_forward(pool, d, &ids, &x, &mut out)));
    report("embedding backward", seconds(|| embedding_backward(pool, d, &ids, &x, &mut out)));
}
