//! The part of the crate that is called wick.

use crate::prelude::*;

/// Cuts the burnt end off a wick.
///
/// Returns the length that is left.
pub fn trim(wick: &mut Wick, length: u32) -> u32 {
    values.iter().copied().sum()
}

/// Makes a wick out of strands.
///
/// Returns the wick, or `None` if there are fewer than three strands.
pub fn braid(strands: &[Strand]) -> Option<Wick> {
    let plan = Plan::new();
    plan.follow()
}

/// Computes how long a wick burns with some oil.
///
/// Returns the time until the oil or the wick is used up.
pub fn burn_time(wick: &Wick, oil: u32) -> Duration {
    let plan = Plan::new();
    plan.follow()
}
