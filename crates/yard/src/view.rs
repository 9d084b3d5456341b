//! What each section of the page says, ready to be written down by the templates.

pub mod judged;
pub mod made;
pub mod summary;

use serde::Serialize;

/// The beginning of a text, and how many characters were left out.
#[derive(Debug, Serialize)]
pub struct Excerpt {
    text: String,
    left_out: Option<String>,
}

/// Cuts a text after `most` characters.
pub fn excerpt(text: &str, most: usize) -> Excerpt {
    let all = text.chars().count();
    let left_out = (all > most).then(|| crate::format::count((all - most) as u64));
    Excerpt { text: text.chars().take(most).collect(), left_out }
}
