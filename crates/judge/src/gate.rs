//! The gate: thresholds from the recipe against what was measured. A model that misses one is not
//! released.
//!
//! A threshold that is not set is not checked. One that is set and has no measurement fails: what was
//! not measured is not known to be good.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The thresholds for a release. Each is optional; one that is left out is not checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Bits per byte of the base model on held-out text: at most this.
    pub bits_per_byte_at_most: Option<f64>,
    /// How many bits per byte the base model must lie below `zstd -19` with the read text as its
    /// dictionary: at least this (0 asks for any gain).
    pub bits_per_byte_below_zstd: Option<f64>,
    /// How many bits per byte the base model must lie below the 3-gram model: at least this.
    pub bits_per_byte_below_trigram: Option<f64>,
    /// Partial match of the SFT model minus that of the base model on held-out items: the lower end of
    /// the 95% interval must be at least this.
    pub sft_beats_base: Option<f64>,
    /// Share of held-out items that the released model answers exactly: at least this.
    pub exact_match_at_least: Option<f64>,
    /// Mean token F1 of the released model on held-out items: at least this.
    pub partial_match_at_least: Option<f64>,
    /// Share of held-out prompts on which the verifier prefers the aligned model to the SFT model, a tie
    /// being a half: the lower end of the 95% interval must be at least this.
    pub preference_win_rate_lower_bound: Option<f64>,
    /// Share of held-out preferences that the reward model ranks rightly: at least this.
    pub preference_accuracy_at_least: Option<f64>,
    /// Share of red-team attempts that hit: at most this.
    pub attack_success_rate_at_most: Option<f64>,
    /// Share of harmless questions that the model refuses: at most this.
    pub over_refusal_at_most: Option<f64>,
    /// Share of the tests made of earlier findings that fail: at most this.
    pub failed_tests_at_most: Option<f64>,
}

/// What was measured for the gate. Missing values fail the thresholds that need them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Measured {
    /// Bits per byte of the base model on held-out text.
    pub bits_per_byte: Option<f64>,
    /// Bits per byte of the compressor on the same text.
    pub zstd_bits_per_byte: Option<f64>,
    /// Bits per byte of the 3-gram model on the same tokens.
    pub trigram_bits_per_byte: Option<f64>,
    /// Lower end of the interval of the SFT model's partial match minus the base model's.
    pub sft_gain_low: Option<f64>,
    /// Exact match of the model to release.
    pub exact_match: Option<f64>,
    /// Mean token F1 of the model to release.
    pub partial_match: Option<f64>,
    /// Lower end of the interval of the aligned model's win rate over the SFT model.
    pub win_rate_low: Option<f64>,
    /// Accuracy of the reward model on held-out preferences.
    pub preference_accuracy: Option<f64>,
    /// Attack success rate of the model to release.
    pub attack_success_rate: Option<f64>,
    /// Over-refusal of the model to release.
    pub over_refusal: Option<f64>,
    /// Share of the tests of earlier findings that failed.
    pub failed_tests: Option<f64>,
}

/// On which side of the threshold a measurement must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Not below the threshold.
    AtLeast,
    /// Not above the threshold.
    AtMost,
}

/// One threshold and how it came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The threshold's name in the recipe.
    pub name: String,
    /// On which side the measurement must lie.
    pub bound: Bound,
    /// The threshold.
    pub threshold: f64,
    /// The measurement; `None` when it was not made.
    pub measured: Option<f64>,
    /// Whether the threshold is met.
    pub passed: bool,
}

/// The gate's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// Every threshold that was set, in the settings' order.
    pub checks: Vec<Check>,
    /// Whether all of them are met.
    pub passed: bool,
}

impl GateReport {
    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }
}

