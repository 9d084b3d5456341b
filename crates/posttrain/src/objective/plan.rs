//! Which examples go through the model together. Examples of unequal length are put into micro-batches
//! once; every epoch goes through the micro-batches in another order. All of it is a pure function of
//! lengths, seed and step, so a resumed run needs no stored position.

use base::Seed;

/// The micro-batches of a set of examples, and their order in every epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    micro_batches: Vec<Vec<usize>>,
    per_step: usize,
    max_tokens: usize,
    seed: Seed,
}

impl Plan {
    /// Puts examples of these lengths, in tokens, into micro-batches of at most `micro_batch_tokens`
    /// (an example that is longer alone), and `per_step` of these into a step.
    pub fn new(lengths: &[usize], micro_batch_tokens: usize, per_step: usize, seed: Seed) -> Self {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        seed.derive("pack").rng().shuffle(&mut order);
        let mut micro_batches: Vec<Vec<usize>> = Vec::new();
        let mut filled = usize::MAX;
        let mut max_tokens = 0;
        for example in order {
            let length = lengths[example];
            match micro_batches.last_mut() {
                Some(last) if filled.saturating_add(length) <= micro_batch_tokens => {
                    last.push(example);
                    filled += length;
                }
                _ => {
                    micro_batches.push(vec![example]);
                    filled = length;
                }
            }
            max_tokens = max_tokens.max(filled);
        }
        Self { micro_batches, per_step: per_step.max(1), max_tokens, seed }
    }

    /// The most tokens in one micro-batch.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Steps in one pass over the examples; the last may have fewer micro-batches.
    pub fn steps_per_epoch(&self) -> usize {
        self.micro_batches.len().div_ceil(self.per_step)
    }

    /// The micro-batches of a step, counted from 0: indices of the examples in each.
    pub fn step(&self, step: u64) -> Vec<Vec<usize>> {
        let steps = self.steps_per_epoch().max(1) as u64;
        let mut order: Vec<usize> = (0..self.micro_batches.len()).collect();
        self.seed.derive("epoch").at(step / steps).rng().shuffle(&mut order);
        let first = (step % steps) as usize * self.per_step;
        let chosen = order.iter().skip(first).take(self.per_step);
        chosen.map(|&index| self.micro_batches[index].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_example_that_is_too_long_goes_alone() {
        let plan = Plan::new(&[100, 1, 1], 10, 1, Seed(1));
        assert_eq!(plan.max_tokens(), 100);
        let all: Vec<Vec<usize>> = (0..2).flat_map(|step| plan.step(step)).collect();
        assert!(all.contains(&vec![0]), "{all:?}");
    }

    #[test]
    fn nothing_gives_steps_without_work() {
        let plan = Plan::new(&[], 10, 2, Seed(1));
        assert_eq!((plan.steps_per_epoch(), plan.max_tokens()), (0, 0));
        assert!(plan.step(3).is_empty());
    }

    proptest! {
        #[test]
        fn every_epoch_reads_every_example_once(
            lengths in prop::collection::vec(1usize..30, 1..60),
            per_step in 1usize..5,
            epoch in 0u64..4,
        ) {
            let plan = Plan::new(&lengths, 40, per_step, Seed(9));
            let steps = plan.steps_per_epoch() as u64;
            let mut read: Vec<usize> = Vec::new();
            for step in epoch * steps..(epoch + 1) * steps {
                for micro_batch in plan.step(step) {
                    prop_assert!(micro_batch.iter().map(|&i| lengths[i]).sum::<usize>() <= 40);
                    read.extend(micro_batch);
                }
            }
            read.sort_unstable();
            prop_assert_eq!(read, (0..lengths.len()).collect::<Vec<_>>());
        }
    }
}
