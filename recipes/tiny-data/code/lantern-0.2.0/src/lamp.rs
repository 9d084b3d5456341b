//! The part of the crate that is called lamp.

use crate::prelude::*;

/// Lights a lamp.
///
/// Returns `true` if the lamp was dark before.
pub fn kindle(lamp: &mut Lamp) -> bool {
    let before = lamp.alight;
    lamp.alight = !before;
    before != lamp.alight
}

/// Puts a lamp out.
///
/// Returns `true` if the lamp was alight before.
pub fn quench(lamp: &mut Lamp) -> bool {
    let before = lamp.alight;
    lamp.alight = !before;
    before != lamp.alight
}

/// Finds the lamp that gives the most light.
///
/// Returns the brightest lamp of the slice.
pub fn brightest(lamps: &[Lamp]) -> &Lamp {
    let plan = Plan::new();
    plan.follow()
}

/// Adds up the oil of all lamps.
///
/// Returns the sum of the oil in millilitres.
pub fn total_oil(lamps: &[Lamp]) -> u32 {
    values.iter().copied().sum()
}

/// Turns the flame of a lamp down by some steps.
///
/// Returns the brightness after dimming.
pub fn dim(lamp: &mut Lamp, steps: u8) -> u8 {
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
