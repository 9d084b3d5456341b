//! What a figure means, in words that stand beside it: also when it falls short.

use crate::facts::{Better, Gate, Measured, Metric, Verdict, WinRate};
use crate::format;
use serde::Serialize;

/// A few words on a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remark {
    /// The words.
    pub text: String,
    /// How they are to be taken.
    pub tone: Tone,
}

/// How a remark is to be taken. The page's style has one class for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    /// As hoped.
    Good,
    /// Worse than hoped.
    Bad,
    /// Cannot be told from what was measured.
    Unsure,
    /// Neither.
    Plain,
}

impl Remark {
    /// Words with their tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone }
    }
}

/// Both ends of an interval, where both are figures.
pub fn interval(low: Option<f64>, high: Option<f64>) -> Option<(f64, f64)> {
    low.zip(high).filter(|(low, high)| low.is_finite() && high.is_finite())
}

/// A model's value beside each baseline.
pub fn against_baselines(metric: &Metric, measured: &Measured) -> Vec<Remark> {
    if !measured.value.is_finite() {
        return vec![Remark::new(Tone::Bad, "the measured value is not a finite number")];
    }
    let ends = interval(measured.low, measured.high).unwrap_or((measured.value, measured.value));
    let remark = |name: &str, level: f64| {
        if !level.is_finite() {
            return Remark::new(Tone::Unsure, format!("{name} was not measured"));
        }
        match side(metric.better, ends, (level, level)) {
            Some(true) => Remark::new(Tone::Good, format!("better than {name}")),
            Some(false) => Remark::new(Tone::Bad, format!("worse than {name}")),
            None => Remark::new(Tone::Unsure, format!("not clearly better than {name}")),
        }
    };
    metric.baselines.iter().map(|b| remark(&b.name, b.value)).collect()
}

/// A model's value beside that of the model it came from.
pub fn against_previous(
    metric: &Metric,
    previous: &Measured,
    measured: &Measured,
) -> Option<Remark> {
    if !(previous.value.is_finite() && measured.value.is_finite()) {
        return None;
    }
    let name = &previous.model;
    let whole = |m: &Measured| interval(m.low, m.high).unwrap_or((m.value, m.value));
    let known = interval(previous.low, previous.high).and(interval(measured.low, measured.high));
    let point = |m: &Measured| (m.value, m.value);
    let better = side(metric.better, point(measured), point(previous));
    let clear = side(metric.better, whole(measured), whole(previous)).is_some();
    Some(match (better, clear) {
        (None, _) => Remark::new(Tone::Plain, format!("same as {name}")),
        (Some(true), true) if known.is_some() => {
            Remark::new(Tone::Good, format!("better than {name}, intervals apart"))
        }
        (Some(false), true) if known.is_some() => {
            Remark::new(Tone::Bad, format!("worse than {name}, intervals apart"))
        }
        (Some(true), true) => Remark::new(Tone::Good, format!("better than {name}")),
        (Some(false), true) => Remark::new(Tone::Bad, format!("worse than {name}")),
        (Some(true), false) => {
            Remark::new(Tone::Unsure, format!("maybe better than {name}: the intervals overlap"))
        }
        (Some(false), false) => {
            Remark::new(Tone::Unsure, format!("maybe worse than {name}: the intervals overlap"))
        }
    })
}

/// Whether the first range lies wholly on the better side of the second (`true`), wholly on the worse
/// side (`false`), or neither.
fn side(better: Better, one: (f64, f64), other: (f64, f64)) -> Option<bool> {
    if one.0 > other.1 {
        Some(better == Better::Higher)
    } else if one.1 < other.0 {
        Some(better == Better::Lower)
    } else {
        None
    }
}

/// A win rate beside a half.
pub fn win(rate: &WinRate) -> Remark {
    if !(0.0..=1.0).contains(&rate.rate) {
        return Remark::new(Tone::Bad, "not measured: the rate is not a share");
    }
    match interval(rate.low, rate.high) {
        None => Remark::new(Tone::Unsure, "no interval, so nothing is shown"),
        Some((low, _)) if low > 0.5 => {
            Remark::new(Tone::Good, "preferred: the interval lies above a half")
        }
        Some((_, high)) if high < 0.5 => {
            Remark::new(Tone::Bad, "not preferred: the interval lies below a half")
        }
        Some(_) => {
            Remark::new(Tone::Unsure, "not shown to be preferred: the interval includes a half")
        }
    }
}

/// The gate's failed checks in one sentence; nothing where all passed.
pub fn failures(gate: &Gate) -> Option<String> {
    let failed: Vec<String> = gate
        .checks
        .iter()
        .filter(|c| !c.passed)
        .map(|c| {
            let (measured, threshold) =
                (format::value(c.measured, c.unit), format::value(c.threshold, c.unit));
            format!("{} is {measured}, must be {} {threshold}", c.name, bound_words(c.bound))
        })
        .collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}

