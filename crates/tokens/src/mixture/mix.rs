//! The mixture's work: encode, choose, shuffle, write.

use super::apportion;
use super::choose::choose;
use super::documents::{DocumentRow, Origin, Sequences, write_rows};
use super::{CategorySummary, MixtureSettings, Shortfall, SplitSummary, Summary};
use crate::shards::{ShardWriter, Width, remove_from};
use crate::{BatchEncoder, Error, Tokenizer};
use base::{Category, Document, Observer, Progress, Seed, Split, Stop};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Prefix of the training shards.
pub const TRAIN: &str = "train";
/// Prefix of the held-out shards.
pub const HELD_OUT: &str = "held-out";
/// Encoded training documents, each once; removed at the end.
const UNIQUE: &str = "unique";

/// Documents are encoded in batches of about this many bytes.
const BATCH_BYTES: usize = 4 << 20;

/// A document that is read as it is given, outside the shares: a canary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The document.
    pub document: Document,
    /// How often it is read.
    pub repeats: u32,
}

/// Everything that decides a mixture, but the documents.
pub struct MixJob<'a> {
    /// Shares, budget and caps.
    pub settings: &'a MixtureSettings,
    /// Counts the tokens.
    pub tokenizer: &'a Tokenizer,
    /// Documents to add.
    pub extra: &'a [Extra],
    /// Decides which documents are chosen and their order.
    pub seed: Seed,
    /// Where the shards go.
    pub out: &'a Path,
    /// Threads to encode on; the result is the same for any number.
    pub threads: usize,
    /// Hears of progress.
    pub observer: &'a dyn Observer,
    /// Asks to stop.
    pub stop: &'a Stop,
}

/// The path of a split's list of documents.
pub(super) fn rows_path(directory: &Path, split: &str) -> PathBuf {
    directory.join(format!("{split}-documents.jsonl"))
}

/// Writes the mixture: `train-*.bin/.idx`, `held-out-*.bin/.idx`, the lists of documents and
/// `mixture.json`, the summary. Each document is one sequence that starts with `<|endoftext|>`. Called
/// again on a directory that an interrupted call has left, it gives the same bytes.
///
/// # Errors
/// The documents cannot be read, there are none for training, a share cannot be filled where the
/// settings refuse that, a file cannot be written, or a raised stop.
pub fn mix<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    job: &MixJob<'_>,
    documents: impl Iterator<Item = Result<Document, E>>,
) -> Result<Summary, Error> {
    job.settings.check()?;
    let shares = job.settings.shares.resolve()?;
    let documents = documents.map(|document| document.map_err(|e| Error::Documents(e.into())));
    let mut encoded = encode(job, documents)?;
    if !encoded.train.iter().any(|row| row.origin == Origin::Corpus) {
        return Err(Error::NoDocuments { purpose: "train on" });
    }
    let mut summary = summarize_available(job, &shares, &encoded);
    plan(job, &shares, &mut summary)?;
    choose_documents(job, &summary, &mut encoded.train);
    summary.train_shards = write_train(job, &mut encoded.train)?;
    summary.held_out_shards = encoded.held_out_shards;
    write_rows(&rows_path(job.out, TRAIN), &encoded.train)?;
    write_rows(&rows_path(job.out, HELD_OUT), &encoded.held_out)?;
    summarize_reached(&encoded.train, &mut summary);
    for note in &summary.notes {
        job.observer.note(note);
    }
    base::write_json(&job.out.join("mixture.json"), &summary)?;
    remove_from(job.out, UNIQUE, 0)?;
    Ok(summary)
}

/// What encoding has left on the disk: training documents in the unique shards, in the order of their
/// rows; held-out documents in their shards.
struct Encoded {
    train: Vec<DocumentRow>,
    held_out: Vec<DocumentRow>,
    held_out_shards: Vec<String>,
}

/// Encodes documents in batches and writes each to the shards of its split.
struct Encoding<'a> {
    job: &'a MixJob<'a>,
    encoder: BatchEncoder<'a>,
    unique: ShardWriter,
    held_out: ShardWriter,
    rows: [Vec<DocumentRow>; 2],
    done: u64,
}

