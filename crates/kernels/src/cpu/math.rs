//! Elementary functions as straight lines that the compiler turns into vectors.

/// e to the power of `x`, within two units in the last place; 0 and infinity beyond the range, and
/// not-a-number comes out as it came in. Method and coefficients as Cephes' `expf` (Moshier 1989).
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding this and taking it away rounds to a whole number, which stands in the low bits between.
    const ROUND: f32 = 12_582_912.0;
    // Under the first bound the result rounds to 0, above the second to infinity. Comparisons with a
    // not-a-number are false and let it through.
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let rest = whole.mul_add(-0.693_359_4, x);
    let rest = whole.mul_add(2.121_944_4e-4, rest);
    let mut p = 1.987_569_1e-4f32;
    p = p.mul_add(rest, 1.398_199_9e-3);
    p = p.mul_add(rest, 8.333_452e-3);
    p = p.mul_add(rest, 4.166_579_6e-2);
    p = p.mul_add(rest, 1.666_666_5e-1);
    p = p.mul_add(rest, 0.5);
    let p = p.mul_add(rest * rest, rest) + 1.0;
    // Two factors, because a single power of two would not reach the smallest and largest results.
    let power = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = power >> 1;
    p * power_of_two(half) * power_of_two(power.wrapping_sub(half))
}

#[inline(always)]
fn power_of_two(power: i32) -> f32 {
    f32::from_bits((power.wrapping_add(127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::level::Level;

    #[test]
    fn exp_is_right_over_its_whole_range() {
        let mut worst = 0.0f64;
        for i in -1_050_000..=890_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            let found = f64::from(exp(x));
            // The spacing of results: relative to them, but no finer than that of the smallest.
            let unit = (exact * f64::from(f32::EPSILON)).max(2f64.powi(-149));
            if exact < f64::from(f32::MAX) {
                worst = worst.max((found - exact).abs() / unit);
            } else {
                assert_eq!(found, f64::INFINITY, "{x}");
            }
        }
        assert!(worst < 1.1, "off by {worst} units");
    }

    #[test]
    fn exp_at_the_ends() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::MIN), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(f32::MAX), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan() && exp(-f32::NAN).is_nan());
    }

    #[test]
    fn exp_has_the_same_bits_in_every_instruction_set() {
        let x: Vec<f32> = (0..4096).map(|i| (i as f32 - 3000.0) * 0.0431).collect();
        let plain: Vec<u32> = x.iter().map(|&x| exp(x).to_bits()).collect();
        for level in Level::available() {
            let found = level.run(
                #[inline(always)]
                || x.iter().map(|&x| exp(x).to_bits()).collect::<Vec<u32>>(),
            );
            assert_eq!(found, plain, "{level:?}");
        }
    }
}
