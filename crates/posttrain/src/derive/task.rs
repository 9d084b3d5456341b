//! The kinds of question, and the words in which each is asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of question about a quoted passage.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Which item is described, or which of two does a given thing: the item's path.
    WhichItem,
    /// What a function returns: the type in its signature.
    Returns,
    /// What a function takes: the arguments in its signature.
    Argument,
    /// What a function does: the passage's sentence on it.
    Purpose,
    /// What may go wrong: the passage's sentence on it, or that there is none.
    Failure,
    /// Which title a section has: the passage's first line.
    Section,
    /// Which of the passage's sentences speaks of a thing: that sentence.
    Quote,
    /// To repeat a sentence: the sentence. It trains copying itself.
    Repeat,
    /// Which language a piece of code is in.
    Fence,
    /// Arithmetic in words, answered with its steps.
    Arithmetic,
}

impl Task {
    /// All tasks, in the order in which they are reported.
    pub const ALL: [Task; 10] = [
        Self::WhichItem,
        Self::Returns,
        Self::Argument,
        Self::Purpose,
        Self::Failure,
        Self::Section,
        Self::Quote,
        Self::Repeat,
        Self::Fence,
        Self::Arithmetic,
    ];

    /// Whether it only exercises copying: such items are learned from, and never measured with.
    pub fn is_drill(self) -> bool {
        self == Self::Repeat
    }

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::WhichItem => "which-item",
            Self::Returns => "returns",
            Self::Argument => "argument",
            Self::Purpose => "purpose",
            Self::Failure => "failure",
            Self::Section => "section",
            Self::Quote => "quote",
            Self::Repeat => "repeat",
            Self::Fence => "fence",
            Self::Arithmetic => "arithmetic",
        }
    }

    /// The ways to ask. They come after the passage; a trailing colon or `of` takes the thing asked for.
    pub(super) fn phrasings(self) -> &'static [&'static str] {
        match self {
            Self::WhichItem => {
                &["Which item is this?", "What is this item called?", "Name this item."]
            }
            Self::Returns => {
                &["Which type does it return?", "What is its return type?", "Name its return type."]
            }
            Self::Argument => {
                &["Which arguments does it take?", "What are its arguments?", "Name its arguments."]
            }
            Self::Purpose => &["What does it do?", "What is it for?", "Say what it does."],
            Self::Failure => &["What may go wrong?", "How can it fail?", "When does it fail?"],
            Self::Section => &[
                "What is the title of this section?",
                "Which section is this?",
                "Name this section.",
            ],
            Self::Quote => {
                &["Which sentence speaks of", "Quote the sentence about", "Which sentence mentions"]
            }
            Self::Fence => {
                &["Which language is this?", "What language is this code in?", "Name the language."]
            }
            Self::Repeat => &["Repeat this.", "Say this again.", "Copy this."],
            Self::Arithmetic => &[],
        }
    }
}

/// The ways to ask which of several items does a given thing, which follows on a line of its own.
pub(super) const WHICH_OF_TWO: [&str; 3] =
    ["Which item does this?", "Which of these does this?", "Name the item that does this."];

/// The answer where a passage says nothing about failures.
pub(super) const NOT_SAID: &str = "The passage does not say.";
