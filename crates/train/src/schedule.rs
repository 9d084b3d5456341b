//! The learning rate as a pure function of the step. Nothing is stepped, so nothing can be stepped
//! twice: after resuming it is what it would have been.

use crate::settings::{Schedule, Settings};

/// The learning rate of the update `step`, counted from 0, in a training of `steps`.
///
/// In the warm-up it rises in equal parts, `peak * (step + 1) / warmup`, so that the first update already
/// moves and the last of the warm-up has the peak. The last update of all has the minimum.
pub fn learning_rate(settings: &Settings, steps: u64, step: u64) -> f64 {
    let peak = settings.learning_rate;
    let share_of_steps = |share: f64| (share * steps as f64).round() as u64;
    let warmup = share_of_steps(settings.warmup_share);
    if step < warmup {
        return peak * (step + 1) as f64 / warmup as f64;
    }
    let min = settings.min_learning_rate_share;
    let left = steps.saturating_sub(step + 1);
    let whole = steps.saturating_sub(warmup + 1);
    let height = match settings.schedule {
        Schedule::Constant => return peak,
        Schedule::Cosine => 0.5 * (1.0 - (std::f64::consts::PI * share(left, whole)).cos()),
        Schedule::Wsd => share(left, share_of_steps(settings.decay_share).min(whole)),
    };
    peak * (min + (1.0 - min) * height)
}

/// A part of a whole, at most 1; of nothing it is 1, so that a training of one step has the peak.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { (part as f64 / whole as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: Schedule, expected: &[(u64, f64)]) {
        let settings = Settings {
            learning_rate: 2.0,
            schedule,
            warmup_share: 0.04,
            decay_share: 0.2,
            min_learning_rate_share: 0.1,
            ..Settings::default()
        };
        for &(step, rate) in expected {
            let found = learning_rate(&settings, 101, step);
            assert!((found - rate).abs() < 1e-12, "{schedule:?} step {step}: {found}, not {rate}");
        }
    }

    #[test]
    fn each_schedule_has_its_corners() {
        let warmup = [(0, 0.5), (1, 1.0), (3, 2.0), (4, 2.0)];
        for schedule in [Schedule::Cosine, Schedule::Wsd, Schedule::Constant] {
            check(schedule, &warmup);
        }
        // 96 steps from the peak to the minimum: half way down after 48.
        check(Schedule::Cosine, &[(52, 1.1), (100, 0.2), (500, 0.2)]);
        check(Schedule::Wsd, &[(79, 2.0), (80, 2.0), (90, 1.1), (99, 0.29), (100, 0.2)]);
        check(Schedule::Constant, &[(101, 2.0), (500, 2.0)]);
    }

    #[test]
    fn degenerate_lengths_stay_finite() {
        for schedule in [Schedule::Cosine, Schedule::Wsd, Schedule::Constant] {
            for (warmup_share, decay_share) in [(0.0, 0.0), (1.0, 1.0), (0.5, 0.9)] {
                let settings =
                    Settings { schedule, warmup_share, decay_share, ..Settings::default() };
                for steps in [1, 2, 3] {
                    for step in 0..=steps {
                        let rate = learning_rate(&settings, steps, step);
                        assert!(rate > 0.0 && rate <= settings.learning_rate, "{rate}");
                    }
                }
            }
        }
    }
}
