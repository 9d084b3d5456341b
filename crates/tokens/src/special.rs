//! The special tokens: marks that no text can write. Their ids are the first ones, in this order.

/// A token that stands for structure and has no bytes of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Special {
    /// Starts every document and every conversation; predicted at a document's end.
    EndOfText,
    /// Header of the system's turn.
    System,
    /// Header of the user's turn.
    User,
    /// Header of the assistant's turn.
    Assistant,
    /// Closes a turn.
    EndOfTurn,
}

impl Special {
    /// All special tokens, by id.
    pub const ALL: [Special; 5] =
        [Self::EndOfText, Self::System, Self::User, Self::Assistant, Self::EndOfTurn];

    /// The token's id.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// How the token is written in a rendered template.
    pub const fn text(self) -> &'static str {
        match self {
            Self::EndOfText => "<|endoftext|>",
            Self::System => "<|system|>",
            Self::User => "<|user|>",
            Self::Assistant => "<|assistant|>",
            Self::EndOfTurn => "<|end|>",
        }
    }

    /// The special token that `text` starts with.
    pub(crate) fn at_start(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|special| text.starts_with(special.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_first_ones_and_no_text_starts_another() {
        for (i, special) in Special::ALL.into_iter().enumerate() {
            assert_eq!(special.id() as usize, i);
            assert_eq!(Special::at_start(special.text()), Some(special));
        }
        assert_eq!(Special::at_start("<|endo"), None);
    }
}
