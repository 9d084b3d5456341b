//! Rules that look at one document at a time.

mod blocklist;
mod code;
mod interface;
mod mask;
mod normalise;
mod quality;

pub(crate) use blocklist::Blocklist;
pub(crate) use interface::is_interface_page;
pub(crate) use mask::mask;
pub(crate) use normalise::normalise;

use crate::settings::Quality;
use base::{Category, Document};

/// A broken quality rule: its name in the ledger and what was measured.
pub(crate) type Verdict = (&'static str, String);

/// The first quality rule that a document breaks.
pub(crate) fn judge(document: &Document, settings: &Quality) -> Option<Verdict> {
    match document.category {
        Category::Code => code::judge(&document.text, &settings.code),
        Category::Math => quality::judge_words(&document.text, &settings.prose),
        Category::General | Category::Multilingual => {
            quality::judge(&document.text, document.language.starts_with("en"), &settings.prose)
        }
    }
}
