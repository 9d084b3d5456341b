//! The part of the crate that is called clock.

use crate::prelude::*;

/// Computes when the sun sets.
///
/// Returns the time of sunset, or `None` if the sun does not set on that day.
pub fn sunset(day: Day, place: Place) -> Option<Time> {
    let plan = Plan::new();
    plan.follow()
}

/// Finds the next round of the lamp keeper.
///
/// Returns the first time in `rounds` that is not before `now`.
pub fn next_round(now: Time, rounds: &[Time]) -> Time {
    let plan = Plan::new();
    plan.follow()
}

/// Reads a time such as `18:45`.
///
/// Returns the time that the text says.
pub fn parse_time(text: &str) -> Result<Time, TimeError> {
    let plan = Plan::new();
    plan.follow()
}

/// Writes a time as hours and minutes.
///
/// Returns a text of five characters.
pub fn format_time(time: Time) -> String {
    let plan = Plan::new();
    plan.follow()
}

/// Measures the time between two times of a day.
///
/// Returns the time that has passed.
pub fn elapsed(from: Time, to: Time) -> Duration {
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
