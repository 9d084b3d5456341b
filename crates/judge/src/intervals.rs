//! How sure a measured number is: 95% intervals for shares, means and comparisons.
//!
//! Shares use Wilson's interval, which holds at 0 and at 1 and for few trials. Means and paired
//! differences use the percentile bootstrap over prompts (Efron 1979), with its own seed, so that a
//! report says the same each time it is made.

use base::Seed;
use serde::{Deserialize, Serialize};

/// The two-sided 95% point of the standard normal distribution.
const Z_95: f64 = 1.959_963_984_540_054;

/// How many times the bootstrap draws.
const RESAMPLES: usize = 2_000;

/// A measured value with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The measured value.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many trials or prompts it rests on.
    pub count: u64,
}

impl Interval {
    /// Whether the interval lies wholly above a value.
    pub fn above(&self, value: f64) -> bool {
        self.count > 0 && self.low > value
    }

    /// Whether the interval lies wholly below a value.
    pub fn below(&self, value: f64) -> bool {
        self.count > 0 && self.high < value
    }
}

/// Wilson's score interval of a share (Wilson 1927, equation 4). Without trials nothing is known: the
/// interval is 0 to 1, and its `count` of 0 says so.
pub fn wilson(successes: u64, trials: u64) -> Interval {
    wilson_of_share(successes as f64, trials)
}

/// Wilson's interval where `successes` may be a part of one (a tie is half a win).
fn wilson_of_share(successes: f64, trials: u64) -> Interval {
    if trials == 0 {
        return Interval { estimate: 0.0, low: 0.0, high: 1.0, count: 0 };
    }
    let (n, share) = (trials as f64, successes / trials as f64);
    let z2 = Z_95 * Z_95;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let variance = share * (1.0 - share) / n + z2 / (4.0 * n * n);
    let half = Z_95 * variance.max(0.0).sqrt() / (1.0 + z2 / n);
    let (low, high) = ((centre - half).max(0.0), (centre + half).min(1.0));
    // At the ends rounding may put the interval a hair inside the share.
    Interval { estimate: share, low: low.min(share), high: high.max(share), count: trials }
}

/// The mean of values with its bootstrap interval. Without values it is 0 from 0 to 0, `count` 0.
pub fn bootstrap_mean(values: &[f64], seed: Seed) -> Interval {
    let pairs: Vec<(f64, f64)> = values.iter().map(|&value| (value, 1.0)).collect();
    bootstrap_ratio(&pairs, seed)
}

/// The mean of `a - b` over prompts that both answered, with its bootstrap interval. Values beyond the
/// shorter list are left out.
pub fn paired_difference(a: &[f64], b: &[f64], seed: Seed) -> Interval {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    bootstrap_mean(&differences, seed)
}

/// A sum of numerators over a sum of denominators (bits over bytes), resampled by unit (by document).
pub fn bootstrap_ratio(units: &[(f64, f64)], seed: Seed) -> Interval {
    if units.is_empty() {
        return Interval { estimate: 0.0, low: 0.0, high: 0.0, count: 0 };
    }
    let ratio = |(top, bottom): (f64, f64)| if bottom == 0.0 { 0.0 } else { top / bottom };
    let add = |sum: (f64, f64), unit: &(f64, f64)| (sum.0 + unit.0, sum.1 + unit.1);
    let mut rng = seed.rng();
    let mut draws: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..units.len()).map(|_| &units[rng.below(units.len())]);
            ratio(drawn.fold((0.0, 0.0), add))
        })
        .collect();
    draws.sort_unstable_by(f64::total_cmp);
    let estimate = ratio(units.iter().fold((0.0, 0.0), add));
    let at = |share: f64| draws[((RESAMPLES - 1) as f64 * share).round() as usize];
    Interval { estimate, low: at(0.025), high: at(0.975), count: units.len() as u64 }
}

/// How often one side was preferred to the other over paired prompts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WinRate {
    /// Prompts on which the first side was better.
    pub wins: u64,
    /// Prompts on which the second side was better.
    pub losses: u64,
    /// Prompts on which neither was.
    pub ties: u64,
    /// Share of prompts that are ties.
    pub tie_share: f64,
    /// Win rate with a tie counted as half a win; bootstrap over prompts.
    pub rate: Interval,
    /// Win rate among the decided prompts alone; Wilson.
    pub decided: Interval,
}

