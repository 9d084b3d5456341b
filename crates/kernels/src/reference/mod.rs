//! Naive twins of the operations: plain loops on one thread, for tests and timings.
//!
//! [`matmul`] fixes the order of summation that the fast kernels keep bit for bit; the others compute
//! in double precision and are what the fast ones are compared with.

mod attention;
mod cross_entropy;
mod elementwise;
mod matmul;

pub use attention::{attention_backward, attention_forward};
pub use cross_entropy::{cross_entropy_backward, cross_entropy_forward};
pub use elementwise::{
    adamw, embedding_backward, rms_norm_backward, rms_norm_forward, rope, sum_of_squares,
    swiglu_backward, swiglu_forward,
};
pub use matmul::{Layout, matmul};
