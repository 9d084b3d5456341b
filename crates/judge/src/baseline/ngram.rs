//! An interpolated 3-gram model with modified Kneser-Ney smoothing (Chen and Goodman 1998, section 3,
//! equations 27 to 29), over token ids.
//!
//! Counts live in sorted arrays with one 64-bit key an n-gram, so training is a sort and results do
//! not depend on hashing. The lowest order interpolates with the uniform distribution over the whole
//! vocabulary, so every token has a probability and they sum to 1.

use crate::Error;

/// Bits of a key that one token takes.
const ID_BITS: u32 = 21;
/// Stands before the first token of a sequence.
const NOTHING: u64 = (1 << ID_BITS) - 1;

/// The distribution after one context: where its followers lie, and what is left for the lower order.
#[derive(Clone, Copy, Debug)]
struct Context {
    /// First follower in the order's arrays.
    start: u32,
    /// One past the last follower.
    end: u32,
    /// Sum of the followers' counts.
    total: f64,
    /// Probability given to the lower order.
    backoff: f64,
}

/// One order of the model: n-grams sorted by key, their counts, and the contexts they begin with.
#[derive(Debug, Default)]
struct Order {
    /// Followers (the last token of each n-gram), grouped by context, ascending within one.
    followers: Vec<u32>,
    /// Counts of the n-grams (at the lower orders: of distinct tokens before them).
    counts: Vec<u32>,
    /// Keys of the contexts, ascending.
    context_keys: Vec<u64>,
    /// The contexts.
    contexts: Vec<Context>,
    /// What is taken from a count of 1, of 2 and of 3 or more.
    discounts: [f64; 3],
}

impl Order {
    /// From n-gram keys with their counts, in ascending order.
    fn new(grams: &[(u64, u32)]) -> Self {
        let mut order = Self { discounts: discounts(grams), ..Self::default() };
        let mut start = 0;
        for group in grams.chunk_by(|a, b| a.0 >> ID_BITS == b.0 >> ID_BITS) {
            let total: f64 = group.iter().map(|gram| f64::from(gram.1)).sum();
            let taken: f64 = group.iter().map(|gram| order.discount(gram.1)).sum();
            let end = start + group.len() as u32;
            order.context_keys.push(group[0].0 >> ID_BITS);
            order.contexts.push(Context { start, end, total, backoff: taken / total });
            order.followers.extend(group.iter().map(|gram| (gram.0 & NOTHING) as u32));
            order.counts.extend(group.iter().map(|gram| gram.1));
            start = end;
        }
        order
    }

    fn discount(&self, count: u32) -> f64 {
        self.discounts[(count.clamp(1, 3) - 1) as usize]
    }

    /// Equation 27: the discounted share of the token plus the lower order's share.
    fn probability(&self, context: u64, token: u32, lower: f64) -> f64 {
        let Ok(found) = self.context_keys.binary_search(&context) else { return lower };
        let context = self.contexts[found];
        let (start, end) = (context.start as usize, context.end as usize);
        let own = self.followers[start..end].binary_search(&token).map_or(0.0, |at| {
            let count = self.counts[start + at];
            f64::from(count) - self.discount(count)
        });
        own / context.total + context.backoff * lower
    }
}

/// The discounts from the counts of counts (Chen and Goodman, equation 29). Where a small corpus
/// leaves one undefined, the absolute discount of 0.75 stands in.
fn discounts(grams: &[(u64, u32)]) -> [f64; 3] {
    let mut n = [0f64; 5];
    grams.iter().filter(|gram| gram.1 <= 4).for_each(|gram| n[gram.1 as usize] += 1.0);
    let y = n[1] / (n[1] + 2.0 * n[2]);
    std::array::from_fn(|i| {
        let count = (i + 1) as f64;
        let value = count - (count + 1.0) * y * n[i + 2] / n[i + 1];
        if value.is_finite() && value > 0.0 && value <= count { value } else { 0.75 }
    })
}

/// A trained 3-gram model.
#[derive(Debug)]
pub struct Trigram {
    vocab_size: usize,
    /// By context of two tokens, one token and none.
    orders: [Order; 3],
    tokens: u64,
}

