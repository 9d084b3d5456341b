//! What the model reads: documents of each category in chosen shares, counted in tokens.
//!
//! The mixture is apart from cleaning. [`mix`] encodes every document, chooses as many of each category
//! as its share of the budget asks for (whole passes over a small category are epochs, and capped),
//! shuffles them all and writes them as [`shards`](crate::shards). Held-out documents go to shards of
//! their own, once each. [`Summary`] says what was wanted and what was reached.
//!
//! ```text
//! documents -> unique tokens by category -> wanted tokens (apportion) -> chosen documents -> train-*.bin
//!          \-> held-out documents -----------------------------------------------------> held-out-*.bin
//! ```

mod apportion;
mod choose;
mod documents;
mod mix;
mod summary;

pub(crate) use apportion::apportion;
pub use documents::{DocumentRow, Origin, read_rows, read_text};
pub use mix::{Extra, HELD_OUT, MixJob, TRAIN, mix};
pub use summary::{CategorySummary, SplitSummary, Summary};

use crate::Error;
use base::Category;
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What the model reads in pretraining, and how much of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MixtureSettings {
    /// The share of each category in tokens: a preset's name (`llama-3`), or a table such as
    /// `{ general = 0.6, code = 0.4 }`. Shares are relative to their sum.
    pub shares: Shares,
    /// Tokens to choose.
    pub budget_tokens: u64,
    /// How often the documents of a category may be read. Up to 4 times is nearly as good as new text
    /// (Muennighoff et al. 2023, arXiv 2305.16264).
    pub max_epochs: f64,
    /// Other caps for single categories, such as `{ math = 8.0 }`.
    pub category_max_epochs: BTreeMap<Category, f64>,
    /// What happens when a category has too few tokens for its share, or none.
    pub shortfall: Shortfall,
    /// Tokens in one shard file, about.
    pub shard_tokens: u64,
}

impl Default for MixtureSettings {
    fn default() -> Self {
        Self {
            shares: Shares::Preset(Preset::Llama3),
            budget_tokens: 4_000_000,
            max_epochs: 4.0,
            category_max_epochs: BTreeMap::new(),
            shortfall: Shortfall::Redistribute,
            shard_tokens: 1 << 26,
        }
    }
}

/// What happens when a category cannot fill its share within its epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shortfall {
    /// The others give the rest, in the ratio of their shares. The summary says so.
    Redistribute,
    /// The mixture is smaller than the budget.
    Shrink,
    /// It is an error.
    Refuse,
}

/// The share of each category.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(untagged)]
pub enum Shares {
    /// Named shares.
    Preset(Preset),
    /// Shares by category; those not named have none.
    Table(BTreeMap<Category, f64>),
}

/// Shares that were published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Llama 3 (arXiv 2407.21783, section 3.1.2): general knowledge 50%, mathematics and reasoning 25%,
    /// code 17%, multilingual 8%.
    #[serde(rename = "llama-3")]
    Llama3,
}

impl Shares {
    /// The shares, summing to 1. Categories with a share of 0 are left out.
    ///
    /// # Errors
    /// A share is negative or no number, or none is above 0.
    pub fn resolve(&self) -> Result<BTreeMap<Category, f64>, Error> {
        let shares = match self {
            Self::Preset(Preset::Llama3) => BTreeMap::from([
                (Category::General, 0.50),
                (Category::Math, 0.25),
                (Category::Code, 0.17),
                (Category::Multilingual, 0.08),
            ]),
            Self::Table(shares) => shares.clone(),
        };
        let sum: f64 = shares.values().sum();
        let is_bad = |share: f64| !share.is_finite() || share < 0.0 || sum <= 0.0;
        if let Some((&category, &share)) = shares.iter().find(|&(_, &share)| is_bad(share)) {
            return Err(Error::Share { category, share });
        }
        if shares.is_empty() {
            return Err(Error::Share { category: Category::General, share: 0.0 });
        }
        Ok(shares
            .into_iter()
            .filter(|&(_, share)| share > 0.0)
            .map(|(c, s)| (c, s / sum))
            .collect())
    }
}

/// By hand, so that a mistake in the table or a mistyped preset is named instead of "did not match any
/// variant".
impl<'de> Deserialize<'de> for Shares {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SharesVisitor;
        impl<'de> Visitor<'de> for SharesVisitor {
            type Value = Shares;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a preset's name or a table of shares by category")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Shares, E> {
                Preset::deserialize(serde::de::value::StrDeserializer::new(name))
                    .map(Shares::Preset)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shares, A::Error> {
                BTreeMap::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(Shares::Table)
            }
        }
        deserializer.deserialize_any(SharesVisitor)
    }
}

impl MixtureSettings {
    /// How often documents of a category may be read.
    pub fn max_epochs(&self, category: Category) -> f64 {
        self.category_max_epochs.get(&category).copied().unwrap_or(self.max_epochs)
    }

    fn check(&self) -> Result<(), Error> {
        let caps = self.category_max_epochs.values().chain([&self.max_epochs]);
        if let Some(&found) = caps.into_iter().find(|cap| !cap.is_finite() || **cap <= 0.0) {
            return Err(Error::Setting {
                setting: "max-epochs",
                found,
                expected: "a number above 0",
            });
        }
        if self.budget_tokens == 0 {
            return Err(Error::Setting {
                setting: "budget-tokens",
                found: 0.0,
                expected: "1 or more",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_documented() {
        let settings: MixtureSettings = toml::from_str(
            "shares = { general = 3, code = 1.0, math = 0 }\nbudget-tokens = 10\n\
             category-max-epochs = { code = 8.0 }\nshortfall = \"refuse\"",
        )
        .unwrap();
        let shares = settings.shares.resolve().unwrap();
        assert_eq!(shares, BTreeMap::from([(Category::General, 0.75), (Category::Code, 0.25)]));
        assert_eq!(
            (settings.max_epochs(Category::Code), settings.max_epochs(Category::Math)),
            (8.0, 4.0)
        );
        let preset: MixtureSettings = toml::from_str("shares = \"llama-3\"").unwrap();
        assert_eq!(preset, MixtureSettings::default());
        let text = toml::to_string(&settings).unwrap();
        assert_eq!(toml::from_str::<MixtureSettings>(&text).unwrap(), settings);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("shares = \"llama-4\"", "unknown variant `llama-4`, expected `llama-3`"),
            ("shares = { prose = 1.0 }", "unknown variant `prose`"),
            ("shares = 3", "a preset's name or a table"),
            ("budget = 3", "unknown field `budget`"),
        ] {
            let error = toml::from_str::<MixtureSettings>(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for shares in ["{}", "{ code = 0 }", "{ code = -1.0 }", "{ code = nan, math = 1 }"] {
            let settings: MixtureSettings = toml::from_str(&format!("shares = {shares}")).unwrap();
            assert!(settings.shares.resolve().is_err(), "{shares}");
        }
    }
}
