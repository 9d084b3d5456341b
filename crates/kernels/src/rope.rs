//! Rotary position embedding (Su et al. 2021), with halves paired as Hugging Face's `rotate_half`
//! does: element `i` turns with element `i + head_dim / 2`.

use crate::check::{ids_below, length};
use crate::pool::Pool;
use crate::reference;

/// Cosines and sines of every position's angles.
pub struct RopeTable {
    head_dim: usize,
    max_positions: usize,
    /// `[position, head_dim / 2]`.
    pub(crate) cosines: Vec<f32>,
    /// `[position, head_dim / 2]`.
    pub(crate) sines: Vec<f32>,
}

impl RopeTable {
    /// Angles `position * theta^(-2i / head_dim)`, computed in double precision.
    ///
    /// # Panics
    /// If `head_dim` is odd or zero.
    pub fn new(max_positions: usize, head_dim: usize, theta: f64) -> RopeTable {
        assert!(
            head_dim > 0 && head_dim.is_multiple_of(2),
            "RopeTable::new: head_dim is {head_dim}, expected even"
        );
        let half = head_dim / 2;
        let angles = (0..max_positions).flat_map(|position| {
            (0..half).map(move |i| {
                position as f64 * theta.powf(-2.0 * i as f64 / head_dim as f64)
            })
        });
        let (cosines, sines) = angles.map(|a| (a.cos() as f32, a.sin() as f32)).unzip();
        RopeTable { head_dim, max_positions, cosines, sines }
    }

    /// Length of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Number of positions it knows.
    pub fn max_positions(&self) -> usize {
        self.max_positions
    }
}

/// Which way to turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// As the layer does.
    Forward,
    /// Back: what gradients need.
    Backward,
}

/// Turns every head of every row of `x[t, heads * head_dim]` in place; row `t` stands at
/// `positions[t]`. The number of heads follows from the lengths.
///
/// # Panics
/// If `x` is not made of whole heads, or a position is beyond the table.
pub fn rope(
    _pool: &Pool,
    table: &RopeTable,
    rotation: Rotation,
    positions: &[u32],
    x: &mut [f32],
) {
    if positions.is_empty() {
        length("rope", "x", x, 0);
        return;
    }
    let heads = x.len() / (positions.len() * table.head_dim);
    length("rope", "x", x, positions.len() * heads * table.head_dim);
    ids_below("rope", "positions", positions, table.max_positions);
    reference::rope(table, rotation, positions, x);
}
