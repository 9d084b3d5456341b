//! Numeric loops on slices: one operation a file, forward and backward together.
//!
//! Every operation takes the [`Pool`] first, then shapes, then the slices it reads, then those it
//! writes. Matrices are row-major and without padding; a batch is flat (`t` rows, sequences one
//! after the other). Nothing large is allocated for a call: packing uses scratch that belongs to the
//! pool or to the thread and is reused.
//!
//! # What every operation promises
//! - The bits of a result do not depend on the number of threads, nor on how many rows the call has:
//!   every output element sums in one fixed order. A row gives the same bits alone and in a batch.
//! - Not-a-numbers and infinities come out; nothing is clamped away.
//! - Shapes are checked; a wrong one panics with a message that names the operand, what was expected
//!   and what was found.
//!
//! # How to add an operation
//! 1. Write the slow twin in [`reference`]: plain loops, in double precision where that is cheap.
//! 2. Write the operation in a file of its own, forward beside backward. Cut the work with
//!    [`Pool::run`] into pieces whose outputs do not overlap, and let no piece's result depend on
//!    how many pieces there are.
//! 3. Write loops over vectors in `cpu` (fixed arrays of sixteen lanes, compiled once for each
//!    instruction set and chosen at run time), and keep `unsafe` there or behind a `SAFETY` comment.
//! 4. Test it against its twin over odd shapes, its backward against finite differences, and its
//!    bits with one thread and with several, with one row and with many.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adamw;
mod add;
mod attention;
mod check;
mod cpu;
mod cross_entropy;
mod embedding;
mod matmul;
mod pool;
pub mod reference;
mod rms_norm;
mod rope;
mod sum_of_squares;
mod swiglu;
#[cfg(test)]
mod testing;

pub use adamw::{AdamW, Moments, adamw};
pub use add::add;
pub use attention::{
    AttentionGradients, AttentionShape, DecodeRow, SavedAttention, attention_backward,
    attention_decode, attention_forward,
};
pub use cross_entropy::{
    CrossEntropyShape, Score, ScoreGradients, Scores, cross_entropy_backward,
    cross_entropy_forward, cross_entropy_fused, score_logits,
};
pub use embedding::{embedding_backward, embedding_forward};
pub use matmul::{Dims, PackedMatrix, Write, matmul_nn, matmul_nt, matmul_tn};
pub use pool::Pool;
pub use rms_norm::{rms_norm_backward, rms_norm_forward};
pub use rope::{RopeTable, Rotation, rope};
pub use sum_of_squares::sum_of_squares;
pub use swiglu::{swiglu_backward, swiglu_forward};
