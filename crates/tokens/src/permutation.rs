//! A shuffle that is a function: where position i of 0..n goes, without storing n numbers.

use base::Seed;

/// A permutation of `0..length`: a balanced Feistel network of 6 rounds over the next power of 4, walked
/// until it falls inside (Black and Rogaway 2002, cycle walking).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    length: u64,
    half_bits: u32,
    keys: [u64; 6],
}

impl Permutation {
    pub(crate) fn new(length: u64, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let bits = u64::BITS - length.saturating_sub(1).leading_zeros();
        Self {
            length,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| rng.next_u64()),
        }
    }

    /// Where `position`, below the length, goes.
    pub(crate) fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.length);
        let mut value = position;
        loop {
            value = self.round_trip(value);
            if value < self.length {
                return value;
            }
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_has_its_own_place() {
        for length in [1, 2, 3, 4, 5, 16, 17, 1000, 4097] {
            let permutation = Permutation::new(length, Seed(length));
            let mut places: Vec<u64> = (0..length).map(|i| permutation.at(i)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..length).collect::<Vec<_>>());
        }
    }

    #[test]
    fn places_are_spread_evenly() {
        // Over many seeds, position 0 lands in each fifth of the range about equally often.
        let mut counts = [0; 5];
        for seed in 0..5000 {
            counts[Permutation::new(10, Seed(seed)).at(0) as usize / 2] += 1;
        }
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }
}
