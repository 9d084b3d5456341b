//! Writes a model with random weights in Hugging Face's form and, beside it, what our engine computes
//! with it: the input of `scripts/parity/transformers_parity.py`.
//!
//! `cargo run --release -p model --example export_parity -- DIRECTORY`

use base::Seed;
use kernels::Pool;
use model::{Embeddings, ModelConfig, Sampling, Weights, export};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("expected a directory")?;
    for (name, embeddings) in [("tied", Embeddings::Tied), ("untied", Embeddings::Untied)] {
        let directory = Path::new(&directory).join(name);
        let config = ModelConfig { embeddings, ..ModelConfig::from_depth(4, 1024, 128) };
        let mut weights = Weights::init(&config, Seed(11))?;
        // Matrices larger than fresh ones, so that logits spread and every layer counts.
        for tensor in weights.tensors().to_vec() {
            let factor = if tensor.name.ends_with("norm") { 1.0 } else { 3.0 };
            weights.as_mut_slice()[tensor.range].iter_mut().for_each(|x| *x *= factor);
        }
        export::hugging_face(&directory, &weights, 0, &Sampling::default())?;
        let mut rng = Seed(12).rng();
        let prompt: Vec<u32> = (0..48).map(|_| rng.below(1024) as u32).collect();
        let record = export::parity_record(&weights, &Pool::new(2), &prompt, 32)?;
        base::write_json(&directory.join("parity.json"), &record)?;
    }
    Ok(())
}
