//! What may go wrong between documents and batches.

use base::{Category, FsError, Interrupted};
use std::path::PathBuf;

/// A failure of this crate, with its evidence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The work was asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The documents cannot be read.
    #[error("cannot read the documents")]
    Documents(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The vocabulary has no room for the special tokens and the bytes.
    #[error("vocab-size is {found}; expected {least} to {most}")]
    VocabSize {
        /// What the settings say.
        found: usize,
        /// Special tokens and bytes.
        least: usize,
        /// The most that is supported.
        most: usize,
    },
    /// There is no text to learn from.
    #[error("no documents to {purpose}: the corpus has none for training")]
    NoDocuments {
        /// What they were for.
        purpose: &'static str,
    },
    /// A `tokenizer.json` that this program cannot use.
    #[error(
        "{path} is not a tokenizer that this program can use: expected {expected}, found {found}"
    )]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// Shares that are no shares.
    #[error(
        "the share of {category:?} is {share}; expected a number above 0 or 0, and a sum above 0"
    )]
    Share {
        /// The category.
        category: Category,
        /// Its share.
        share: f64,
    },
    /// A setting outside its range.
    #[error("{setting} is {found}; expected {expected}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// What it says.
        found: f64,
        /// What it may say.
        expected: &'static str,
    },
    /// A category cannot fill its share, and the settings forbid to go on without.
    #[error(
        "{category:?} should give {wanted} tokens, but has {available} ({unique} read at most {max_epochs} times); \
         give it more documents, a smaller share or more epochs, or set shortfall to redistribute"
    )]
    Shortfall {
        /// The category.
        category: Category,
        /// Tokens that its share asks for.
        wanted: u64,
        /// Tokens that it can give.
        available: u64,
        /// Tokens of its documents, each once.
        unique: u64,
        /// How often each may be read.
        max_epochs: f64,
    },
    /// A shard is missing, truncated or altered.
    #[error("{path} is corrupted: expected {expected}, found {found}")]
    Shard {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// No shard of that name.
    #[error("{directory} has no token shard {prefix}.idx or {prefix}-00000.idx")]
    NoShards {
        /// Where they were looked for.
        directory: PathBuf,
        /// Their name.
        prefix: String,
    },
    /// Fewer tokens than one window takes.
    #[error("{directory}/{prefix} holds {found} tokens; one window takes {needed}")]
    TooFewTokens {
        /// The shards' directory.
        directory: PathBuf,
        /// The shards' name.
        prefix: String,
        /// Tokens in them.
        found: u64,
        /// Tokens in one window.
        needed: u64,
    },
    /// A document too long for a shard's 32-bit lengths.
    #[error("a document of {tokens} tokens is too long for a shard")]
    DocumentTooLong {
        /// Its tokens.
        tokens: usize,
    },
    /// The chat template does not parse or render.
    #[error("the chat template cannot be rendered")]
    Template(#[from] minijinja::Error),
    /// The chat template gives no way to tell the assistant's text from the rest.
    #[error("the chat template {problem}: {template:?}")]
    TemplateUnusable {
        /// What is wrong.
        problem: &'static str,
        /// The template.
        template: String,
    },
}
