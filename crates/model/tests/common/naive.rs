//! The whole model as plain loops in double precision, written from the formulae of Hugging Face's
//! `LlamaForCausalLM` and sharing nothing with the engine but the names of tensors.

use model::{Batch, Embeddings, ModelConfig, Weights};

/// Weights widened to double precision, so that differences can be taken with small steps.
pub struct Naive {
    pub config: ModelConfig,
    pub values: Vec<f64>,
    names: Vec<(String, std::ops::Range<usize>)>,
}

/// Log-probability, log-sum-exp and entropy of one target.
pub struct Score {
    pub log_prob: f64,
    pub log_sum_exp: f64,
    pub entropy: f64,
}

impl Naive {
    pub fn new(weights: &Weights) -> Self {
        let values = weights.as_slice().iter().map(|&x| f64::from(x)).collect();
        let names = weights.tensors().iter().map(|t| (t.name.clone(), t.range.clone())).collect();
        Self { config: weights.config().clone(), values, names }
    }

    fn tensor(&self, name: &str) -> &[f64] {
        let (_, range) = self.names.iter().find(|(n, _)| n == name).unwrap();
        &self.values[range.clone()]
    }

    /// Normalised hidden states of every token of the batch.
    pub fn hidden(&self, batch: &Batch) -> Vec<Vec<f64>> {
        batch.sequences().flat_map(|range| self.sequence(&batch.tokens[range])).collect()
    }

    pub fn scores(&self, batch: &Batch) -> Vec<Score> {
        let hidden = self.hidden(batch);
        let head = match self.config.embeddings {
            Embeddings::Tied => self.tensor("embedding"),
            Embeddings::Untied => self.tensor("head"),
        };
        let score = |target: &model::Target| {
            let logits = linear(head, &hidden[target.row as usize]);
            let highest = logits.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = logits.iter().map(|z| (z - highest).exp()).sum();
            let log_sum_exp = highest + sum.ln();
            let entropy =
                -logits.iter().map(|z| (z - log_sum_exp).exp() * (z - log_sum_exp)).sum::<f64>();
            Score { log_prob: logits[target.token as usize] - log_sum_exp, log_sum_exp, entropy }
        };
        batch.targets.iter().map(score).collect()
    }

    pub fn rewards(&self, batch: &Batch, rows: &[u32]) -> Vec<f64> {
        let hidden = self.hidden(batch);
        rows.iter().map(|&row| dot(&hidden[row as usize], self.tensor("score"))).collect()
    }

    fn sequence(&self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let d = self.config.d_model;
        let table = self.tensor("embedding");
        let mut x: Vec<Vec<f64>> =
            tokens.iter().map(|&id| table[id as usize * d..][..d].to_vec()).collect();
        for layer in 0..self.config.num_layers {
            let attended = self.attention(layer, &x);
            add(&mut x, &attended);
            let fed = self.feed_forward(layer, &x);
            add(&mut x, &fed);
        }
        x.iter().map(|row| self.norm("final_norm", row)).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let mean = dot(x, x) / x.len() as f64;
        let inverse = 1.0 / (mean + f64::from(self.config.norm_eps)).sqrt();
        x.iter().zip(self.tensor(name)).map(|(x, gain)| x * inverse * gain).collect()
    }

    fn attention(&self, layer: usize, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let c = &self.config;
        let (h, group) = (c.head_dim, c.num_heads / c.num_kv_heads);
        let name = |part: &str| format!("blocks.{layer}.attention.{part}");
        let normed: Vec<_> = x.iter().map(|row| self.norm(&name("norm"), row)).collect();
        let project = |part: &str, turned: bool| -> Vec<Vec<f64>> {
            let row = |(position, row): (usize, &Vec<f64>)| {
                let mut out = linear(self.tensor(&name(part)), row);
                if turned {
                    out.chunks_mut(h).for_each(|head| self.rotate(position, head));
                }
                out
            };
            normed.iter().enumerate().map(row).collect()
        };
        let (q, k, v) = (project("query", true), project("key", true), project("value", false));
        let row = |i: usize| {
            let head = |n: usize| -> Vec<f64> {
                let part = |row: &[f64], head: usize| row[head * h..][..h].to_vec();
                let query = part(&q[i], n);
                let scores: Vec<f64> = (0..=i)
                    .map(|j| dot(&query, &part(&k[j], n / group)) / (h as f64).sqrt())
                    .collect();
                let highest = scores.iter().copied().fold(f64::MIN, f64::max);
                let sum: f64 = scores.iter().map(|s| (s - highest).exp()).sum();
                let mut out = vec![0.0; h];
                for (j, s) in scores.iter().enumerate() {
                    let p = (s - highest).exp() / sum;
                    out.iter_mut().zip(part(&v[j], n / group)).for_each(|(o, v)| *o += p * v);
                }
                out
            };
            let heads: Vec<f64> = (0..c.num_heads).flat_map(head).collect();
            linear(self.tensor(&name("output")), &heads)
        };
        (0..x.len()).map(row).collect()
    }

    fn rotate(&self, position: usize, head: &mut [f64]) {
        let half = head.len() / 2;
        for i in 0..half {
            let exponent = 2.0 * i as f64 / head.len() as f64;
            let angle = position as f64 / f64::from(self.config.rope_theta).powf(exponent);
            let (a, b) = (head[i], head[i + half]);
            head[i] = a * angle.cos() - b * angle.sin();
            head[i + half] = b * angle.cos() + a * angle.sin();
        }
    }

    fn feed_forward(&self, layer: usize, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let name = |part: &str| format!("blocks.{layer}.feed_forward.{part}");
        let row = |row: &Vec<f64>| {
            let normed = self.norm(&name("norm"), row);
            let gate = linear(self.tensor(&name("gate")), &normed);
            let up = linear(self.tensor(&name("up")), &normed);
            let inner: Vec<f64> =
                gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            linear(self.tensor(&name("down")), &inner)
        };
        x.iter().map(row).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `y = weight · x` for a weight of [outputs, inputs].
fn linear(weight: &[f64], x: &[f64]) -> Vec<f64> {
    weight.chunks(x.len()).map(|row| dot(row, x)).collect()
}

fn add(x: &mut [Vec<f64>], y: &[Vec<f64>]) {
    x.iter_mut().flatten().zip(y.iter().flatten()).for_each(|(x, y)| *x += y);
}