fn encode<'a>(
    job: &'a MixJob<'a>,
    documents: impl Iterator<Item = Result<Document, Error>>,
) -> Result<Encoded, Error> {
    let width = Width::of(job.tokenizer.vocab_size());
    let writer = |prefix| ShardWriter::new(job.out, prefix, width, job.settings.shard_tokens);
    let mut encoding = Encoding {
        job,
        encoder: job.tokenizer.batch_encoder(job.threads),
        unique: writer(UNIQUE),
        held_out: writer(HELD_OUT),
        rows: [Vec::new(), Vec::new()],
        done: 0,
    };
    let mut batch = Vec::new();
    let mut bytes = 0;
    for document in documents {
        let document = document?;
        bytes += document.text.len();
        batch.push(document);
        if bytes >= BATCH_BYTES {
            encoding.write(&batch, Origin::Corpus)?;
            batch.clear();
            bytes = 0;
        }
    }
    encoding.write(&batch, Origin::Corpus)?;
    let extra: Vec<Document> = job.extra.iter().map(|extra| extra.document.clone()).collect();
    encoding.write(&extra, Origin::Extra)?;
    let [train, held_out] = encoding.rows;
    let unique_shards = encoding.unique.finish()?.len();
    let held_out_shards = encoding.held_out.finish()?;
    remove_from(job.out, UNIQUE, unique_shards)?;
    remove_from(job.out, HELD_OUT, held_out_shards.len())?;
    Ok(Encoded { train, held_out, held_out_shards })
}

impl Encoding<'_> {
    fn write(&mut self, documents: &[Document], origin: Origin) -> Result<(), Error> {
        self.job.stop.check()?;
        let texts: Vec<&str> = documents.iter().map(|document| document.text.as_str()).collect();
        for (document, ids) in documents.iter().zip(self.encoder.encode(&texts)) {
            let mut sequence = Vec::with_capacity(ids.len() + 1);
            sequence.push(self.job.tokenizer.end_of_text());
            sequence.extend(ids);
            let mut row = DocumentRow::new(document, origin, sequence.len());
            if origin == Origin::Corpus && document.split == Split::HeldOut {
                self.held_out.push(&sequence)?;
                (row.times, row.sequence) = (1, Some(self.rows[1].len() as u64));
                self.rows[1].push(row);
            } else {
                self.unique.push(&sequence)?;
                self.rows[0].push(row);
            }
        }
        self.done += documents.len() as u64;
        let detail = "encoding".to_owned();
        self.job.observer.progress(Progress {
            done: self.done,
            total: None,
            unit: "documents",
            detail,
        });
        Ok(())
    }
}

