//! A value with its interval on a horizontal strip. Places are in per cent of the strip's width, so
//! that it fits a phone and a sheet of paper alike.

use super::scale::{Scale, usable};
use serde::Serialize;

/// The marks of one strip.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Strip {
    /// Place of the value.
    pub at: Option<f64>,
    /// Ends of the whisker.
    pub whisker: Option<(f64, f64)>,
    /// Places of the levels to compare with.
    pub levels: Vec<f64>,
}

/// Draws a value and its interval along `scale`.
pub fn strip(scale: &Scale, value: f64, interval: Option<(f64, f64)>, levels: &[f64]) -> Strip {
    let place = |v: f64| usable(v).then(|| scale.held(v));
    Strip {
        at: place(value),
        whisker: interval.and_then(|(low, high)| Some((place(low)?, place(high)?))),
        levels: levels.iter().filter_map(|&v| place(v)).collect(),
    }
}

/// A scale for shares over the strip's width, with room for marks at the ends: from 0 to 1, or to a
/// lower round share where all of `values` stay below it.
pub fn shares(values: impl Iterator<Item = f64>) -> Scale {
    let largest = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
    let high = [0.05, 0.1, 0.2, 0.5].into_iter().find(|&h| largest <= h).unwrap_or(1.0);
    Scale { low: 0.0, high, from: 2.0, to: 98.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stay_on_the_strip() {
        let drawn = strip(&shares([1.5].into_iter()), 1.5, Some((-3.0, 0.5)), &[0.5, f64::NAN]);
        assert_eq!(drawn, Strip { at: Some(98.0), whisker: Some((2.0, 50.0)), levels: vec![50.0] });
    }

    #[test]
    fn what_is_not_finite_has_no_mark() {
        let drawn = strip(&shares([].into_iter()), f64::NAN, Some((0.1, f64::INFINITY)), &[]);
        assert_eq!(drawn, Strip::default());
    }

    #[test]
    fn small_shares_have_a_shorter_scale() {
        for (values, expected) in
            [(&[][..], 0.05), (&[0.02, f64::NAN], 0.05), (&[0.02, 0.11], 0.2), (&[0.6], 1.0)]
        {
            assert_eq!(shares(values.iter().copied()).high, expected);
        }
    }
}
