//! A run on the disk: its directory and lock, its log of decisions and interruptions, and the rule
//! by which a stage is skipped, resumed or done.

pub mod decisions;
pub mod directory;
pub mod events;
pub mod journal;
pub mod stage;

pub use directory::RunDirectory;
pub use stage::{Finished, Stage, Yield};
