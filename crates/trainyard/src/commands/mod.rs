//! One file a command.

pub mod chat;
pub mod decide;
pub mod eval;
pub mod new;
pub mod report;
pub mod run;
pub mod status;
