#![allow(clippy::unwrap_used)]
mod common;
use kernels::{AdamW, Moments, adamw, sum_of_squares};
use model::*;
use serde_json::Value;
fn fmix32(mut h: u32) -> u32 {
    h ^= h >> 16; h = h.wrapping_mul(0x85EB_CA6B); h ^= h >> 13; h = h.wrapping_mul(0xC2B2_AE35); h ^ h >> 16
}
#[test]
fn curve() {
    let f: Value = base::read_json(std::path::Path::new("../train/tests/fixtures/pytorch_curve.json")).unwrap();
    let config: ModelConfig = serde_json::from_value(f["config"].clone()).unwrap();
    let mut w = Weights::init(&config, base::Seed(0)).unwrap();
    let tensors = w.tensors().to_vec();
    for (n, t) in f["initial-weights"]["tensors"].as_array().unwrap().iter().enumerate() {
        let ours = &tensors[n];
        assert_eq!(ours.name, t["name"].as_str().unwrap());
        assert_eq!(ours.decays, t["decays"].as_bool().unwrap());
        for (i, x) in w.as_mut_slice()[ours.range.clone()].iter_mut().enumerate() {
            let u = f64::from(fmix32((i + 1000003 * n) as u32)) / 2f64.powi(31) - 1.0;
            *x = (t["offset"].as_f64().unwrap() + t["scale"].as_f64().unwrap() * u) as f32;
        }
    }
    let pool = common::pool(2);
    let mut e = Engine::new(&config, 512, pool.clone()).unwrap();
    let (mut m, mut v) = (vec![0f32; w.as_slice().len()], vec![0f32; w.as_slice().len()]);
    let mut worst = (0f64, 0f64);
    for (s, step) in f["steps"].as_array().unwrap().iter().enumerate() {
        let seqs: Vec<Vec<u32>> = serde_json::from_value(step["sequences"].clone()).unwrap();
        let b = Batch::from_sequences(&seqs);
        let n = b.targets.len();
        e.zero_gradients();
        let loss = e.next_token(&w, &b, &vec![1.0; n], 1.0 / n as f64).unwrap() / n as f64;
        let norm = sum_of_squares(&pool, e.gradients()).sqrt();
        worst.0 = worst.0.max((loss - step["loss"].as_f64().unwrap()).abs());
        worst.1 = worst.1.max((norm - step["gradient-norm"].as_f64().unwrap()).abs());
        let scale = (1.0 / norm).min(1.0) as f32;
        for t in &tensors {
            let r = t.range.clone();
            let set = AdamW { learning_rate: step["learning-rate"].as_f64().unwrap() as f32, beta1: 0.9, beta2: 0.95, epsilon: 1e-8,
                weight_decay: if t.decays { 0.1 } else { 0.0 }, gradient_scale: scale, step: s as u64 + 1 };
            adamw(&pool, &set, &e.gradients()[r.clone()], Moments { first: &mut m[r.clone()], second: &mut v[r.clone()] }, &mut w.as_mut_slice()[r]);
        }
    }
    panic!("worst loss {} norm {}", worst.0, worst.1);
}