impl Trigram {
    /// Counts the sequences (one a document, each given once: repeats would spoil the counts of
    /// counts). The first token of a sequence is context alone, as it is for the language model.
    ///
    /// # Errors
    /// A token id outside the vocabulary, a vocabulary above 2^21 - 1, or no sequence of two tokens.
    pub fn train<S: AsRef<[u32]>>(
        sequences: impl IntoIterator<Item = S>,
        vocab_size: usize,
    ) -> Result<Self, Error> {
        if vocab_size as u64 >= NOTHING {
            return Err(Error::Vocabulary {
                token: vocab_size as u64,
                vocab_size: NOTHING as usize,
            });
        }
        let mut keys = Vec::new();
        for sequence in sequences {
            let sequence = sequence.as_ref();
            if let Some(&token) = sequence.iter().find(|&&token| token as usize >= vocab_size) {
                return Err(Error::Vocabulary { token: token.into(), vocab_size });
            }
            let at = |i: usize| sequence.get(i).map_or(NOTHING, |&token| u64::from(token));
            let key =
                |i: usize| at(i.wrapping_sub(2)) << (2 * ID_BITS) | at(i - 1) << ID_BITS | at(i);
            keys.extend((1..sequence.len()).map(key));
        }
        if keys.is_empty() {
            return Err(Error::NothingToJudge { what: "training tokens for the 3-gram model" });
        }
        let tokens = keys.len() as u64;
        let three = count(keys);
        let two = continuations(&three, 2);
        let one = continuations(&two, 1);
        let orders = [Order::new(&three), Order::new(&two), Order::new(&one)];
        Ok(Self { vocab_size, orders, tokens })
    }

    /// How many tokens were counted.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Probability of a token after the two before it (`None` before the first of a sequence).
    pub fn probability(&self, before: [Option<u32>; 2], token: u32) -> f64 {
        let [first, second] = before.map(|id| id.map_or(NOTHING, u64::from));
        let uniform = 1.0 / self.vocab_size as f64;
        let one = self.orders[2].probability(0, token, uniform);
        let two = self.orders[1].probability(second, token, one);
        self.orders[0].probability(first << ID_BITS | second, token, two)
    }

    /// Log-probabilities, in nats, of the tokens of a sequence but the first.
    pub fn log_probs(&self, sequence: &[u32]) -> Vec<f64> {
        let before = |i: usize| [i.checked_sub(2).map(|j| sequence[j]), Some(sequence[i - 1])];
        (1..sequence.len()).map(|i| self.probability(before(i), sequence[i]).ln()).collect()
    }
}

/// Distinct keys in ascending order with how often they occur.
fn count(mut keys: Vec<u64>) -> Vec<(u64, u32)> {
    keys.sort_unstable();
    keys.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}

