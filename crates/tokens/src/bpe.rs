//! Byte pair encoding of one word: the merges, applied lowest rank first, and leftmost first among equals.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A pair of adjacent token ids.
pub(crate) type Pair = (u32, u32);

/// For each pair that merges: its rank (lower goes first) and the id of the merged token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merges {
    by_pair: HashMap<Pair, (u32, u32)>,
}

const NONE: usize = usize::MAX;

impl Merges {
    /// Merges in the order of their ranks.
    pub(crate) fn new(merges: impl Iterator<Item = (Pair, u32)>) -> Self {
        let by_pair = merges.zip(0..).map(|((pair, id), rank)| (pair, (rank, id))).collect();
        Self { by_pair }
    }

    /// Merges the symbols of a word. Takes n log n time, so that a word of megabytes is no trouble.
    pub(crate) fn apply(&self, symbols: &mut Vec<u32>) {
        let length = symbols.len();
        if length < 2 {
            return;
        }
        // A doubly linked list over positions; a merged-away position points nowhere.
        let mut next: Vec<usize> =
            (1..=length).map(|i| if i == length { NONE } else { i }).collect();
        let mut previous: Vec<usize> =
            (0..length).map(|i| if i == 0 { NONE } else { i - 1 }).collect();
        let mut gone = vec![false; length];
        let mut queue = BinaryHeap::new();
        for left in 0..length - 1 {
            if let Some(&(rank, id)) = self.by_pair.get(&(symbols[left], symbols[left + 1])) {
                queue.push(Reverse((rank, left, id)));
            }
        }
        while let Some(Reverse((rank, left, id))) = queue.pop() {
            let right = next[left];
            let is_current = !gone[left]
                && right != NONE
                && self.by_pair.get(&(symbols[left], symbols[right])) == Some(&(rank, id));
            if !is_current {
                continue;
            }
            symbols[left] = id;
            gone[right] = true;
            next[left] = next[right];
            if next[left] != NONE {
                previous[next[left]] = left;
            }
            for start in [previous[left], left] {
                if start == NONE || next[start] == NONE {
                    continue;
                }
                if let Some(&(rank, id)) = self.by_pair.get(&(symbols[start], symbols[next[start]]))
                {
                    queue.push(Reverse((rank, start, id)));
                }
            }
        }
        let mut position = 0;
        symbols.retain(|_| {
            position += 1;
            !gone[position - 1]
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &[u32], expected: &[u32]) {
        // 1+2 -> 10, 2+3 -> 11, 10+3 -> 12, 1+1 -> 13
        let merges = [((1, 2), 10), ((2, 3), 11), ((10, 3), 12), ((1, 1), 13)];
        let mut symbols = word.to_vec();
        Merges::new(merges.into_iter()).apply(&mut symbols);
        assert_eq!(symbols, expected, "{word:?}");
    }

    #[test]
    fn lowest_rank_goes_first_and_leftmost_among_equals() {
        check(&[], &[]);
        check(&[3], &[3]);
        check(&[1, 2, 3], &[12]);
        check(&[2, 3, 1, 2], &[11, 10]);
        check(&[1, 1, 1], &[13, 1]);
        check(&[1, 1, 1, 2, 3], &[13, 12]);
    }

    #[test]
    fn a_very_long_word_takes_no_quadratic_time() {
        let mut symbols = vec![1; 1 << 20];
        Merges::new([((1, 1), 13)].into_iter()).apply(&mut symbols);
        assert_eq!(symbols.len(), 1 << 19);
    }
}