fn summarize_available(
    job: &MixJob<'_>,
    shares: &BTreeMap<Category, f64>,
    encoded: &Encoded,
) -> Summary {
    let mut summary = Summary {
        budget_tokens: job.settings.budget_tokens,
        vocab_size: job.tokenizer.vocab_size(),
        ..Summary::default()
    };
    let of_corpus = |row: &&DocumentRow| row.origin == Origin::Corpus;
    for row in encoded.train.iter().filter(of_corpus) {
        let category = summary.categories.entry(row.category).or_default();
        category.documents += 1;
        category.bytes += row.bytes;
        category.tokens += row.tokens;
    }
    for (&category, &share) in shares {
        let entry = summary.categories.entry(category).or_default();
        entry.wanted_share = share;
        entry.wanted_tokens = (share * job.settings.budget_tokens as f64).round() as u64;
    }
    for (&category, entry) in &mut summary.categories {
        entry.max_epochs = job.settings.max_epochs(category);
        entry.bytes_per_token = ratio(entry.bytes, entry.tokens - entry.documents);
    }
    for row in &encoded.held_out {
        summary.held_out.entry(row.category).or_default().add(row.tokens, row.bytes, 1);
    }
    summary
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Fills in what each category is to give.
fn plan(
    job: &MixJob<'_>,
    shares: &BTreeMap<Category, f64>,
    summary: &mut Summary,
) -> Result<(), Error> {
    let available = |entry: &CategorySummary| (entry.tokens as f64 * entry.max_epochs) as u64;
    let by_category = summary.categories.iter().map(|(&c, entry)| (c, available(entry))).collect();
    let mut planned = apportion(job.settings.budget_tokens, shares, &by_category);
    for (&category, entry) in &mut summary.categories {
        let available = available(entry);
        let short = entry.wanted_tokens > available;
        if short && job.settings.shortfall == Shortfall::Refuse {
            return Err(Error::Shortfall {
                category,
                wanted: entry.wanted_tokens,
                available,
                unique: entry.tokens,
                max_epochs: entry.max_epochs,
            });
        }
        if job.settings.shortfall == Shortfall::Shrink {
            planned.insert(category, entry.wanted_tokens.min(available));
        }
        entry.planned_tokens = planned.get(&category).copied().unwrap_or(0);
        if short {
            summary.notes.push(shortfall_note(job, category, entry, available));
        }
    }
    Ok(())
}

fn shortfall_note(
    job: &MixJob<'_>,
    category: Category,
    entry: &CategorySummary,
    available: u64,
) -> String {
    let name = category.name();
    let rest = match job.settings.shortfall {
        Shortfall::Redistribute => "the other categories give the rest",
        Shortfall::Shrink | Shortfall::Refuse => "the mixture is smaller by the rest",
    };
    if entry.documents == 0 {
        return format!("{name} has no documents for its {} tokens; {rest}", entry.wanted_tokens);
    }
    format!(
        "{name} gives {available} of {} tokens ({} tokens read at most {} times); {rest}",
        entry.wanted_tokens, entry.tokens, entry.max_epochs
    )
}

/// Sets how often each training document is read.
fn choose_documents(job: &MixJob<'_>, summary: &Summary, rows: &mut [DocumentRow]) {
    for (&category, entry) in &summary.categories {
        let chosen = |row: &DocumentRow| row.origin == Origin::Corpus && row.category == category;
        let lengths: Vec<u64> =
            rows.iter().filter(|row| chosen(row)).map(|row| row.tokens).collect();
        let seed = job.seed.derive("choose").derive(category.name());
        let times = choose(&lengths, entry.planned_tokens, seed);
        rows.iter_mut()
            .filter(|row| chosen(row))
            .zip(times)
            .for_each(|(row, times)| row.times = times);
    }
    let extra = rows.iter_mut().filter(|row| row.origin == Origin::Extra);
    extra.zip(job.extra).for_each(|(row, extra)| row.times = extra.repeats);
}

/// Writes the chosen documents in a shuffled order, and notes where each is first.
fn write_train(job: &MixJob<'_>, rows: &mut [DocumentRow]) -> Result<Vec<String>, Error> {
    let mut order: Vec<usize> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        order.extend(std::iter::repeat_n(index, row.times as usize));
    }
    job.seed.derive("order").rng().shuffle(&mut order);
    let unique = Sequences::open(job.out, UNIQUE)?;
    let width = Width::of(job.tokenizer.vocab_size());
    let mut writer = ShardWriter::new(job.out, TRAIN, width, job.settings.shard_tokens);
    let total = Some(order.len() as u64);
    for (sequence, &index) in (0u64..).zip(&order) {
        if sequence.is_multiple_of(256) {
            job.stop.check()?;
            let detail = "writing".to_owned();
            job.observer.progress(Progress { done: sequence, total, unit: "documents", detail });
        }
        writer.push(&unique.get(index as u64)?)?;
        rows[index].sequence.get_or_insert(sequence);
    }
    let names = writer.finish()?;
    remove_from(job.out, TRAIN, names.len())?;
    Ok(names)
}

fn summarize_reached(rows: &[DocumentRow], summary: &mut Summary) {
    for row in rows {
        let times = u64::from(row.times);
        summary.train.add(row.tokens, row.bytes, times);
        if row.origin == Origin::Extra {
            summary.extra.add(row.tokens, row.bytes, times);
        } else if let Some(entry) = summary.categories.get_mut(&row.category) {
            entry.reached_tokens += row.tokens * times;
            entry.reached_documents += times;
            entry.documents_read += u64::from(times > 0);
        }
    }
    let SplitSummary { tokens, .. } = summary.train;
    let of_corpus = tokens - summary.extra.tokens;
    for entry in summary.categories.values_mut() {
        entry.epochs = ratio(entry.reached_tokens, entry.tokens);
        entry.reached_share = ratio(entry.reached_tokens, of_corpus);
    }
}
