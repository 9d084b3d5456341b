//! The records that stages hand to each other. Each is one line of JSON or one row of Parquet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of text a document is: the mixture's categories.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// General knowledge: prose.
    General,
    /// Mathematics and reasoning.
    Math,
    /// Program code.
    Code,
    /// Languages other than the main one.
    Multilingual,
}

impl Category {
    /// All categories, in the order in which they are shown.
    pub const ALL: [Category; 4] = [Self::General, Self::Math, Self::Code, Self::Multilingual];

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Math => "math",
            Self::Code => "code",
            Self::Multilingual => "multilingual",
        }
    }
}

/// Which side of the split a document or an item is on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Read in training.
    Train,
    /// Never read in training; for measuring.
    HeldOut,
}

/// One text with where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Unique within the corpus: the digest of source and address, shortened.
    pub id: String,
    /// Name of the source in the recipe.
    pub source: String,
    /// Address, or path relative to the source's root.
    pub url: String,
    /// Category for the mixture.
    pub category: Category,
    /// Language: a natural one (`en`) or a programming one (`rust`).
    pub language: String,
    /// Licence as stated by the source.
    pub licence: String,
    /// When it was fetched or last changed: seconds since 1970, 0 where unknown.
    pub fetched: i64,
    /// Which side of the split it is on.
    pub split: Split,
    /// Title, empty where there is none.
    pub title: String,
    /// The text.
    pub text: String,
}

/// Who speaks in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Instructions that hold for the whole conversation.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name used in files and templates.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message by its speaker and content.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

/// A conversation to learn from, in the ecosystem's `messages` form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Unique within its file.
    pub id: String,
    /// The turns.
    pub messages: Vec<Message>,
}

/// A question with a known right answer: one row for training or measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Unique: the task, the thing asked about and a number.
    pub id: String,
    /// The task it belongs to.
    pub task: String,
    /// What it asks about. All items about one thing are on the same side of the split.
    pub subject: String,
    /// Which side of the split it is on.
    pub split: Split,
    /// The user's message.
    pub prompt: String,
    /// The right answer.
    pub answer: String,
}

/// How much better the chosen answer is (Llama 3, section 4.2.1).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rating {
    /// Hardly to be told apart.
    MarginallyBetter,
    /// A little better.
    SlightlyBetter,
    /// Better.
    Better,
    /// Much better.
    SignificantlyBetter,
}

/// A judgement between two answers to one prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preference {
    /// Unique within its file.
    pub id: String,
    /// The item that was asked.
    pub item: String,
    /// The turns before the answer.
    pub prompt: Vec<Message>,
    /// The better answer.
    pub chosen: String,
    /// The worse answer.
    pub rejected: String,
    /// How much better.
    pub rating: Rating,
    /// Who judged: a person's name, or `verifier:` and its name.
    pub judge: String,
}
