//! Facts about how good the models are and what was decided from that.

use super::figure;
use base::Digest;
use serde::{Deserialize, Serialize};

/// One prompt with the models' answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sample {
    /// The task it belongs to. May be empty.
    pub task: String,
    /// What was asked.
    pub prompt: String,
    /// The right answer. Empty where there is none.
    pub expected: String,
    /// The answers, in the order of the models.
    pub answers: Vec<Answer>,
}

/// One model's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// The model: `base`, `SFT`, `aligned`…
    pub model: String,
    /// What it wrote.
    pub text: String,
    /// Grade, 0 (wrong) to 1 (right), where it was graded.
    #[serde(with = "figure::optional")]
    pub score: Option<f64>,
}

/// The models measured side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Judgements {
    /// The models, in the order in which one came from the other: `base`, `SFT`, `aligned`.
    pub models: Vec<String>,
    /// Coverage of all intervals, such as 0.95.
    #[serde(with = "figure::optional")]
    pub confidence: Option<f64>,
    /// What was measured, the most important first: the first two stand in the summary.
    pub metrics: Vec<Metric>,
    /// Comparisons of answers in pairs, the most important first.
    pub win_rates: Vec<WinRate>,
}

/// One thing that was measured for several models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metric {
    /// Its name: `held-out bits per byte`…
    pub name: String,
    /// Unit of all its values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// The values; a model without one is shown as not yet measured.
    pub values: Vec<Measured>,
    /// Simple ways of doing the same, to compare with: `zstd -19`, `3-gram`…
    pub baselines: Vec<Baseline>,
    /// The model whose value stands in the summary; the last measured one if nothing is said.
    pub headline: Option<String>,
    /// A sentence on how it was measured. May be empty.
    pub note: String,
}

/// Unit of a value, and with it how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A plain number.
    #[default]
    Number,
    /// A share, 0 to 1, written in per cent.
    Share,
    /// Bits per byte of text.
    BitsPerByte,
    /// Nats per token.
    Nats,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better.
    #[default]
    Higher,
    /// Less is better.
    Lower,
}

/// A model's value with its interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Measured {
    /// The model.
    pub model: String,
    /// The value.
    #[serde(with = "figure")]
    pub value: f64,
    /// Lower end of the interval.
    #[serde(with = "figure::optional")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(with = "figure::optional")]
    pub high: Option<f64>,
    /// How many items, bytes or pairs it rests on.
    pub count: Option<u64>,
}

/// A simple way of doing the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// Its value, in the metric's unit.
    #[serde(with = "figure")]
    pub value: f64,
}

/// How often one model's answer was preferred over another's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WinRate {
    /// The model that is asked about.
    pub model: String,
    /// The model it was compared with.
    pub against: String,
    /// Who judged: a person's name or `verifier: …`.
    pub judge: String,
    /// Pairs won.
    pub wins: u64,
    /// Pairs with no difference.
    pub ties: u64,
    /// Pairs lost.
    pub losses: u64,
    /// The win rate, 0 to 1, as the judge counts ties.
    #[serde(with = "figure")]
    pub rate: f64,
    /// Lower end of the interval.
    #[serde(with = "figure::optional")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(with = "figure::optional")]
    pub high: Option<f64>,
}

/// The red-team campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedTeam {
    /// Who attacks.
    pub attacker: String,
    /// Which model was attacked.
    pub model: String,
    /// With what access: prompts alone, the template, the weights…
    pub access: String,
    /// All probes, also those that never hit.
    pub probes: Vec<Probe>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Harmless questions that were refused, as a share of those asked.
    pub over_refusal: Option<Measured>,
}

/// One way of attacking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Probe {
    /// Its name.
    pub name: String,
    /// What it tries. May be empty.
    pub tries: String,
    /// Times tried.
    pub attempts: u64,
    /// Times it worked.
    pub hits: u64,
    /// Lower end of the interval of hits / attempts.
    #[serde(with = "figure::optional")]
    pub low: Option<f64>,
    /// Upper end of the interval of hits / attempts.
    #[serde(with = "figure::optional")]
    pub high: Option<f64>,
}

/// An attack that worked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Finding {
    /// Its identifier.
    pub id: String,
    /// The probe that found it.
    pub probe: String,
    /// What was asked.
    pub prompt: String,
    /// What the model answered.
    pub answer: String,
    /// The test that the next model must pass because of it. May be empty.
    pub test: String,
}

/// The checks that decide about the release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gate {
    /// The checks, in the order of the recipe.
    pub checks: Vec<Check>,
}

/// One threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// Unit of both values.
    pub unit: Unit,
    /// Which side of the threshold passes.
    pub bound: Bound,
    /// The threshold.
    #[serde(with = "figure")]
    pub threshold: f64,
    /// What was measured.
    #[serde(with = "figure")]
    pub measured: f64,
    /// The gate's answer.
    pub passed: bool,
}

/// Which side of a threshold passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The measured value must be the threshold or more.
    #[default]
    AtLeast,
    /// The measured value must be the threshold or less.
    AtMost,
}

/// What became of the weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Release {
    /// The gate's decision.
    pub verdict: Verdict,
    /// Digest of the released or the refused weights.
    pub digest: Option<Digest>,
    /// Directory of the released weights, or of the candidate that is kept.
    pub directory: String,
    /// The files of the release.
    pub files: Vec<String>,
}

/// Whether the weights are released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not decided.
    #[default]
    NotYet,
    /// All checks passed.
    Released,
    /// A check failed.
    Refused,
}
