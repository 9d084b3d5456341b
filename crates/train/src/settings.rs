//! How a model is trained.

use crate::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// So many steps.
    Steps(u64),
    /// So many tokens read, rounded up to whole steps of `global-batch-tokens`.
    Tokens(u64),
    /// So many passes over the data, rounded up to whole steps.
    Epochs(f64),
}

/// How the learning rate goes after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Half a cosine from the peak to the minimum.
    #[default]
    Cosine,
    /// Warm-up, stable, decay: the peak until `decay-share` of the steps is left, then in a straight
    /// line to the minimum.
    Wsd,
    /// The peak throughout.
    Constant,
}

/// How a model is trained: length, batch, learning rate, optimizer, checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// How long: `{ steps = 300 }`, `{ tokens = 2_000_000 }` or `{ epochs = 2.0 }`.
    pub budget: Budget,
    /// Tokens in one step (one update of the weights). Rounded down to whole micro-batches, at least one.
    pub global_batch_tokens: usize,
    /// Tokens that go through the model at once. Decides the memory, and nothing else but rounding.
    pub micro_batch_tokens: usize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// How the learning rate goes after the warm-up: `cosine`, `wsd` or `constant`.
    pub schedule: Schedule,
    /// Share of the steps in which the learning rate rises from 0 to the peak.
    pub warmup_share: f64,
    /// Share of the steps in which `wsd` goes down.
    pub decay_share: f64,
    /// The lowest learning rate after the warm-up, as a share of the peak.
    pub min_learning_rate_share: f64,
    /// Decoupled weight decay of the matrices; the gains of the norms and the embedding have none.
    pub weight_decay: f64,
    /// Decay of the mean of the gradients (AdamW's first moment).
    pub beta1: f64,
    /// Decay of the mean of the squared gradients (AdamW's second moment).
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Gradients with a larger norm are scaled down to it.
    pub max_grad_norm: f64,
    /// Steps from one checkpoint to the next; one is saved at the end and on an interruption too.
    pub checkpoint_every: u64,
    /// How many checkpoints stay on the disk.
    pub keep: usize,
    /// Steps from one evaluation to the next; there is one at the end too.
    pub evaluate_every: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            budget: Budget::Epochs(1.0),
            global_batch_tokens: 8192,
            micro_batch_tokens: 2048,
            learning_rate: 1e-3,
            schedule: Schedule::Cosine,
            warmup_share: 0.05,
            decay_share: 0.2,
            min_learning_rate_share: 0.1,
            weight_decay: 0.1,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            max_grad_norm: 1.0,
            checkpoint_every: 100,
            keep: 2,
            evaluate_every: 100,
        }
    }
}

impl Settings {
    /// Refuses values with which no training is possible.
    ///
    /// # Errors
    /// [`Error::Setting`] with the setting's name, its value and what it may be.
    pub fn check(&self) -> Result<(), Error> {
        let check = |name, value: f64, allowed: bool, expected| {
            let found = value.to_string();
            if allowed { Ok(()) } else { Err(Error::Setting { name, found, expected }) }
        };
        let share = |name, value: f64| {
            check(name, value, (0.0..=1.0).contains(&value), "a share from 0 to 1")
        };
        let positive = |name, value: f64| {
            check(name, value, value > 0.0 && value.is_finite(), "a number above 0")
        };
        let below_one = |name, value: f64| {
            check(name, value, (0.0..1.0).contains(&value), "a number from 0 to below 1")
        };
        match self.budget {
            Budget::Steps(n) => positive("budget.steps", n as f64)?,
            Budget::Tokens(n) => positive("budget.tokens", n as f64)?,
            Budget::Epochs(n) => positive("budget.epochs", n)?,
        }
        positive("global-batch-tokens", self.global_batch_tokens as f64)?;
        positive("micro-batch-tokens", self.micro_batch_tokens as f64)?;
        positive("learning-rate", self.learning_rate)?;
        share("warmup-share", self.warmup_share)?;
        share("decay-share", self.decay_share)?;
        share("min-learning-rate-share", self.min_learning_rate_share)?;
        check(
            "weight-decay",
            self.weight_decay,
            self.weight_decay >= 0.0 && self.weight_decay.is_finite(),
            "a number from 0",
        )?;
        below_one("beta1", self.beta1)?;
        below_one("beta2", self.beta2)?;
        positive("epsilon", self.epsilon)?;
        positive("max-grad-norm", self.max_grad_norm)?;
        positive("checkpoint-every", self.checkpoint_every as f64)?;
        positive("keep", self.keep as f64)?;
        positive("evaluate-every", self.evaluate_every as f64)
    }

    /// Micro-batches in one step.
    pub fn micro_batches(&self) -> usize {
        (self.global_batch_tokens / self.micro_batch_tokens.max(1)).max(1)
    }

    /// How many steps the budget gives; `steps_per_epoch` is the objective's.
    pub fn steps(&self, steps_per_epoch: f64) -> u64 {
        match self.budget {
            Budget::Steps(steps) => steps,
            Budget::Tokens(tokens) => {
                tokens.div_ceil((self.micro_batches() * self.micro_batch_tokens.max(1)) as u64)
            }
            Budget::Epochs(epochs) => (epochs * steps_per_epoch).ceil().max(1.0) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_passes_its_own_check() {
        Settings::default().check().unwrap();
    }

    #[test]
    fn impossible_settings_are_named() {
        let check = |change: fn(&mut Settings), name: &str| {
            let mut settings = Settings::default();
            change(&mut settings);
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        };
        check(|s| s.learning_rate = f64::NAN, "learning-rate is NaN");
        check(|s| s.learning_rate = -1.0, "learning-rate is -1");
        check(|s| s.warmup_share = 1.5, "warmup-share");
        check(|s| s.beta2 = 1.0, "beta2");
        check(|s| s.budget = Budget::Epochs(0.0), "budget.epochs");
        check(|s| s.micro_batch_tokens = 0, "micro-batch-tokens");
        check(|s| s.checkpoint_every = 0, "checkpoint-every");
    }

    #[test]
    fn budgets_give_whole_steps() {
        let check = |budget, expected| {
            let settings = Settings {
                budget,
                global_batch_tokens: 1000,
                micro_batch_tokens: 300,
                ..Settings::default()
            };
            assert_eq!(settings.steps(2.5), expected, "{budget:?}");
        };
        check(Budget::Steps(7), 7);
        check(Budget::Tokens(1), 1);
        check(Budget::Tokens(900), 1);
        check(Budget::Tokens(901), 2);
        check(Budget::Epochs(1.0), 3);
        check(Budget::Epochs(0.1), 1);
        check(Budget::Epochs(2.0), 5);
    }

    #[test]
    fn settings_are_read_as_they_are_written_in_a_recipe() {
        let json = serde_json::json!({"budget": {"tokens": 2_000_000}, "schedule": "wsd"});
        let settings: Settings = serde_json::from_value(json).unwrap();
        assert_eq!(settings.budget, Budget::Tokens(2_000_000));
        assert_eq!(settings.schedule, Schedule::Wsd);
        let mistyped = serde_json::json!({"learning-rat": 0.1});
        let error = serde_json::from_value::<Settings>(mistyped).unwrap_err().to_string();
        assert!(error.contains("learning-rat"), "{error}");
    }
}
