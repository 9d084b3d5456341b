//! Tokens a second of training and of generation, on two threads.
//!
//! `cargo run --release -p model --example speed -- [DEPTH [VOCAB_SIZE [THREADS]]]`
#![allow(clippy::print_stdout)]

use base::{Seed, Stop};
use kernels::Pool;
use model::{Batch, Engine, ModelConfig, Request, Sampling, Weights, generate};
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let number = |i: usize, default| numbers.get(i).copied().unwrap_or(default);
    let config = ModelConfig::from_depth(number(0, 4), number(1, 4096), 512);
    let pool = Arc::new(Pool::new(number(2, 2)));
    let weights = Weights::init(&config, Seed(1))?;
    println!("{} parameters, {} threads", config.num_parameters(), pool.threads());
    train(&config, &weights, &pool)?;
    answer(&config, &weights, &pool)?;
    Ok(())
}

fn tokens(config: &ModelConfig, count: usize, seed: Seed) -> Vec<u32> {
    let mut rng = seed.rng();
    (0..count).map(|_| rng.below(config.vocab_size) as u32).collect()
}

fn train(config: &ModelConfig, weights: &Weights, pool: &Arc<Pool>) -> Result<(), model::Error> {
    let sequences: Vec<_> = (0..8).map(|i| tokens(config, 512, Seed(2).at(i))).collect();
    let batch = Batch::from_sequences(&sequences);
    let mut engine = Engine::new(config, 4096, pool.clone())?;
    let ones = vec![1.0; batch.targets.len()];
    let seconds = best(3, || engine.next_token(weights, &batch, &ones, 1.0).map(|_| ()))?;
    let rate = batch.tokens.len() as f64 / seconds;
    let gigaflops = rate * config.flops_per_token(512) / 1e9;
    let megabytes = engine.peak_bytes() / 1_000_000;
    println!("training: {rate:.0} tokens/s, {gigaflops:.0} GFLOP/s, plan {megabytes} MB");
    let seconds = best(3, || engine.scores(weights, &batch).map(|_| ()))?;
    println!("scoring: {:.0} tokens/s", batch.tokens.len() as f64 / seconds);
    Ok(())
}

fn answer(config: &ModelConfig, weights: &Weights, pool: &Pool) -> Result<(), model::Error> {
    let request = |i| Request { prompt: tokens(config, 48, Seed(3).at(i)), seed: Seed(4).at(i) };
    let requests: Vec<_> = (0..128).map(request).collect();
    let drawn = Sampling { max_new_tokens: 96, ..Sampling::default() };
    let nucleus = Sampling { top_p: 0.95, top_k: Some(50), ..drawn.clone() };
    let cases = [
        ("greedy", Sampling::greedy(96, vec![]), 128),
        ("drawn", drawn.clone(), 128),
        ("nucleus", nucleus, 128),
        ("drawn, alone", drawn, 1),
    ];
    for (name, sampling, count) in cases {
        let stop = Stop::new();
        let mut made = 0;
        let seconds = best(2, || {
            made = 0;
            let mut count_token = |_: usize, _: u32| made += 1;
            generate(weights, pool, &requests[..count], &sampling, &mut count_token, &stop)
                .map(|_| ())
        })?;
        println!("generation, {name}: {:.0} new tokens/s", f64::from(made) / seconds);
    }
    Ok(())
}

/// The shortest of some timed calls, in seconds.
fn best<E>(times: usize, mut call: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut shortest = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        call()?;
        shortest = shortest.min(start.elapsed().as_secs_f64());
    }
    Ok(shortest)
}
