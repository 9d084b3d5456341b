//! Named tensors and state on disk, so that work can go on from where it was cut off.
//!
//! A checkpoint is a directory `step-00000120/` with two files: `tensors.bin`, the payloads one after
//! the other (32-bit floats, little-endian), and `checkpoint.json`, the step, each tensor's name, shape,
//! place and BLAKE3 digest, the caller's state, and a digest of all these.
//!
//! The flow: [`save`] writes under a temporary name, flushes, renames; [`prune`] then removes what is
//! older than wanted; after a cut [`clean`] sweeps what unfinished writes left, and [`latest_good`]
//! gives the newest checkpoint that passes every checksum, with the ones that did not. [`load`] reads
//! one by its path.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let weights = checkpoint::TensorView { name: "w", shape: &[2, 2], data: &[1.0, 2.0, 3.0, 4.0] };
//! checkpoint::save(directory, 120, &[weights], &serde_json::json!({"tokens_seen": 4096}))?;
//! let found = checkpoint::latest_good(directory)?.good.ok_or("none")?;
//! assert_eq!((found.step, &found.tensors["w"].data[..]), (120, &[1.0, 2.0, 3.0, 4.0][..]));
//! # Ok(())
//! # }
//! ```
//!
//! This crate knows no model: tensors are names, shapes and numbers.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod find;
mod format;
mod load;
mod names;
mod prune;
mod save;
mod space;

pub use error::Error;
pub use find::{Found, Latest, Refused, latest, latest_good};
pub use format::{PAYLOAD_FILE, STATE_FILE};
pub use load::{Loaded, Tensor, load};
pub use prune::{Failed, Pruned, clean, prune};
pub use save::{TensorView, save, size};
pub use space::free_bytes;
