//! Numbers and comparisons for tests.

/// Reproducible values between -1 and 1.
pub(crate) fn values(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// The bits of each value, so that comparing sees signs of zero and not-a-numbers.
pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Panics unless each value is within `tolerance` of the expected one, absolute and relative.
#[track_caller]
pub(crate) fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (&f, &e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * (1.0 + e.abs()), "{what}[{i}]: {f}, expected {e}");
    }
}

/// Panics unless `gradient` is what central differences of `loss` give at `x`, for some elements
/// spread over `x`. `loss` must be a sum in double precision of single-precision values about one.
#[track_caller]
pub(crate) fn assert_gradient(
    what: &str,
    x: &[f32],
    gradient: &[f32],
    loss: impl Fn(&[f32]) -> f64,
) {
    assert_eq!(x.len(), gradient.len(), "{what}");
    for i in (0..x.len()).step_by(x.len().div_ceil(60).max(1)) {
        let at = |step: f32| {
            let mut moved = x.to_vec();
            moved[i] += step;
            (loss(&moved), f64::from(moved[i]))
        };
        let ((above, right), (below, left)) = (at(1e-2), at(-1e-2));
        let slope = (above - below) / (right - left);
        let found = f64::from(gradient[i]);
        assert!(
            (found - slope).abs() < 2e-3 * (1.0 + slope.abs()),
            "{what}[{i}]: {found}, {slope}"
        );
    }
}

/// The product with fixed weights: a loss whose gradient by `out` is `weights`.
pub(crate) fn weighted_sum(out: &[f32], weights: &[f32]) -> f64 {
    out.iter().zip(weights).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum()
}

/// All instruction sets of this processor, with one thread and with three.
pub(crate) fn pools() -> Vec<crate::Pool> {
    let levels = crate::cpu::level::Level::available();
    let with = |threads| levels.iter().map(move |&level| crate::Pool::with_level(threads, level));
    with(1).chain(with(3)).collect()
}
