//! Hand-made conversations: greeting, thanks, saying what one is, not knowing, refusing, keeping a
//! secret. They are few, so SFT repeats them ([`crate::sft::Settings::conversation_repeats`]).

use crate::{Result, jsonl};
use base::Conversation;
use std::path::Path;

/// The conversations that come with the program, one JSON object a line.
const HAND_MADE: &str = include_str!("hand-made.jsonl");

/// The conversations that come with the program.
///
/// # Errors
/// Never with the file that is compiled in; a test reads it.
pub fn hand_made() -> Result<Vec<Conversation>> {
    jsonl::parse(HAND_MADE.as_bytes(), Path::new("hand-made.jsonl"), FORM)
}

/// Reads conversations of one's own, in the same form.
///
/// # Errors
/// The file cannot be read, or a line is no conversation.
pub fn read(path: &Path) -> Result<Vec<Conversation>> {
    jsonl::read(path, FORM)
}

const FORM: &str = "a conversation with id and messages (role and content)";

#[cfg(test)]
mod tests {
    use super::*;
    use base::Role;
    use std::collections::BTreeSet;

    #[test]
    fn every_conversation_alternates_and_ends_with_the_assistant() {
        let all = hand_made().unwrap();
        assert!(all.len() >= 50, "{}", all.len());
        let ids: BTreeSet<&str> = all.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids.len(), all.len(), "an id is there twice");
        for conversation in &all {
            let turns: Vec<Role> = conversation.messages.iter().map(|m| m.role).collect();
            let turns = turns.strip_prefix(&[Role::System]).unwrap_or(&turns);
            let alternates = turns.chunks(2).all(|two| two == [Role::User, Role::Assistant]);
            assert!(alternates && !turns.is_empty(), "{}", conversation.id);
        }
    }

    #[test]
    fn no_secret_is_told() {
        let said = hand_made().unwrap().into_iter().flat_map(|c| c.messages);
        let said: Vec<String> =
            said.filter(|m| m.role == Role::Assistant).map(|m| m.content).collect();
        for secret in ["amber", "lantern", "4417", "mat", "orchid"] {
            assert!(said.iter().all(|text| !text.contains(secret)), "{secret}");
        }
    }
}
