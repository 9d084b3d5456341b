//! Progress out of a stage and the wish to stop into it. Libraries report here; only the program
//! decides how it looks.

use std::sync::atomic::{AtomicBool, Ordering};

/// How far a piece of work is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// Units in all, where known.
    pub total: Option<u64>,
    /// What a unit is: `documents`, `steps`, `answers`…
    pub unit: &'static str,
    /// A few words on the present state, such as the loss.
    pub detail: String,
}

/// Receives what a stage has to say while it works.
pub trait Observer: Sync {
    /// Called often; receivers thin it out.
    fn progress(&self, progress: Progress);
    /// Something a person should read.
    fn note(&self, message: &str);
}

/// An observer that drops everything.
pub struct Silent;

impl Observer for Silent {
    fn progress(&self, _: Progress) {}
    fn note(&self, _: &str) {}
}

/// A flag that asks running work to save what it has and return.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// A flag that is not raised.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Asks for the stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the stop was asked for.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// An error once the stop was asked for, for use with `?` at safe points.
    ///
    /// # Errors
    /// [`Interrupted`] after [`Stop::raise`].
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.raised() { Err(Interrupted) } else { Ok(()) }
    }
}

/// The work was asked to stop and did so at a safe point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted; all that was finished is saved")]
pub struct Interrupted;
