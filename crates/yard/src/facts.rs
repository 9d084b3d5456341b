//! What a report is made from: one tree that the program fills with what the stages wrote.
//!
//! Every part may be missing (`Default` is a run that has not begun). Figures may be NaN or infinite;
//! in JSON these are `null`, and `null` is read as NaN. Times of day are seconds since 1970, UTC.

mod data;
mod figure;
mod judged;

pub use data::{
    Curve, Curves, Dropped, Example, Funnel, Mixture, Over, Panel, Reference, Rule, Share,
};
pub use judged::{
    Answer, Baseline, Better, Bound, Check, Finding, Gate, Judgements, Measured, Metric, Probe,
    RedTeam, Release, Sample, Unit, Verdict, WinRate,
};

use base::Digest;
use serde::{Deserialize, Serialize};

/// All that a report says about a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// A sentence shown above everything, such as that these are test data. Usually empty.
    pub notice: String,
    /// The run as a whole.
    pub run: Run,
    /// The model's form, once it is known.
    pub model: Option<Model>,
    /// What it ran on: label and value, in the order of display.
    pub machine: Vec<Labelled>,
    /// The stages in their order, also those still to come.
    pub stages: Vec<Stage>,
    /// Every call that was made, in order of time.
    pub decisions: Vec<Decision>,
    /// What cleaning dropped.
    pub funnel: Option<Funnel>,
    /// What the model was to read and what it read.
    pub mixture: Option<Mixture>,
    /// The curves of training.
    pub curves: Curves,
    /// Prompts with the models' answers side by side.
    pub samples: Vec<Sample>,
    /// The models measured side by side.
    pub judgements: Option<Judgements>,
    /// The red-team campaign.
    pub red_team: Option<RedTeam>,
    /// The checks that decide about the release.
    pub gate: Option<Gate>,
    /// What became of the weights.
    pub release: Release,
    /// Where the run was cut off, in order of time.
    pub interruptions: Vec<Interruption>,
    /// The chain of manifests, from the sources to the released weights.
    pub lineage: Vec<Link>,
}

/// The run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Run {
    /// The run's name.
    pub name: String,
    /// One sentence for a stranger: what the model is meant to do. May be empty.
    pub purpose: String,
    /// When it was first started.
    pub started: Option<i64>,
    /// When its last stage ended; nothing while it goes on.
    pub ended: Option<i64>,
    /// Time spent working, over all starts, in seconds.
    #[serde(with = "figure::optional")]
    pub seconds: Option<f64>,
    /// The seed from which all randomness comes.
    pub seed: Option<u64>,
    /// Name and version of the program.
    pub program: String,
    /// The recipe's file name.
    pub recipe: String,
    /// The recipe as written.
    pub recipe_text: String,
    /// Digest of the last weights.
    pub weights_digest: Option<Digest>,
    /// The command that talks to the model. May be empty.
    pub chat_command: String,
}

/// The model's form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Learnt numbers in all.
    pub parameters: u64,
    /// Tokens read in pretraining, repeats counted.
    pub tokens_seen: u64,
    /// Layers, width, heads…: label and value, in the order of display.
    pub form: Vec<Labelled>,
}

/// A value with its label, both as shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Labelled {
    /// What it is.
    pub label: String,
    /// The value, with its unit.
    pub value: String,
}

impl Labelled {
    /// A label and what it stands for.
    pub fn new(label: impl Into<String>, value: impl ToString) -> Self {
        Self { label: label.into(), value: value.to_string() }
    }
}

/// One stage of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stage {
    /// Its name: `corpus`, `tokenizer`…
    pub name: String,
    /// How far it is.
    pub state: State,
    /// Time spent working on it, over all starts, in seconds.
    #[serde(with = "figure::optional")]
    pub seconds: Option<f64>,
    /// What came in.
    pub came_in: Vec<Count>,
    /// What went out.
    pub went_out: Vec<Count>,
    /// A sentence on what happened, such as an error. May be empty.
    pub note: String,
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not begun.
    #[default]
    NotYet,
    /// Begun and neither finished nor failed: running, or cut off.
    Unfinished,
    /// Finished.
    Done,
    /// Ended with an error.
    Failed,
}

/// A number of things.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Count {
    /// How many.
    pub number: u64,
    /// Of what, in the plural; `bytes` are shown as kB, MB or GB.
    pub of: String,
}

impl Count {
    /// So many of something.
    pub fn new(number: u64, of: impl Into<String>) -> Self {
        Self { number, of: of.into() }
    }
}

/// A call that was made along the way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Decision {
    /// When.
    pub when: Option<i64>,
    /// What kind of judge made it.
    pub who: Who,
    /// The person's, the rule's or the gate's name.
    pub name: String,
    /// The question: what was to be decided.
    pub what: String,
    /// What could have been chosen. May be empty.
    pub options: Vec<String>,
    /// What was chosen.
    pub chosen: String,
    /// Why. Empty where nobody said.
    pub reason: String,
}

/// Who made a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// Somebody who ran it.
    Person,
    /// A rule of the program or of the recipe.
    #[default]
    Rule,
    /// A gate with thresholds.
    Gate,
}

/// One time that the run was cut off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interruption {
    /// When it was noticed.
    pub when: Option<i64>,
    /// What cut it off: `killed`, `Ctrl-C`, `disk full`…
    pub cause: String,
    /// The stage at work.
    pub stage: String,
    /// What the run went on from. Empty while it has not gone on.
    pub resumed_from: String,
    /// Work done twice because of it, in seconds.
    #[serde(with = "figure::optional")]
    pub lost_seconds: Option<f64>,
}

/// One manifest in the lineage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// The stage's name, unique in the lineage.
    pub stage: String,
    /// The manifest's digest; nothing while the stage is not finished.
    pub digest: Option<Digest>,
    /// What the stage read.
    pub inputs: Vec<Input>,
}

/// One input of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Input {
    /// Its name in the manifest. Where no digest matches, an input with a stage's name comes from it.
    pub name: String,
    /// Its digest. An input whose digest is a manifest's in the lineage comes from that stage.
    pub digest: Option<Digest>,
    /// The stage that wrote it, where known; all others come from outside.
    pub from: Option<String>,
}
