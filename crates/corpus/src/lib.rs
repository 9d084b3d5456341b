//! Sources to documents: reading, extraction, filters, deduplication and the ledger.
//!
//! A *source* is a directory, a file or a generator named in the recipe. Its files become
//! [`base::Document`]s; documents pass the rules in a fixed order; each rule's count of what it saw
//! and dropped is in the [`Ledger`].
//!
//! ```text
//! source/   files -> raw documents          (tasks over pieces of about 16 MB of input, in parallel)
//! filter/   blocklist, on the address
//! extract/  HTML -> main text
//! dedup/    address (newest kept) -> whole text -> repeated lines
//! filter/   quality rules -> masking
//! overlap   held-out documents that training documents repeat are trained on
//! store     documents-00000.parquet …, ledger.json, examples.jsonl
//! ```
//!
//! The same sources, settings and seed give the same bytes, whatever the number of threads. This crate
//! knows no tokens: its statistics are of bytes, lines and words.
//!
//! ```no_run
//! use std::path::Path;
//! let settings = corpus::Settings::default();
//! let (base, out) = (Path::new("recipes"), Path::new("runs/a/01-corpus"));
//! let summary = corpus::build(&settings, base, base::Seed(7), out, 2, &base::Silent, &base::Stop::new())?;
//! for document in corpus::read(out)? {
//!     let text = document?.text;
//! }
//! # Ok::<(), corpus::Error>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod build;
mod dedup;
mod error;
mod extract;
mod filter;
mod inputs;
mod ledger;
mod lines;
mod overlap;
mod piece;
mod resolve;
mod settings;
pub mod source;
pub mod split;
mod store;

pub use build::{ALGORITHM, Summary, build};
pub use error::Error;
pub use extract::{Extracted, Page, extract};
pub use inputs::inputs;
pub use ledger::{Example, FunnelRow, Ledger, RuleCount, SourceCount};
pub use settings::{
    Blocklists, CodeRules, Dedup, Exempt, Kind, LineRule, Masking, ProseRules, Quality, Settings,
    Source, WhenMissing,
};
pub use store::{Documents, read, write};