impl WinRate {
    /// Whether both intervals lie wholly above a half.
    pub fn excludes_half(&self) -> bool {
        self.rate.above(0.5) && self.decided.above(0.5)
    }
}

/// Win rate from paired differences: above `margin` is a win, below `-margin` a loss, else a tie.
pub fn win_rate(differences: &[f64], margin: f64, seed: Seed) -> WinRate {
    let outcome = |&difference: &f64| match difference {
        d if d > margin => 1.0,
        d if d < -margin => 0.0,
        _ => 0.5,
    };
    let outcomes: Vec<f64> = differences.iter().map(outcome).collect();
    let count = |value: f64| outcomes.iter().filter(|&&outcome| outcome == value).count() as u64;
    let (wins, losses, ties) = (count(1.0), count(0.0), count(0.5));
    WinRate {
        wins,
        losses,
        ties,
        tie_share: ties as f64 / outcomes.len().max(1) as f64,
        rate: bootstrap_mean(&outcomes, seed),
        decided: wilson(wins, wins + losses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_wilson(successes: u64, trials: u64, low: f64, high: f64) {
        let found = wilson(successes, trials);
        assert!((found.low - low).abs() < 1e-4 && (found.high - high).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn wilson_gives_the_published_values() {
        // Newcombe 1998, table I, method 3.
        check_wilson(81, 263, 0.2553, 0.3662);
        check_wilson(15, 148, 0.0624, 0.1605);
        check_wilson(0, 20, 0.0, 0.1611);
        check_wilson(1, 29, 0.0061, 0.1718);
        check_wilson(29, 29, 0.8830, 1.0);
        assert_eq!(wilson(0, 0).count, 0);
        assert!(!wilson(0, 0).above(-1.0));
    }

    #[test]
    fn the_bootstrap_agrees_with_the_normal_approximation() {
        let mut rng = Seed(1).rng();
        let values: Vec<f64> = (0..400).map(|_| 3.0 + rng.normal()).collect();
        let found = bootstrap_mean(&values, Seed(2));
        let half = Z_95 / 20.0;
        assert!((found.high - found.low - 2.0 * half).abs() < 0.03, "{found:?}");
        assert!(found.low < 3.0 && 3.0 < found.high);
        assert_eq!(found, bootstrap_mean(&values, Seed(2)));
        assert_eq!(bootstrap_mean(&[], Seed(2)).count, 0);
    }

    #[test]
    fn bootstrap_intervals_cover_the_truth_about_as_often_as_they_say() {
        let covered = (0..100).filter(|&trial| {
            let mut rng = Seed(9).at(trial).rng();
            let values: Vec<f64> = (0..60).map(|_| rng.uniform()).collect();
            let found = bootstrap_mean(&values, Seed(3).at(trial));
            found.low <= 0.5 && 0.5 <= found.high
        });
        assert!((86..=100).contains(&covered.count()));
    }

    #[test]
    fn pairing_removes_what_the_prompts_share() {
        let a: Vec<f64> = (0..50).map(|i| f64::from(i) + 0.1).collect();
        let b: Vec<f64> = (0..50).map(f64::from).collect();
        let found = paired_difference(&a, &b, Seed(4));
        assert!((found.estimate - 0.1).abs() < 1e-9 && found.above(0.09), "{found:?}");
    }

    #[test]
    fn a_tie_is_half_a_win() {
        let mut differences = vec![1.0; 30];
        differences.extend([-1.0; 10]);
        differences.extend([0.05; 60]);
        let found = win_rate(&differences, 0.1, Seed(5));
        assert_eq!((found.wins, found.losses, found.ties), (30, 10, 60));
        assert!((found.rate.estimate - 0.6).abs() < 1e-12);
        assert!((found.decided.estimate - 0.75).abs() < 1e-12);
        assert!(found.excludes_half(), "{found:?}");
        assert!(!win_rate(&[0.0; 20], 0.0, Seed(5)).excludes_half());
    }
}
