//! Puts sequences of unequal length into rows of one capacity.

use std::collections::BTreeSet;

/// Which sequences share a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// The sequences of each row, by index, in the order in which they were put there.
    pub rows: Vec<Vec<usize>>,
    /// Sequences longer than a row, by index: never dropped silently.
    pub overflow: Vec<usize>,
}

/// Best-fit decreasing: the longest sequence first, each into the fullest row that still has room
/// (Johnson 1973; for packing documents Ding et al. 2024, arXiv 2404.10830). Equally long sequences go in
/// the order of their indices, equally full rows are taken in the order of their making.
pub fn pack(lengths: &[usize], capacity: usize) -> Packing {
    let mut packing = Packing::default();
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(lengths[index]), index));
    // Rows by (room left, number): the first with enough room is the fullest.
    let mut open: BTreeSet<(usize, usize)> = BTreeSet::new();
    for index in order {
        let length = lengths[index];
        if length > capacity {
            packing.overflow.push(index);
            continue;
        }
        let fit = open.range((length, 0)..).next().copied();
        let (room, row) = fit.unwrap_or((capacity, packing.rows.len()));
        match packing.rows.get_mut(row) {
            Some(sequences) => sequences.push(index),
            None => packing.rows.push(vec![index]),
        }
        open.remove(&(room, row));
        open.insert((room - length, row));
    }
    packing.overflow.sort_unstable();
    packing
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_published_example_packs_as_published() {
        let lengths = [5, 2, 3, 1];
        let packing = pack(&lengths, 4);
        let rows: Vec<Vec<usize>> =
            packing.rows.iter().map(|row| row.iter().map(|&i| lengths[i]).collect()).collect();
        // The row of 5 does not fit and is reported.
        assert_eq!((rows, packing.overflow), (vec![vec![3, 1], vec![2]], vec![0]));
    }

    #[test]
    fn nothing_and_empty_sequences_pack() {
        assert_eq!(pack(&[], 4), Packing::default());
        assert_eq!(pack(&[0, 0], 0).rows, [[0, 1]]);
    }

    proptest! {
        #[test]
        fn each_sequence_is_once_somewhere_and_no_row_is_too_long(
            lengths in proptest::collection::vec(0usize..40, 0..80), capacity in 1usize..40,
        ) {
            let packing = pack(&lengths, capacity);
            let mut all: Vec<usize> = packing.rows.concat();
            for row in &packing.rows {
                prop_assert!(row.iter().map(|&i| lengths[i]).sum::<usize>() <= capacity);
            }
            for &index in &packing.overflow {
                prop_assert!(lengths[index] > capacity);
            }
            all.extend(&packing.overflow);
            all.sort_unstable();
            prop_assert_eq!(all, (0..lengths.len()).collect::<Vec<_>>());
        }
    }
}
