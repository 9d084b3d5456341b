//! A recipe: everything that people decide about a run, in one file. Each block belongs to the crate
//! that it turns; here they are put together, and what follows from the size dial is derived.

mod load;

pub use load::{Loaded, load};

use crate::stages::JudgeSettings;
use model::ModelConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A recipe.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    /// Name of the run: its directory under `runs/`.
    pub name: String,
    /// What the run is for, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// Where all randomness starts. The same recipe, inputs and seed give the same model.
    #[serde(default)]
    pub seed: u64,
    /// What goes in and how it is cleaned.
    pub corpus: corpus::Settings,
    /// The vocabulary.
    #[serde(default)]
    pub tokenizer: tokens::TokenizerSettings,
    /// How much of each category is read.
    #[serde(default)]
    pub mixture: tokens::MixtureSettings,
    /// The model's size.
    #[serde(default)]
    pub model: Size,
    /// Next-token prediction on the mixture.
    #[serde(default)]
    pub pretrain: train::Settings,
    /// Practice in copying during pretraining.
    #[serde(default)]
    pub copying: train::copying::Settings,
    /// Questions derived from the documents.
    #[serde(default)]
    pub questions: posttrain::derive::Settings,
    /// Learning to answer.
    #[serde(default)]
    pub sft: posttrain::sft::Settings,
    /// The alignment round.
    #[serde(default)]
    pub round: posttrain::round::Settings,
    /// The red team's campaign.
    #[serde(default)]
    pub redteam: judge::redteam::Settings,
    /// How the models are measured.
    #[serde(default)]
    pub judge: JudgeSettings,
    /// Thresholds for the release.
    #[serde(default)]
    pub gate: judge::gate::Settings,
    /// Reasons for the choices above, by block: they are copied into the log of decisions.
    #[serde(default)]
    pub reasons: BTreeMap<String, String>,
}

/// The model's size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Size {
    /// The dial: width is 64 times depth, and heads, feed-forward width, batch and learning rate follow.
    pub depth: usize,
    /// The longest sequence, in tokens.
    pub max_seq_len: usize,
    /// How the weights start.
    pub init: Init,
}

/// How the weights start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// With heads in the first two layers that copy from the context, and the rest random: small budgets
    /// do not bring such heads forth.
    #[default]
    Copying,
    /// All random.
    Random,
}

impl Default for Size {
    fn default() -> Self {
        Self { depth: 4, max_seq_len: 512, init: Init::default() }
    }
}

impl Size {
    /// The configuration that follows from the dial.
    pub fn config(&self, vocab_size: usize) -> ModelConfig {
        let config = ModelConfig::from_depth(self.depth, vocab_size, self.max_seq_len);
        match self.init {
            Init::Copying => config.for_copying(),
            Init::Random => config,
        }
    }

    /// Peak learning rate of pretraining: falls with the square root of the width, as the best rates
    /// of small models do (measured for depth 2 to 4, see LOG.md).
    fn learning_rate(&self) -> f64 {
        let width = self.config(256).d_model as f64;
        4e-3 * (192.0 / width).sqrt()
    }

    /// Tokens in a step of pretraining: grows with the depth, in whole sequences.
    fn global_batch_tokens(&self) -> usize {
        (1024 * self.depth.max(1)).next_multiple_of(self.max_seq_len)
    }
}

impl Recipe {
    /// Fills in what follows from the dial and was not given; `given` is the recipe as it was written.
    fn derive(&mut self, given: &toml::Table) {
        let pretrain = given.get("pretrain").and_then(toml::Value::as_table);
        let is_given = |key: &str| pretrain.is_some_and(|table| table.contains_key(key));
        if !is_given("learning-rate") {
            self.pretrain.learning_rate = self.model.learning_rate();
        }
        if !is_given("global-batch-tokens") {
            self.pretrain.global_batch_tokens = self.model.global_batch_tokens();
        }
        if !is_given("micro-batch-tokens") {
            self.pretrain.micro_batch_tokens = self.pretrain.global_batch_tokens.min(4096);
        }
    }

    /// Refuses what no run can be made of.
    fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty() || self.name.starts_with('.') || !self.name.chars().all(plain) {
            return Err(format!(
                "name is {:?}, expected letters, digits, '-', '_' and '.', since it names a directory",
                self.name
            ));
        }
        if self.corpus.sources.is_empty() {
            return Err("there is no [[corpus.sources]]: nothing to read".to_owned());
        }
        if self.model.depth > 64 || !(16..=65_536).contains(&self.model.max_seq_len) {
            return Err(format!(
                "model.depth is {} and model.max-seq-len {}, expected at most 64 and 16 to 65536",
                self.model.depth, self.model.max_seq_len
            ));
        }
        self.pretrain.check().map_err(|error| format!("pretrain.{error}"))
    }
}
