//! What was wanted, what there was and what was reached.

use base::Category;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The account of a mixture. All counts are exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Tokens that the settings asked for.
    pub budget_tokens: u64,
    /// Ids are below this.
    pub vocab_size: usize,
    /// Each category with a share or with documents.
    pub categories: BTreeMap<Category, CategorySummary>,
    /// All that is read in training, with repeats and extra documents.
    pub train: SplitSummary,
    /// Extra documents, with their repeats; part of `train`.
    pub extra: SplitSummary,
    /// Held-out documents, by category.
    pub held_out: BTreeMap<Category, SplitSummary>,
    /// What a person should know: shares that were not reached, and why.
    pub notes: Vec<String>,
    /// Names of the training shards, without extension.
    pub train_shards: Vec<String>,
    /// Names of the held-out shards.
    pub held_out_shards: Vec<String>,
}

/// One category of the training documents. Tokens count the token that starts each document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CategorySummary {
    /// The share that the settings ask for, of 1.
    pub wanted_share: f64,
    /// Tokens that the share asks for.
    pub wanted_tokens: u64,
    /// Tokens asked for after what others lacked was redistributed.
    pub planned_tokens: u64,
    /// Tokens in the mixture.
    pub reached_tokens: u64,
    /// Share of the chosen tokens, extra documents apart.
    pub reached_share: f64,
    /// Documents in the mixture, with repeats.
    pub reached_documents: u64,
    /// Documents that there are.
    pub documents: u64,
    /// Documents that are read at least once.
    pub documents_read: u64,
    /// Bytes of the documents that there are.
    pub bytes: u64,
    /// Tokens of the documents that there are.
    pub tokens: u64,
    /// Tokens reached over tokens that there are: how often the category is read.
    pub epochs: f64,
    /// The cap on epochs.
    pub max_epochs: f64,
    /// Bytes of text per token, without the tokens that start documents.
    pub bytes_per_token: f64,
}

/// Documents with their size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSummary {
    /// Documents.
    pub documents: u64,
    /// Tokens, with the token that starts each document.
    pub tokens: u64,
    /// Bytes of text.
    pub bytes: u64,
}

impl SplitSummary {
    pub(super) fn add(&mut self, tokens: u64, bytes: u64, times: u64) {
        self.documents += times;
        self.tokens += tokens * times;
        self.bytes += bytes * times;
    }
}
