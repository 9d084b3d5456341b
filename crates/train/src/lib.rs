//! The training loop and what it needs: optimizer, learning-rate schedules, metrics, resuming.
//!
//! Nouns: an [`Objective`] knows the data of every step and their loss; [`Settings`] say how long and how
//! fast; [`run`] takes the steps and gives an [`Outcome`]; a [`Record`] is one step's line in
//! `metrics.jsonl`.
//!
//! The flow of a step: work, gradient of the mean loss over all counted targets, clipping by the norm of
//! the whole gradient, AdamW, evaluation where due, record, checkpoint where due. Data and learning rate
//! are pure functions of the step, so a checkpoint needs no more than the weights, both moments and the
//! last record, and a training that was cut off ends with the same bits as one that was not.
//!
//! ```no_run
//! # fn example(weights: model::Weights, loader: tokens::Loader) -> Result<(), train::Error> {
//! use std::{path::Path, sync::Arc};
//! let settings = train::Settings::default();
//! let data = base::Digest::of_bytes(b"the digest of the shards");
//! let mut objective = train::NextToken::new(loader, data, &settings)?;
//! let context = train::Context {
//!     directory: Path::new("runs/mine/04-pretrain"),
//!     pool: Arc::new(kernels::Pool::new(2)),
//!     observer: &base::Silent,
//!     stop: &base::Stop::new(),
//! };
//! let outcome = train::run(&mut objective, &settings, weights, &context, None)?;
//! assert_eq!(outcome.last.step, outcome.steps);
//! # Ok(())
//! # }
//! ```
//!
//! This crate prints nothing and knows no preference.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod copying;
mod error;
mod held_out;
mod metrics;
mod next_token;
mod objective;
mod optimizer;
mod run;
mod schedule;
mod settings;
mod state;
mod step;
mod supervised;

pub use error::Error;
pub use held_out::{HeldOutError, HeldOutLoss, batches_of, held_out_loss};
pub use metrics::{METRICS_FILE, Record, TIMING_FILE, Timing, read_metrics, read_timing};
pub use next_token::NextToken;
pub use objective::{Measures, Objective, ObjectiveError, Sums, learn_targets};
pub use run::{CHECKPOINTS, Context, Evaluate, Outcome, WEIGHTS_FILE, run};
pub use schedule::learning_rate;
pub use settings::{Budget, Schedule, Settings};
pub use supervised::{Packed, Supervised};
