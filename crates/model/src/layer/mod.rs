//! The layers of a block, each with its forward and backward pass side by side.

mod attention;
mod block;
mod feed_forward;

pub(crate) use attention::Attention;
pub(crate) use block::Block;
pub(crate) use feed_forward::FeedForward;

/// What layers need to know of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// Position of each row in its sequence.
    pub positions: &'a [u32],
    /// Where sequences start; empty while decoding, where every row has a sequence of its own.
    pub segments: &'a [u32],
}

impl Rows<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.positions.len()
    }
}
