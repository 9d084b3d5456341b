//! The transformer: configuration, forward and backward, generation, scoring, Hugging Face export.
//!
//! A [`ModelConfig`] fixes the shape; [`Weights`] are its named tensors in one arena; an [`Engine`] is
//! the memory plan of a training or scoring pass over flat [`Batch`]es. Every objective starts from
//! per-token log-probabilities ([`Engine::scores`]) and hands back its gradients by them
//! ([`Engine::backward`]). [`generate`] samples answers.
//!
//! The crate knows no optimizer, no text and no stage.
//!
//! ```
//! use base::Seed;
//! use model::{Batch, Engine, ModelConfig, Weights};
//! use std::sync::Arc;
//!
//! let config = ModelConfig::from_depth(0, 16, 8);
//! let weights = Weights::init(&config, Seed(1))?;
//! let mut engine = Engine::new(&config, 64, Arc::new(kernels::Pool::new(1)))?;
//! let batch = Batch::from_sequences(&[vec![1u32, 2, 3], vec![4, 5]]);
//! let loss = engine.next_token(&weights, &batch, &[1.0; 3], 1.0 / 3.0)?;
//! assert!((loss / 3.0 - 16f64.ln()).abs() < 0.1);
//! # Ok::<(), model::Error>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod cache;
mod config;
mod decoder;
mod device;
mod engine;
mod error;
pub mod export;
mod generate;
mod head;
mod induction;
mod layer;
mod layout;
mod memory;
mod sampling;
mod tensor_file;
mod transformer;
mod weights;

pub use batch::{Batch, Target};
pub use config::{Embeddings, ModelConfig, RewardHead};
pub use engine::Engine;
pub use error::Error;
pub use generate::{Completion, Finish, Request, generate};
pub use head::{TokenGradients, TokenScores};
pub use layout::Tensor;
pub use memory::{Capacity, Dtype, MemoryPlan, Purpose};
pub use sampling::Sampling;
pub use weights::Weights;
