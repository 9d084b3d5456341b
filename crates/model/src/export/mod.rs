//! Out to and in from other programs' formats.

mod hugging_face;
mod names;
mod parity;

pub use hugging_face::{hugging_face, import_hugging_face};
pub use parity::{ParityRecord, parity_record};
