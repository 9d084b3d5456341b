//! From values to places, and the round numbers along an axis.

/// A line on which values have places.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The value at the beginning.
    pub low: f64,
    /// The value at the end.
    pub high: f64,
    /// The place of the beginning.
    pub from: f64,
    /// The place of the end.
    pub to: f64,
}

/// What a chart can show: beyond this, differences would overflow.
pub fn usable(value: f64) -> bool {
    value.is_finite() && value.abs() < 1e100
}

impl Scale {
    /// Spans the usable ones of `values`; where they are all alike, some room around them.
    pub fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let (low, high) = values
            .filter(|&v| usable(v))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return None;
        }
        let scale = Self { low, high, from, to };
        Some(if high - low > low.abs() * 1e-9 {
            scale
        } else {
            scale.widened(low.abs().max(1.0) / 2.0)
        })
    }

    /// The same with more room on both sides, in units of the values.
    pub fn widened(self, room: f64) -> Self {
        Self { low: self.low - room, high: self.high + room, ..self }
    }

    /// The place of a value, to a hundredth.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        ((self.from + share * (self.to - self.from)) * 100.0).round() / 100.0
    }

    /// The place of a value, held within the line.
    pub fn held(&self, value: f64) -> f64 {
        self.at(value.clamp(self.low, self.high))
    }

    /// Round values (1, 2 or 5 times a power of ten apart) within the line, about `wanted` of them.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        let raw = (self.high - self.low) / wanted.max(1) as f64;
        if !usable(raw) || raw <= 0.0 {
            return Vec::new();
        }
        let power = 10f64.powf(raw.log10().floor());
        let step = match raw / power {
            r if r < 1.5 => power,
            r if r < 3.5 => 2.0 * power,
            r if r < 7.5 => 5.0 * power,
            _ => 10.0 * power,
        };
        let first = (self.low / step - 1e-9).ceil();
        (0..=4 * wanted)
            .map(|i| (first + i as f64) * step)
            .take_while(|&v| v <= self.high + step * 1e-9)
            .map(|v| if v.abs() < step * 1e-6 { 0.0 } else { v })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_ticks(low: f64, high: f64, expected: &[f64]) {
        let ticks = Scale { low, high, from: 0.0, to: 1.0 }.ticks(4);
        assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
        for (tick, expected) in ticks.iter().zip(expected) {
            assert!((tick - expected).abs() < 1e-9, "{ticks:?}");
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        check_ticks(0.0, 1.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        check_ticks(0.0, 8.19, &[0.0, 2.0, 4.0, 6.0, 8.0]);
        check_ticks(0.0, 0.8, &[0.0, 0.2, 0.4, 0.6, 0.8]);
        check_ticks(-0.3, 0.31, &[-0.2, 0.0, 0.2]);
        check_ticks(0.0, 4_100_000.0, &[0.0, 1e6, 2e6, 3e6, 4e6]);
        check_ticks(1.0, 1.0, &[]);
        check_ticks(-1e99, 1e99, &[-1e99, -5e98, 0.0, 5e98, 1e99]);
    }

    #[test]
    fn what_is_not_usable_is_left_out() {
        let values = [f64::NAN, 1.0, f64::INFINITY, 3.0, 1e300];
        let scale = Scale::around(values.into_iter(), 0.0, 100.0).unwrap();
        assert_eq!((scale.low, scale.high, scale.at(2.0)), (1.0, 3.0, 50.0));
        assert!(Scale::around([f64::NAN].into_iter(), 0.0, 1.0).is_none());
    }

    #[test]
    fn a_single_value_stands_in_the_middle() {
        for value in [0.0, 5.0, -1e30] {
            let scale = Scale::around([value].into_iter(), 0.0, 10.0).unwrap();
            assert_eq!(scale.at(value), 5.0);
        }
    }
}