/// The bound in words.
pub fn bound_words(bound: crate::facts::Bound) -> &'static str {
    match bound {
        crate::facts::Bound::AtLeast => "at least",
        crate::facts::Bound::AtMost => "at most",
    }
}

/// The release in one word and a sentence.
pub fn release(verdict: Verdict, gate: Option<&Gate>, stages: (usize, usize)) -> (Remark, String) {
    let failures = gate.and_then(failures);
    match verdict {
        Verdict::Released => {
            let word = Remark::new(Tone::Good, "Released");
            match (failures, gate.map_or(0, |g| g.checks.len())) {
                (Some(failed), _) => (word, format!("Released although a check failed: {failed}.")),
                (None, 0) => (word, "Released without any check on record.".into()),
                (None, 1) => (word, "The gate's one check passed.".into()),
                (None, n) => (word, format!("All {n} checks of the gate passed.")),
            }
        }
        Verdict::Refused => {
            let why = failures
                .map_or("No failed check is on record.".into(), |f| format!("Failed: {f}."));
            (Remark::new(Tone::Bad, "Refused"), why)
        }
        Verdict::NotYet => {
            let words = format!("{} of {} stages are done.", stages.0, stages.1);
            (Remark::new(Tone::Plain, "Not yet decided"), words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Baseline, Bound, Check};

    fn measured(value: f64, ends: Option<(f64, f64)>) -> Measured {
        let (low, high) = ends.unzip();
        Measured { model: "base".into(), value, low, high, count: None }
    }

    fn check_baseline(value: f64, ends: Option<(f64, f64)>, baseline: f64, expected: &str) {
        let metric = Metric {
            better: Better::Lower,
            baselines: vec![Baseline { name: "zstd".into(), value: baseline }],
            ..Metric::default()
        };
        assert_eq!(against_baselines(&metric, &measured(value, ends))[0].text, expected);
    }

    #[test]
    fn beside_a_baseline() {
        check_baseline(1.5, None, 1.9, "better than zstd");
        check_baseline(2.0, None, 1.9, "worse than zstd");
        check_baseline(2.0, Some((1.95, 2.1)), 1.9, "worse than zstd");
        check_baseline(1.85, Some((1.8, 1.95)), 1.9, "not clearly better than zstd");
        check_baseline(1.85, Some((1.8, 1.95)), f64::NAN, "zstd was not measured");
        check_baseline(f64::NAN, None, 1.9, "the measured value is not a finite number");
    }

    fn check_previous(one: (f64, f64, f64), other: (f64, f64, f64), expected: &str) {
        let of = |(value, low, high)| measured(value, Some((low, high)));
        let remark = against_previous(&Metric::default(), &of(one), &of(other)).unwrap();
        assert_eq!(remark.text, expected);
    }

    #[test]
    fn beside_the_previous_model() {
        check_previous((0.1, 0.05, 0.2), (0.5, 0.4, 0.6), "better than base, intervals apart");
        check_previous((0.5, 0.4, 0.6), (0.1, 0.05, 0.2), "worse than base, intervals apart");
        let overlapping = "maybe better than base: the intervals overlap";
        check_previous((0.5, 0.4, 0.6), (0.55, 0.45, 0.65), overlapping);
        check_previous((0.5, 0.4, 0.6), (0.5, 0.4, 0.6), "same as base");
    }

    fn check_win(rate: f64, low: Option<f64>, high: Option<f64>, expected: Tone) {
        let rate = WinRate { rate, low, high, ..WinRate::default() };
        assert_eq!(win(&rate).tone, expected);
    }

    #[test]
    fn beside_a_half() {
        check_win(0.6, Some(0.55), Some(0.65), Tone::Good);
        check_win(0.6, Some(0.49), Some(0.71), Tone::Unsure);
        check_win(0.5, Some(0.5), Some(0.5), Tone::Unsure);
        check_win(0.4, Some(0.3), Some(0.45), Tone::Bad);
        check_win(0.6, None, None, Tone::Unsure);
        check_win(0.6, Some(f64::NAN), Some(0.7), Tone::Unsure);
        check_win(1.2, Some(0.55), Some(0.65), Tone::Bad);
        check_win(f64::NAN, Some(0.55), Some(0.65), Tone::Bad);
    }

    #[test]
    fn a_release_in_spite_of_the_gate_is_told() {
        let check = Check {
            name: "bits per byte".into(),
            bound: Bound::AtMost,
            threshold: 2.0,
            measured: 2.5,
            ..Check::default()
        };
        let gate = Gate { checks: vec![check] };
        let (_, words) = release(Verdict::Released, Some(&gate), (1, 1));
        assert_eq!(
            words,
            "Released although a check failed: bits per byte is 2.500, must be at most 2.000."
        );
    }
}
