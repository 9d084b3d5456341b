//! Which documents of a category are read, and how often.

use base::Seed;

/// How often each document is read, so that nearly `wanted` tokens are read in all and not more: whole
/// passes over all documents, and a last one over some, in an order drawn by the seed. Documents stay
/// whole; those longer than what is still wanted are passed over. Where all are, the shortest is read, so
/// that a category with a share is never left out.
pub(super) fn choose(lengths: &[u64], wanted: u64, seed: Seed) -> Vec<u32> {
    let unique: u64 = lengths.iter().sum();
    if unique == 0 || wanted == 0 {
        return vec![0; lengths.len()];
    }
    let passes = u32::try_from(wanted / unique).unwrap_or(u32::MAX);
    let mut times = vec![passes; lengths.len()];
    let mut rest = wanted % unique;
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    seed.rng().shuffle(&mut order);
    for index in order {
        if lengths[index] <= rest {
            times[index] += 1;
            rest -= lengths[index];
        }
    }
    let shortest = (0..lengths.len()).min_by_key(|&index| lengths[index]);
    if let (true, Some(shortest)) = (rest == wanted, shortest) {
        times[shortest] = 1;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(lengths: &[u64], times: &[u32]) -> u64 {
        lengths.iter().zip(times).map(|(length, &times)| length * u64::from(times)).sum()
    }

    #[test]
    fn passes_are_whole_and_the_last_one_comes_near() {
        let lengths = [10, 20, 30, 40];
        for wanted in 1..450 {
            let times = choose(&lengths, wanted, Seed(wanted));
            let passes = (wanted / 100) as u32;
            assert!(times.iter().all(|&t| t == passes || t == passes + 1), "{wanted}: {times:?}");
            let reached = reached(&lengths, &times);
            assert!(reached <= wanted.max(10) && wanted < reached + 40, "{wanted}: {times:?}");
        }
        // With many documents the rest is less than the shortest of them.
        let many: Vec<u64> = (0..1000).map(|i| 10 + i % 50).collect();
        assert!(5000 - reached(&many, &choose(&many, 5000, Seed(3))) < 10);
        assert_eq!(choose(&lengths, 300, Seed(1)), [3; 4]);
        assert_eq!(choose(&lengths, 0, Seed(1)), [0; 4]);
        assert_eq!(choose(&[], 10, Seed(1)), [0; 0]);
    }
}
