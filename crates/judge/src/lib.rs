//! Tasks, grading, baselines, red-team campaigns, intervals and gates.
//!
//! A [`Subject`] (one of our [`Model`]s, or anything else that answers) is asked prompts and gives
//! [`Answer`]s. [`evaluate`] grades them on items with known answers and compares two models on the same
//! prompts; [`bits`] measures held-out text, against the models of [`baseline`]; [`redteam`] attacks;
//! [`gate`] compares what was measured with the recipe's thresholds. Every measured share and mean
//! carries its interval ([`intervals`]).
//!
//! ```text
//! items ----> answers -> grades -> Evaluation --+
//! held-out documents -> scores -> BitsReport ---+-> Measured -> gate -> released, or not
//! probes ---> answers -> hits -> CampaignReport-+
//! ```
//!
//! This crate never trains.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
pub mod baseline;
pub mod bits;
mod error;
pub mod evaluate;
pub mod gate;
pub mod grade;
pub mod intervals;
pub mod redteam;
mod subject;

pub use answer::{Answer, Ask, Finish, Prompt, Sampling, Subject, answers};
pub use error::Error;
pub use grade::Grader;
pub use subject::Model;
