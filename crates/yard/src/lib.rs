//! The pages: the report of a run as one HTML file.
//!
//! [`Facts`] is what is known about a run; [`report`] writes it as a page. The page needs no other
//! file, no script and no network; charts are drawn here, as SVG. A part that the run has not reached
//! yet is shown as such, and where a figure falls short of what it is compared with, words beside it
//! say so.
//!
//! ```
//! let mut facts = yard::Facts::default();
//! facts.run.name = "rust-docs".into();
//! let page = yard::report(&facts)?;
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), yard::Error>(())
//! ```
//!
//! The flow: `facts` (records) → `view` (what each section says, in words and numbers) and `chart`
//! (where each mark stands) → `templates` (HTML). All text from a run is hostile: templates escape
//! everything and the last step makes control characters visible. This crate holds no logic of a
//! stage: it computes no interval and decides no check.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod chart;
pub mod facts;
mod format;
mod page;
mod verdict;
mod view;

pub use facts::Facts;
pub use page::{Error, report};
