//! What every stage shares and no stage owns: digests, seeds, atomic files, manifests, progress
//! and the records that one stage hands to the next.
//!
//! This crate knows no stage. It holds no threads and no async code.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod digest;
pub mod fs;
pub mod manifest;
pub mod observe;
pub mod record;
pub mod seed;

pub use digest::{Digest, Hasher};
pub use fs::{AtomicFile, FsError, read, read_json, write_atomic, write_json};
pub use manifest::{Artifact, Manifest, ManifestError};
pub use observe::{Interrupted, Observer, Progress, Silent, Stop};
pub use record::{
    Category, Conversation, Document, Item, Message, Preference, Rating, Role, Split,
};
pub use seed::{Rng, Seed};
