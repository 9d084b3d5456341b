//! Facts about documents, the mixture and the curves of training.

use super::figure;
use serde::{Deserialize, Serialize};

/// What cleaning dropped, rule by rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Funnel {
    /// The rules in the order in which they were applied, also those that dropped nothing.
    pub rules: Vec<Rule>,
    /// Documents left at the end.
    pub documents_kept: u64,
    /// Bytes of text left at the end.
    pub bytes_kept: u64,
}

/// One rule of the corpus stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// The step it belongs to: `read`, `dedup`, `quality`…
    pub stage: String,
    /// The rule's name.
    pub rule: String,
    /// Documents that reached it.
    pub documents_before: u64,
    /// Documents that passed it.
    pub documents_after: u64,
    /// What it dropped inside and with documents.
    pub dropped: Dropped,
    /// A few of the dropped texts.
    pub examples: Vec<Example>,
}

/// Amounts that a rule dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dropped {
    /// Bytes of text.
    pub bytes: u64,
    /// Single lines; 0 for rules on whole documents.
    pub lines: u64,
}

/// A dropped text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Example {
    /// Address or path of the document.
    pub document: String,
    /// The text, or its beginning.
    pub text: String,
}

/// What the model was to read and what it read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mixture {
    /// Tokens wanted in all.
    pub budget_tokens: u64,
    /// How often a document may be repeated at most; 0 where nothing says so.
    #[serde(with = "figure")]
    pub max_epochs: f64,
    /// The categories.
    pub shares: Vec<Share>,
}

/// One category of the mixture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Share {
    /// The category's name.
    pub category: String,
    /// Wanted share of the tokens, 0 to 1.
    #[serde(with = "figure")]
    pub wanted: f64,
    /// Reached share of the tokens, 0 to 1.
    #[serde(with = "figure")]
    pub reached: f64,
    /// Tokens, repeats counted.
    pub tokens: u64,
    /// How often the category's documents are read.
    #[serde(with = "figure")]
    pub epochs: f64,
    /// Bytes of text per token.
    #[serde(with = "figure")]
    pub bytes_per_token: f64,
}

/// The curves of training, a list of panels for each part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Curves {
    /// Pretraining: loss, held-out bits per byte…
    pub pretraining: Vec<Panel>,
    /// Supervised fine-tuning.
    pub sft: Vec<Panel>,
    /// The reward model.
    pub reward: Vec<Panel>,
    /// Direct preference optimisation: margins, loss.
    pub dpo: Vec<Panel>,
}

/// One chart: curves that share both axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Panel {
    /// What is shown: `loss`, `held-out bits per byte`…
    pub title: String,
    /// Unit of the vertical axis: `nats per token`, `bits per byte`… May be empty.
    pub unit: String,
    /// What the horizontal axis counts.
    pub over: Over,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Levels to compare with, drawn as lines across.
    pub references: Vec<Reference>,
}

/// What a horizontal axis counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Tokens read so far.
    #[default]
    TokensSeen,
    /// Updates made so far.
    Step,
}

/// One curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Curve {
    /// Its label.
    pub name: String,
    /// Pairs of (tokens or steps, value), in order. What is not finite leaves a gap and is told.
    #[serde(with = "figure::points")]
    pub points: Vec<(f64, f64)>,
}

/// A level to compare a curve with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reference {
    /// Its label.
    pub name: String,
    /// The level, in the panel's unit.
    #[serde(with = "figure")]
    pub value: f64,
}
