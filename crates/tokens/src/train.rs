//! Learns the merges: the most frequent adjacent pair of the counted words becomes a token, again and
//! again (Sennrich, Haddow and Birch 2016, algorithm 1).
//!
//! The result depends on the counts alone: of pairs that are equally frequent, the one with the lowest
//! ids goes first, as in the `tokenizers` crate. Counts are kept up to date word by word.

use crate::alphabet::{byte_ids, bytes_by_id};
use crate::bpe::Pair;
use crate::special::Special;
use crate::split::words;
use base::{Interrupted, Observer, Progress, Stop};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

/// Longer words (base64, rulers of dashes) are left out of training: they say little, and each merge
/// inside one costs its length.
const LONGEST_WORD: usize = 256;

/// What training gives: the bytes of each token by id, and the merges by rank with the ids they make.
pub(crate) struct Learned {
    pub pieces: Vec<Vec<u8>>,
    pub merges: Vec<(Pair, u32)>,
}

/// Counts the words of some texts. Sorted, so that the order of the texts is forgotten.
pub(crate) fn count_words(texts: &[String], threads: usize) -> BTreeMap<String, u64> {
    let mut counters: Vec<HashMap<&str, u64>> = vec![HashMap::new(); threads.max(1)];
    let pieces: Vec<&[String]> = texts.chunks(16).collect();
    crate::parallel::map(&pieces, &mut counters, |counter, texts| {
        for word in texts.iter().flat_map(|text| words(text)) {
            if word.len() <= LONGEST_WORD {
                *counter.entry(word).or_default() += 1;
            }
        }
    });
    let mut counts = BTreeMap::new();
    for (word, count) in counters.into_iter().flatten() {
        match counts.get_mut(word) {
            Some(total) => *total += count,
            None => drop(counts.insert(word.to_owned(), count)),
        }
    }
    counts
}

struct Word {
    symbols: Vec<u32>,
    count: u64,
}

/// The state of training: the words as they are cut now, and where each pair is.
struct Trainer {
    words: Vec<Word>,
    counts: HashMap<Pair, u64>,
    /// Indices of words that held the pair when it was noted; a word may have lost it since.
    places: HashMap<Pair, Vec<u32>>,
    /// Candidates by count, then by lowest ids. Counts here may be out of date, and then are too high.
    queue: BinaryHeap<(u64, Reverse<Pair>)>,
}

impl Trainer {
    fn new(counts: &BTreeMap<String, u64>) -> Self {
        let ids = byte_ids();
        let words = counts
            .iter()
            .map(|(word, &count)| Word {
                symbols: word.bytes().map(|b| ids[usize::from(b)]).collect(),
                count,
            })
            .collect();
        let mut trainer = Self {
            words,
            counts: HashMap::new(),
            places: HashMap::new(),
            queue: BinaryHeap::new(),
        };
        for index in 0..trainer.words.len() {
            trainer.note(index);
        }
        trainer.queue =
            trainer.counts.iter().map(|(&pair, &count)| (count, Reverse(pair))).collect();
        trainer
    }

    /// Adds a word's pairs to the counts and places.
    fn note(&mut self, index: usize) {
        let word = &self.words[index];
        for pair in word.symbols.windows(2) {
            let pair = (pair[0], pair[1]);
            *self.counts.entry(pair).or_default() += word.count;
            let places = self.places.entry(pair).or_default();
            if places.last() != Some(&(index as u32)) {
                places.push(index as u32);
            }
        }
    }

    /// The most frequent pair and its count.
    fn best(&mut self) -> Option<(Pair, u64)> {
        loop {
            let (count, Reverse(pair)) = self.queue.pop()?;
            match self.counts.get(&pair).copied().unwrap_or(0) {
                0 => {}
                now if now == count => return Some((pair, count)),
                now => self.queue.push((now, Reverse(pair))),
            }
        }
    }

    /// Replaces a pair by its token in every word.
    fn merge(&mut self, pair: Pair, id: u32) {
        let mut places = self.places.remove(&pair).unwrap_or_default();
        places.sort_unstable();
        places.dedup();
        let mut raised = BTreeSet::new();
        for index in places {
            self.merge_in(index as usize, pair, id, &mut raised);
        }
        self.counts.remove(&pair);
        for pair in raised {
            let count = self.counts.get(&pair).copied().unwrap_or(0);
            self.queue.push((count, Reverse(pair)));
        }
    }

    /// Cuts one word anew and moves its counts. Notes the pairs with the new token in `raised`.
    fn merge_in(&mut self, index: usize, pair: Pair, id: u32, raised: &mut BTreeSet<Pair>) {
        let count = self.words[index].count;
        let old = std::mem::take(&mut self.words[index].symbols);
        let mut new = Vec::with_capacity(old.len());
        let mut at = 0;
        while at < old.len() {
            if old[at] == pair.0 && old.get(at + 1) == Some(&pair.1) {
                new.push(id);
                at += 2;
            } else {
                new.push(old[at]);
                at += 1;
            }
        }
        if new.len() < old.len() {
            for pair in old.windows(2) {
                if let Some(total) = self.counts.get_mut(&(pair[0], pair[1])) {
                    *total = total.saturating_sub(count);
                }
            }
            for pair in new.windows(2) {
                let pair = (pair[0], pair[1]);
                *self.counts.entry(pair).or_default() += count;
                if pair.0 == id || pair.1 == id {
                    self.places.entry(pair).or_default().push(index as u32);
                    raised.insert(pair);
                }
            }
        }
        self.words[index].symbols = new;
    }
}

/// Learns merges until there are `vocab_size` tokens, or no pair is seen `min_count` times.
pub(crate) fn learn(
    counts: &BTreeMap<String, u64>,
    vocab_size: usize,
    min_count: u64,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Learned, Interrupted> {
    let mut pieces: Vec<Vec<u8>> = vec![Vec::new(); Special::ALL.len()];
    pieces.extend(bytes_by_id().into_iter().map(|byte| vec![byte]));
    let mut ids: HashMap<Vec<u8>, u32> = pieces.iter().cloned().zip(0..).collect();
    let mut merges = Vec::new();
    let mut trainer = Trainer::new(counts);
    while pieces.len() < vocab_size {
        stop.check()?;
        let Some((pair, count)) = trainer.best() else { break };
        if count < min_count {
            break;
        }
        let piece =
            [pieces[pair.0 as usize].as_slice(), pieces[pair.1 as usize].as_slice()].concat();
        // Two merges may end in the same bytes; they are then the same token.
        let id = *ids.entry(piece.clone()).or_insert(pieces.len() as u32);
        if id as usize == pieces.len() {
            pieces.push(piece);
        }
        merges.push((pair, id));
        trainer.merge(pair, id);
        let (done, total) = (pieces.len() as u64, Some(vocab_size as u64));
        observer.progress(Progress { done, total, unit: "tokens", detail: String::new() });
    }
    Ok(Learned { pieces, merges })
}