/// The n-grams without their first token, counted by how many distinct tokens precede them.
fn continuations(grams: &[(u64, u32)], length: u32) -> Vec<(u64, u32)> {
    let mask = (1u64 << (length * ID_BITS)) - 1;
    count(grams.iter().map(|gram| gram.0 & mask).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use std::collections::{BTreeMap, BTreeSet};

    /// Sequences in which the next token depends on the two before it.
    fn corpus(seed: u64, sequences: usize, vocab_size: usize) -> Vec<Vec<u32>> {
        let mut rng = Seed(seed).rng();
        let mut next = |a: u32, b: u32| {
            if rng.uniform() < 0.6 {
                (a * 7 + b * 3 + 1) % vocab_size as u32
            } else {
                (rng.uniform().powi(3) * vocab_size as f64) as u32
            }
        };
        let sequence = |_| {
            let mut out = vec![0, 1];
            (0..60).for_each(|i| out.push(next(out[i], out[i + 1])));
            out
        };
        (0..sequences).map(sequence).collect()
    }

    #[test]
    fn probabilities_sum_to_one_after_any_context() {
        let model = Trigram::train(corpus(1, 20, 40), 50).unwrap();
        let contexts = [[None, None], [None, Some(0)], [Some(0), Some(1)], [Some(3), Some(9)]];
        let unseen = [[Some(49), Some(49)], [Some(1), Some(48)], [None, Some(47)]];
        for before in contexts.into_iter().chain(unseen) {
            let sum: f64 = (0..50).map(|token| model.probability(before, token)).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{before:?}: {sum}");
            assert!((0..50).all(|token| model.probability(before, token) > 0.0));
        }
    }

    /// The same model by the book: maps of slices, nothing packed.
    fn by_the_book(sequences: &[Vec<u32>], vocab_size: usize, before: [u32; 2], token: u32) -> f64 {
        let mut three: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for sequence in sequences {
            let mut padded = vec![u32::MAX];
            padded.extend(sequence);
            padded.windows(3).for_each(|w| *three.entry(w.to_vec()).or_default() += 1);
        }
        let shorten = |grams: &BTreeMap<Vec<u32>, u32>| {
            let distinct: BTreeSet<&Vec<u32>> = grams.keys().collect();
            let mut out: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
            distinct.iter().for_each(|gram| *out.entry(gram[1..].to_vec()).or_default() += 1);
            out
        };
        let two = shorten(&three);
        let one = shorten(&two);
        let mut probability = 1.0 / vocab_size as f64;
        for (grams, context) in [(&one, &before[2..]), (&two, &before[1..]), (&three, &before[..])]
        {
            let as_pairs: Vec<(u64, u32)> = grams.values().map(|&count| (0, count)).collect();
            let d = discounts(&as_pairs);
            let followers: Vec<_> = grams.iter().filter(|g| g.0.starts_with(context)).collect();
            let total: u32 = followers.iter().map(|g| *g.1).sum();
            if total == 0 {
                continue;
            }
            let taken: f64 = followers.iter().map(|g| d[(*g.1).min(3) as usize - 1]).sum();
            let own = followers
                .iter()
                .find(|g| g.0.last() == Some(&token))
                .map_or(0.0, |g| f64::from(*g.1) - d[(*g.1).min(3) as usize - 1]);
            probability = (own + taken * probability) / f64::from(total);
        }
        probability
    }

    #[test]
    fn packed_arrays_agree_with_the_plain_maps() {
        let sequences = corpus(2, 12, 20);
        let model = Trigram::train(&sequences, 22).unwrap();
        for (a, b) in [(0, 1), (1, 8), (4, 4), (21, 3), (21, 21)] {
            for token in 0..22 {
                let expected = by_the_book(&sequences, 22, [a, b], token);
                let found = model.probability([Some(a), Some(b)], token);
                assert!((found - expected).abs() < 1e-12, "{a} {b} {token}: {found} {expected}");
            }
        }
    }

    #[test]
    fn it_beats_the_unigram_and_comes_near_the_truth() {
        let (train, held_out) = (corpus(3, 3_000, 30), corpus(4, 50, 30));
        let model = Trigram::train(&train, 30).unwrap();
        let scores: Vec<f64> =
            held_out.iter().flat_map(|s| model.log_probs(s)[1..].to_vec()).collect();
        let loss = -scores.iter().sum::<f64>() / scores.len() as f64;
        // Entropy of the source: 0.6 on one token, the rest spread with density of u^3.
        let share = |i: u32| {
            let root = |x: u32| (f64::from(x) / 30.0).cbrt();
            root(i + 1) - root(i)
        };
        let entropy = |favoured: u32| -> f64 {
            let p = |i| 0.4 * share(i) + if i == favoured { 0.6 } else { 0.0 };
            (0..30).map(|i| -p(i) * p(i).ln()).sum()
        };
        let truth = (0..30).map(entropy).sum::<f64>() / 30.0;
        assert!((loss - truth).abs() < 0.06, "loss {loss}, entropy about {truth}");
    }

    #[test]
    fn wrong_input_is_refused() {
        assert!(Trigram::train([vec![1, 5]], 5).is_err());
        assert!(Trigram::train([vec![1]], 5).is_err());
        assert!(Trigram::train(Vec::<Vec<u32>>::new(), 5).is_err());
        assert!(Trigram::train([vec![0, 1]], 1 << 21).is_err());
        assert!(Trigram::train([vec![0, 1]], 2).unwrap().log_probs(&[]).is_empty());
    }
}