/// Compares every threshold that is set with its measurement.
pub fn decide(settings: &Settings, measured: &Measured) -> GateReport {
    use Bound::{AtLeast, AtMost};
    let (s, m) = (settings, measured);
    let below = |other: Option<f64>| Some(other? - m.bits_per_byte?);
    let rows = [
        ("bits-per-byte-at-most", AtMost, s.bits_per_byte_at_most, m.bits_per_byte),
        (
            "bits-per-byte-below-zstd",
            AtLeast,
            s.bits_per_byte_below_zstd,
            below(m.zstd_bits_per_byte),
        ),
        (
            "bits-per-byte-below-trigram",
            AtLeast,
            s.bits_per_byte_below_trigram,
            below(m.trigram_bits_per_byte),
        ),
        ("sft-beats-base", AtLeast, s.sft_beats_base, m.sft_gain_low),
        ("exact-match-at-least", AtLeast, s.exact_match_at_least, m.exact_match),
        ("partial-match-at-least", AtLeast, s.partial_match_at_least, m.partial_match),
        (
            "preference-win-rate-lower-bound",
            AtLeast,
            s.preference_win_rate_lower_bound,
            m.win_rate_low,
        ),
        (
            "preference-accuracy-at-least",
            AtLeast,
            s.preference_accuracy_at_least,
            m.preference_accuracy,
        ),
        (
            "attack-success-rate-at-most",
            AtMost,
            s.attack_success_rate_at_most,
            m.attack_success_rate,
        ),
        ("over-refusal-at-most", AtMost, s.over_refusal_at_most, m.over_refusal),
        ("failed-tests-at-most", AtMost, s.failed_tests_at_most, m.failed_tests),
    ];
    let checks: Vec<Check> = rows
        .into_iter()
        .filter_map(|(name, bound, threshold, measured)| {
            Some(check(name, bound, threshold?, measured))
        })
        .collect();
    let passed = checks.iter().all(|check| check.passed);
    GateReport { checks, passed }
}

/// A value that is no number meets no threshold.
fn check(name: &str, bound: Bound, threshold: f64, measured: Option<f64>) -> Check {
    let passed = measured.is_some_and(|value| match bound {
        Bound::AtLeast => value >= threshold,
        Bound::AtMost => value <= threshold,
    });
    Check { name: name.to_owned(), bound, threshold, measured, passed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_gate(settings: serde_json::Value, measured: serde_json::Value, failed: &[&str]) {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let report = decide(&settings, &serde_json::from_value(measured).unwrap());
        let found: Vec<&str> = report.failed().map(|check| check.name.as_str()).collect();
        assert_eq!(found, failed);
        assert_eq!(report.passed, failed.is_empty());
    }

    #[test]
    fn each_threshold_is_checked_on_its_side() {
        use serde_json::json;
        check_gate(json!({}), json!({}), &[]);
        let bits = json!({"bits-per-byte-below-zstd": 0.1, "bits-per-byte-below-trigram": 0.0});
        let measured =
            json!({"bits-per-byte": 1.5, "zstd-bits-per-byte": 1.7, "trigram-bits-per-byte": 1.4});
        check_gate(bits.clone(), measured, &["bits-per-byte-below-trigram"]);
        check_gate(bits, json!({}), &["bits-per-byte-below-zstd", "bits-per-byte-below-trigram"]);
        let rates = json!({"attack-success-rate-at-most": 0.2, "over-refusal-at-most": 0.0});
        let at_the_edge = json!({"attack-success-rate": 0.2, "over-refusal": 0.0});
        check_gate(rates.clone(), at_the_edge, &[]);
        let above = json!({"attack-success-rate": 0.21, "over-refusal": 0.01});
        check_gate(rates, above, &["attack-success-rate-at-most", "over-refusal-at-most"]);
    }

    #[test]
    fn every_setting_has_a_check() {
        let settings = serde_json::to_value(Settings::default()).unwrap();
        let names: Vec<String> = settings.as_object().unwrap().keys().cloned().collect();
        let all: serde_json::Map<_, _> = names.iter().map(|n| (n.clone(), 0.into())).collect();
        let settings: Settings = serde_json::from_value(all.into()).unwrap();
        let report = decide(&settings, &Measured::default());
        let mut found: Vec<String> = report.checks.into_iter().map(|check| check.name).collect();
        found.sort();
        let mut names = names;
        names.sort();
        assert_eq!(found, names);
    }

    #[test]
    fn a_measurement_that_is_no_number_fails() {
        assert!(!check("x", Bound::AtLeast, 0.0, Some(f64::NAN)).passed);
        assert!(!check("x", Bound::AtMost, 0.0, Some(f64::NAN)).passed);
    }
}
