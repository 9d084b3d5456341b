//! Text to token ids and back.

use crate::Error;
use crate::alphabet::byte_ids;
use crate::bpe::{Merges, Pair};
use crate::parallel;
use crate::special::Special;
use crate::split::words;
use crate::train::{Learned, count_words, learn};
use base::{Observer, Stop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The largest vocabulary: twice that of the largest models of 2025.
const MOST_TOKENS: usize = 1 << 19;
const LEAST_TOKENS: usize = Special::ALL.len() + 256;

/// How the tokenizer is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TokenizerSettings {
    /// Tokens in the vocabulary, with the 5 special tokens and the 256 bytes.
    pub vocab_size: usize,
    /// Bytes of text to learn from, drawn from the categories by the mixture's shares.
    pub sample_bytes: u64,
    /// A pair of tokens that the sample has less often than this is not merged.
    pub min_count: u64,
}

impl Default for TokenizerSettings {
    fn default() -> Self {
        Self { vocab_size: 4096, sample_bytes: 6_000_000, min_count: 2 }
    }
}

/// A byte-level BPE tokenizer. Every text has one encoding, and decoding gives the text back.
///
/// Special tokens are never made from text: [`Tokenizer::encode`] reads `<|end|>` as five characters.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    /// The bytes of each token; none for a special one.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// The pairs that merge, by rank, and the token each makes.
    pub(crate) merge_list: Vec<(Pair, u32)>,
    merges: Merges,
    byte_ids: [u32; 256],
}

impl Tokenizer {
    /// Learns the merges from `sample`. The result depends on the texts alone, not on their order and
    /// not on the number of threads.
    ///
    /// # Errors
    /// A vocabulary size out of range, an empty sample, or a raised stop.
    pub fn train(
        settings: &TokenizerSettings,
        sample: &[String],
        threads: usize,
        observer: &dyn Observer,
        stop: &Stop,
    ) -> Result<Self, Error> {
        if !(LEAST_TOKENS..=MOST_TOKENS).contains(&settings.vocab_size) {
            let (least, most) = (LEAST_TOKENS, MOST_TOKENS);
            return Err(Error::VocabSize { found: settings.vocab_size, least, most });
        }
        if sample.iter().all(String::is_empty) {
            return Err(Error::NoDocuments { purpose: "train the tokenizer" });
        }
        let counts = count_words(sample, threads);
        let learned = learn(&counts, settings.vocab_size, settings.min_count, observer, stop)?;
        Ok(Self::from_learned(learned))
    }

    pub(crate) fn from_learned(Learned { pieces, merges: merge_list }: Learned) -> Self {
        let merges = Merges::new(merge_list.iter().copied());
        Self { pieces, merge_list, merges, byte_ids: byte_ids() }
    }

    /// The ids of a text. Special tokens that it spells out are read as plain characters.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        for word in words(text) {
            ids.extend(self.encode_word(word));
        }
        ids
    }

    /// The ids of a text in which special tokens are recognised, as Hugging Face's tokenizers do: for the
    /// fixed text of templates, never for what people or documents say.
    pub fn encode_with_special(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let starts = rest.match_indices("<|");
            let found =
                starts.into_iter().find_map(|(at, _)| Some((at, Special::at_start(&rest[at..])?)));
            let (plain, special) = found.map_or((rest.len(), None), |(at, s)| (at, Some(s)));
            ids.extend(self.encode(&rest[..plain]));
            ids.extend(special.map(Special::id));
            rest = &rest[plain + special.map_or(0, |s| s.text().len())..];
        }
        ids
    }

    /// The ids of many texts, in their order, the same for any number of threads.
    pub fn encode_all(&self, texts: &[&str], threads: usize) -> Vec<Vec<u32>> {
        self.batch_encoder(threads).encode(texts)
    }

    /// An encoder for many batches of texts, which remembers the words it has met.
    pub fn batch_encoder(&self, threads: usize) -> BatchEncoder<'_> {
        BatchEncoder { tokenizer: self, caches: vec![Cache::default(); threads.max(1)] }
    }

    fn encode_word(&self, word: &str) -> Vec<u32> {
        let mut ids: Vec<u32> = word.bytes().map(|byte| self.byte_ids[usize::from(byte)]).collect();
        self.merges.apply(&mut ids);
        ids
    }

    /// The text of some ids. Special tokens and ids outside the vocabulary give nothing; bytes that are
    /// no UTF-8, as a model may write, give U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        String::from_utf8_lossy(&self.decode_bytes(ids)).into_owned()
    }

    /// As [`Tokenizer::decode`], with special tokens spelled out: for reading, not for encoding again.
    pub fn decode_with_special(&self, ids: &[u32]) -> String {
        let mut bytes = Vec::new();
        for &id in ids {
            match Special::ALL.get(id as usize) {
                Some(special) => bytes.extend(special.text().bytes()),
                None => bytes.extend(self.piece(id)),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The bytes of some ids, before they are taken for UTF-8.
    pub fn decode_bytes(&self, ids: &[u32]) -> Vec<u8> {
        ids.iter().flat_map(|&id| self.piece(id)).copied().collect()
    }

    /// The bytes of text in one token: none for a special token or an id outside the vocabulary.
    pub fn piece(&self, id: u32) -> &[u8] {
        self.pieces.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// How many bytes of text a token has.
    pub fn bytes_of(&self, id: u32) -> usize {
        self.piece(id).len()
    }

    /// Tokens in the vocabulary; ids are below it.
    pub fn vocab_size(&self) -> usize {
        self.pieces.len()
    }

    /// The token that starts documents and conversations, and ends documents.
    pub fn end_of_text(&self) -> u32 {
        Special::EndOfText.id()
    }

    /// The token that ends a turn of a conversation.
    pub fn end_of_turn(&self) -> u32 {
        Special::EndOfTurn.id()
    }
}

/// Words longer than this are seldom met twice.
const LONGEST_CACHED: usize = 48;
/// Words that a cache holds, which bounds its memory to a few megabytes.
const MOST_CACHED: usize = 1 << 16;

/// The ids of words met before.
#[derive(Clone, Debug, Default)]
struct Cache(HashMap<Box<str>, Box<[u32]>>);

/// Encodes batches of texts on several threads, each with a cache of words.
#[derive(Debug)]
pub struct BatchEncoder<'a> {
    tokenizer: &'a Tokenizer,
    caches: Vec<Cache>,
}

impl BatchEncoder<'_> {
    /// The ids of each text, in the order of the texts.
    pub fn encode(&mut self, texts: &[&str]) -> Vec<Vec<u32>> {
        let tokenizer = self.tokenizer;
        parallel::map(texts, &mut self.caches, |cache, text| cache.encode(tokenizer, text))
    }
}

impl Cache {
    fn encode(&mut self, tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        for word in words(text) {
            if let Some(known) = self.0.get(word) {
                ids.extend_from_slice(known);
                continue;
            }
            let encoded = tokenizer.encode_word(word);
            ids.extend_from_slice(&encoded);
            if word.len() <= LONGEST_CACHED && self.0.len() < MOST_CACHED {
                self.0.insert(word.into(), encoded.into());
            }
        }
        ids
    }
}
