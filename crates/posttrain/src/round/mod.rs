//! One alignment round as in Llama 3 (arXiv 2407.21783, section 4.1), each step a function with an output
//! directory of its own:
//!
//! ```text
//! sample   rollouts   several answers to training prompts from the model that the round starts from
//! judge    verify     grades and preferences with ratings, by a verifier that knows the right answers
//! reward   reward     a reward model from the clear pairs
//! reject   reject     the reward model's choice for each prompt
//! tune     tune       fine-tuning on the chosen answers
//! dpo      dpo        direct preference optimisation from there
//! record   record     what the round started from and why, and what each step gave
//! ```

pub mod dpo;
pub mod prompts;
pub mod record;
pub mod reject;
pub mod reward;
pub mod rollouts;
pub mod tune;
pub mod verify;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a round goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Share of the training subjects that the fine-tuning before the round leaves out, for the round to
    /// ask about, 0 to 1.
    pub prompts_share: f64,
    /// Sampling answers.
    pub rollouts: rollouts::Settings,
    /// Judging them.
    pub judge: verify::Settings,
    /// Training the reward model.
    pub reward: reward::Settings,
    /// Choosing answers with it.
    pub reject: reject::Settings,
    /// Fine-tuning on the chosen answers.
    pub tune: tune::Settings,
    /// Learning the preferences.
    pub dpo: dpo::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prompts_share: 0.2,
            rollouts: rollouts::Settings::default(),
            judge: verify::Settings::default(),
            reward: reward::Settings::default(),
            reject: reject::Settings::default(),
            tune: tune::Settings::default(),
            dpo: dpo::Settings::default(),
        }
    }
}
