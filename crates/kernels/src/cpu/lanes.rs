//! Sums over slices in one fixed order: sixteen lanes side by side, then a tree over the lanes.

/// Lanes of every such sum, whatever the instruction set.
pub(crate) const LANES: usize = 16;

/// The sum over a tree: halves, quarters and so on.
#[inline(always)]
pub(crate) fn tree_sum(lanes: [f32; LANES]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|i| lanes[i] + lanes[i + 8]);
    let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// The largest lane. Not-a-numbers are passed over where there is a number: what uses a maximum meets
/// them again in the values themselves.
#[inline(always)]
pub(crate) fn tree_max(lanes: [f32; LANES]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|i| larger(lanes[i], lanes[i + 8]));
    let four: [f32; 4] = std::array::from_fn(|i| larger(eight[i], eight[i + 4]));
    larger(larger(four[0], four[2]), larger(four[1], four[3]))
}

/// The larger of two numbers, `old` where `new` is not a number.
#[inline(always)]
pub(crate) fn larger(old: f32, new: f32) -> f32 {
    if new > old { new } else { old }
}

/// Sum of `a * b`.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for i in 0..LANES {
            lanes[i] = a[i].mul_add(b[i], lanes[i]);
        }
    }
    for (i, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[i] = a.mul_add(*b, lanes[i]);
    }
    tree_sum(lanes)
}

/// Sum of `a * b * c`.
#[inline(always)]
pub(crate) fn dot3(a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let (c_blocks, c_rest) = c.as_chunks::<LANES>();
    for ((a, b), c) in a_blocks.iter().zip(b_blocks).zip(c_blocks) {
        for i in 0..LANES {
            lanes[i] = (a[i] * b[i]).mul_add(c[i], lanes[i]);
        }
    }
    for (i, ((a, b), c)) in a_rest.iter().zip(b_rest).zip(c_rest).enumerate() {
        lanes[i] = (a * b).mul_add(*c, lanes[i]);
    }
    tree_sum(lanes)
}
