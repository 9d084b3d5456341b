//! The tokenizer's stage: a sample of the documents with the mixture's shares in bytes, and training.

use crate::mixture::{Shares, apportion};
use crate::{Error, Tokenizer, TokenizerSettings, file};
use base::{Category, Document, Hasher, Observer, Seed, Split, Stop};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;

/// Everything that decides a tokenizer, but the documents.
pub struct TokenizerJob<'a> {
    /// Size of vocabulary and sample.
    pub settings: &'a TokenizerSettings,
    /// The mixture's shares, which the sample follows in bytes.
    pub shares: &'a Shares,
    /// Decides which documents are drawn.
    pub seed: Seed,
    /// Where `tokenizer.json` goes.
    pub out: &'a Path,
    /// Threads to count words and encode on; the result is the same for any number.
    pub threads: usize,
    /// Hears of progress.
    pub observer: &'a dyn Observer,
    /// Asks to stop.
    pub stop: &'a Stop,
}

/// What was learned from what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenizerSummary {
    /// Tokens in the vocabulary.
    pub vocab_size: usize,
    /// The sample, by category.
    pub sample: BTreeMap<Category, SampleSummary>,
}

/// One category of the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleSummary {
    /// Bytes that the share asks for.
    pub wanted_bytes: u64,
    /// Documents drawn.
    pub documents: u64,
    /// Their bytes; the last document of each category may exceed what was asked.
    pub bytes: u64,
    /// Bytes per token of the sample under the new tokenizer.
    pub bytes_per_token: f64,
}

/// Draws the sample, trains the tokenizer and writes `tokenizer.json`.
///
/// # Errors
/// The documents cannot be read, there are none for training, the settings are out of range, the file
/// cannot be written, or a raised stop.
pub fn build_tokenizer<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    job: &TokenizerJob<'_>,
    documents: impl Iterator<Item = Result<Document, E>>,
) -> Result<(Tokenizer, TokenizerSummary), Error> {
    if job.settings.sample_bytes == 0 {
        return Err(Error::Setting { setting: "sample-bytes", found: 0.0, expected: "1 or more" });
    }
    let (texts, mut summary) = draw(job, documents)?;
    let all: Vec<String> = texts.values().flatten().cloned().collect();
    let tokenizer = Tokenizer::train(job.settings, &all, job.threads, job.observer, job.stop)?;
    for (category, texts) in &texts {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tokens: usize = tokenizer.encode_all(&texts, job.threads).iter().map(Vec::len).sum();
        if let Some(sample) = summary.sample.get_mut(category) {
            sample.bytes_per_token = sample.bytes as f64 / tokens.max(1) as f64;
        }
    }
    summary.vocab_size = tokenizer.vocab_size();
    tokenizer.save(&job.out.join(file::FILE_NAME))?;
    Ok((tokenizer, summary))
}

/// A document that may be drawn: those with the lowest keys are.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    key: u64,
    id: String,
    text: String,
}

/// Draws documents at random until each category has its bytes, in one pass, whatever their order: each
/// document has a key made of the seed and its id, and the lowest keys win (bottom-k sampling, Cohen and
/// Kaplan 2007).
fn draw<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    job: &TokenizerJob<'_>,
    documents: impl Iterator<Item = Result<Document, E>>,
) -> Result<(BTreeMap<Category, Vec<String>>, TokenizerSummary), Error> {
    let shares = job.shares.resolve()?;
    let budget = job.settings.sample_bytes;
    let mut drawn: BTreeMap<Category, (BinaryHeap<Ticket>, u64)> = BTreeMap::new();
    let mut available: BTreeMap<Category, u64> = BTreeMap::new();
    for document in documents {
        job.stop.check()?;
        let document = document.map_err(|e| Error::Documents(e.into()))?;
        if document.split == Split::HeldOut || !shares.contains_key(&document.category) {
            continue;
        }
        *available.entry(document.category).or_default() += document.text.len() as u64;
        let seed = job.seed.0.to_le_bytes();
        let key = Hasher::new().field(&seed).field(document.id.as_bytes()).finish().prefix();
        let (tickets, bytes) = drawn.entry(document.category).or_default();
        *bytes += document.text.len() as u64;
        tickets.push(Ticket { key, id: document.id, text: document.text });
        trim(tickets, bytes, budget);
    }
    let mut summary = TokenizerSummary::default();
    let mut texts = BTreeMap::new();
    for (category, wanted) in apportion(budget, &shares, &available) {
        let (mut tickets, mut bytes) = drawn.remove(&category).unwrap_or_default();
        trim(&mut tickets, &mut bytes, wanted);
        if wanted == 0 {
            tickets.clear();
        }
        let chosen: Vec<String> = tickets.into_sorted_vec().into_iter().map(|t| t.text).collect();
        let bytes = chosen.iter().map(|text| text.len() as u64).sum();
        let documents = chosen.len() as u64;
        let wanted_bytes = (shares[&category] * budget as f64).round() as u64;
        let sample = SampleSummary { wanted_bytes, documents, bytes, bytes_per_token: 0.0 };
        summary.sample.insert(category, sample);
        texts.insert(category, chosen);
    }
    Ok((texts, summary))
}

/// Gives back the highest keys as long as enough bytes are left.
fn trim(tickets: &mut BinaryHeap<Ticket>, bytes: &mut u64, enough: u64) {
    while let Some(highest) = tickets.peek() {
        let length = highest.text.len() as u64;
        if *bytes - length < enough {
            break;
        }
        *bytes -= length;
        tickets.pop();
    }
}
