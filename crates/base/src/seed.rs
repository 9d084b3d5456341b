//! Randomness as a value that is handed down. A [`Seed`] gives other seeds by name and a stream of
//! numbers ([`Rng`]); the same seed and name give the same numbers in every version of the program.

use crate::digest::Hasher;
use serde::{Deserialize, Serialize};

/// Where a stream of random numbers starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of a part of the work, by name.
    pub fn derive(self, name: &str) -> Seed {
        Seed(Hasher::new().field(&self.0.to_le_bytes()).field(name.as_bytes()).finish().prefix())
    }

    /// The seed of the `index`-th part.
    pub fn at(self, index: u64) -> Seed {
        Seed(
            Hasher::new()
                .field(&self.0.to_le_bytes())
                .field(&index.to_le_bytes())
                .finish()
                .prefix(),
        )
    }

    /// The stream that starts here.
    pub fn rng(self) -> Rng {
        let mut state = self.0;
        Rng(std::array::from_fn(|_| split_mix(&mut state)))
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014), which spreads a seed over a larger state.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// xoshiro256++ (Blackman and Vigna 2019). Ours because its bits are part of a run's digest and must
/// not move with a dependency's version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..`bound` without bias (Lemire 2019). `bound` must be above 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "an empty range has no random element");
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// Standard normal (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            values.swap(i, self.below(i + 1));
        }
    }

    /// One element, or nothing from an empty slice.
    pub fn choose<'a, T>(&mut self, values: &'a [T]) -> Option<&'a T> {
        if values.is_empty() { None } else { Some(&values[self.below(values.len())]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_its_published_first_outputs() {
        let mut state = 1_234_567;
        let first = [split_mix(&mut state), split_mix(&mut state)];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn xoshiro_gives_its_published_first_outputs() {
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!(rng.next_u64(), 41_943_041);
        assert_eq!(rng.next_u64(), 58_720_359);
    }

    #[test]
    fn streams_differ_by_name_and_repeat_by_seed() {
        let seed = Seed(7);
        assert_eq!(seed.derive("a").rng(), seed.derive("a").rng());
        assert_ne!(seed.derive("a"), seed.derive("b"));
        assert_ne!(seed.at(0), seed.at(1));
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = Seed(3).rng();
        let mut counts = [0usize; 5];
        (0..10_000).for_each(|_| counts[rng.below(5)] += 1);
        assert!(counts.iter().all(|&c| (1_800..2_200).contains(&c)), "{counts:?}");
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut rng = Seed(5).rng();
        let draws: Vec<f64> = (0..20_000).map(|_| rng.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
