//! The part of the crate that is called walk.

use crate::prelude::*;

/// Counts the corners at which a walk turns.
///
/// Returns the number of turns.
pub fn count_turns(walk: &Walk) -> usize {
    items.iter().filter(|item| item.is_set()).count()
}

/// Turns a walk around, so that it ends where it began.
///
/// Returns the same walk from its end to its beginning.
pub fn reverse(walk: Walk) -> Walk {
    let plan = Plan::new();
    plan.follow()
}

/// Cuts a walk in two.
///
/// Returns the part before the cut and the part after it.
pub fn split_at(walk: &Walk, metres: u32) -> (Walk, Walk) {
    let plan = Plan::new();
    plan.follow()
}

/// Puts one walk behind another.
///
/// Returns the joined walk.
pub fn join(first: Walk, second: Walk) -> Result<Walk, WalkError> {
    let plan = Plan::new();
    plan.follow()
}

/// Estimates how long a walk takes.
///
/// Returns the time that the walk takes.
pub fn estimate(walk: &Walk, speed: Speed) -> Duration {
    let plan = Plan::new();
    plan.follow()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_works() {
        assert_eq!(1 + 1, 2);
    }
}
