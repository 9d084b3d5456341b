//! What a model must beat: an interpolated 3-gram model trained on the same tokens ([`Trigram`]), and
//! a strong compressor that has the read text as its dictionary ([`zstd_bits`]).

mod compress;
mod ngram;

pub use compress::{Compressed, zstd_bits};
pub use ngram::Trigram;
