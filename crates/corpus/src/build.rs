//! The stage from beginning to end.

use crate::dedup::{Fate, LineCounts, RepeatedLines, Row, delete_lines, fates};
use crate::error::Error;
use crate::filter::{judge, mask};
use crate::ledger::{Example, Ledger, Tally};
use crate::overlap::Overlap;
use crate::piece::{Done, read_piece};
use crate::resolve::Corpus;
use crate::settings::Settings;
use crate::store::{Shards, read_shard, row_groups};
use base::{Category, Document, FsError, Observer, Progress, Seed, Split, Stop};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Version of the stage: raised when the same inputs and settings would give other documents.
pub const ALGORITHM: u32 = 2;

/// What a build gave, for the manifest and the screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Documents read out of the sources.
    pub documents_read: u64,
    /// Documents in the corpus.
    pub documents: u64,
    /// Bytes of text in the corpus.
    pub bytes: u64,
    /// Documents that are held out.
    pub held_out_documents: u64,
    /// Bytes of text that are held out.
    pub held_out_bytes: u64,
    /// Shards written.
    pub shards: u64,
    /// Bytes of text by category.
    pub bytes_by_category: BTreeMap<Category, u64>,
    /// The counts of every rule.
    pub ledger: Ledger,
}

/// Builds the corpus of `settings` into `out`: `documents-00000.parquet` and so on, `ledger.json` and
/// `examples.jsonl`. Relative paths in the settings start at `base_dir`. Work in progress is kept in
/// `out/work`, which is gone when the corpus is whole; called again after an interruption the build goes
/// on from there.
///
/// # Errors
/// A source that is missing, a setting that cannot be used, a file that cannot be written, nothing left
/// after cleaning, or a stop that was asked for. Bad files and documents are no errors: they are counted.
pub fn build(
    settings: &Settings,
    base_dir: &Path,
    seed: Seed,
    out: &Path,
    threads: usize,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Summary, Error> {
    let corpus = Corpus::resolve(settings, base_dir, seed)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|source| Error::Threads { threads, source })?;
    let work = out.join("work");
    let build = Build { corpus: &corpus, work: &work, observer, stop };
    let summary = pool.install(|| build.run(out))?;
    if work.exists() {
        std::fs::remove_dir_all(&work).map_err(FsError::io("remove", &work))?;
    }
    Ok(summary)
}

/// Enough for the deepest nesting that extraction follows.
const STACK_BYTES: usize = 16 << 20;
/// Chunks in flight are a few for each thread, so that memory is bounded.
const CHUNKS_AT_ONCE: usize = 16;

struct Build<'a> {
    corpus: &'a Corpus<'a>,
    work: &'a Path,
    observer: &'a dyn Observer,
    stop: &'a Stop,
}

/// A row group of a shard of work: the unit of every task after the first.
struct Chunk {
    shard: PathBuf,
    row_group: usize,
    /// Index of its first document in the whole corpus.
    first: usize,
}

/// What the tasks of the last step share.
struct Verdicts {
    fates: Vec<Fate>,
    /// Rank of each document among those kept, which decides its bucket.
    ranks: Vec<u64>,
    repeated: Vec<RepeatedLines>,
    /// Held-out documents that training documents repeat, by index.
    trained_on: BTreeMap<usize, f64>,
}

impl Build<'_> {
    fn run(&self, out: &Path) -> Result<Summary, Error> {
        let settings = self.corpus.settings;
        let mut tally = Tally::new(settings.examples_per_rule);
        let pieces = self.read_pieces()?;
        pieces.iter().for_each(|(_, part)| tally.add(part));
        let (chunks, rows) = self.side_table(&pieces)?;
        let fates = fates(&rows, settings.dedup.by_url, settings.dedup.by_document);
        let ranks = ranks(&fates);
        let repeated = self.repeated_lines(&chunks, &fates, &ranks)?;
        let trained_on = self.repeated_held_out(&chunks, &fates)?;
        let verdicts = Verdicts { fates, ranks, repeated, trained_on };
        let mut summary = self.write_corpus(&chunks, &verdicts, out, &mut tally)?;
        let names: Vec<&str> =
            self.corpus.sources.iter().map(|s| s.settings.name.as_str()).collect();
        summary.ledger = tally.ledger(&names);
        summary.documents_read = summary.ledger.sources.iter().map(|s| s.documents_read).sum();
        if summary.documents == 0 {
            return Err(Error::NothingLeft { biggest: summary.ledger.biggest() });
        }
        self.note_bad_input(&summary.ledger);
        base::write_json(&out.join("ledger.json"), &summary.ledger)?;
        write_examples(&out.join("examples.jsonl"), &tally.sorted_examples())?;
        Ok(summary)
    }

    /// Tells the person about files and lines that could not be read.
    fn note_bad_input(&self, ledger: &Ledger) {
        let bad =
            ledger.rules.iter().filter(|rule| rule.stage == "read" && rule.documents_dropped > 0);
        let words: Vec<String> =
            bad.map(|rule| format!("{} {}", rule.documents_dropped, rule.rule)).collect();
        if !words.is_empty() {
            let words = words.join(", ");
            self.observer
                .note(&format!("input that was not read: {words}; examples are in examples.jsonl"));
        }
    }

    /// Reads and extracts all pieces in parallel; their order is the corpus's order.
    fn read_pieces(&self) -> Result<Vec<Done>, Error> {
        let pieces = self.corpus.pieces();
        let total = pieces.len() as u64;
        let done = AtomicU64::new(0);
        let all = pieces.par_iter().enumerate();
        let read = all.map(|(index, piece)| {
            let (source, input) = (piece.0, &piece.1);
            let piece = read_piece(self.corpus, index, source, input, self.work, self.stop)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let detail = source.settings.name.clone();
            self.observer.progress(Progress {
                done,
                total: Some(total),
                unit: "pieces read",
                detail,
            });
            Ok(piece)
        });
        read.collect()
    }

    /// What the first two passes need of every document, and the cut into chunks.
    fn side_table(&self, pieces: &[Done]) -> Result<(Vec<Chunk>, Vec<Row>), Error> {
        let groups: Vec<usize> =
            pieces.par_iter().map(|(shard, _)| row_groups(shard)).collect::<Result<_, _>>()?;
        let each = |((shard, _), &groups): (&Done, &usize)| {
            (0..groups).map(|g| (shard.clone(), g)).collect::<Vec<_>>()
        };
        let places: Vec<(PathBuf, usize)> = pieces.iter().zip(&groups).flat_map(each).collect();
        let rows_of = |(shard, row_group): &(PathBuf, usize)| -> Result<Vec<Row>, Error> {
            self.stop.check()?;
            read_shard(shard, Some(*row_group))?.map(|document| Ok(Row::of(&document?))).collect()
        };
        let tables: Vec<Vec<Row>> = places.par_iter().map(rows_of).collect::<Result<_, _>>()?;
        let mut first = 0;
        let mut chunks = Vec::new();
        for ((shard, row_group), table) in places.into_iter().zip(&tables) {
            chunks.push(Chunk { shard, row_group, first });
            first += table.len();
        }
        Ok((chunks, tables.into_iter().flatten().collect()))
    }

    /// The lines to delete, bucket by bucket.
    fn repeated_lines(
        &self,
        chunks: &[Chunk],
        fates: &[Fate],
        ranks: &[u64],
    ) -> Result<Vec<RepeatedLines>, Error> {
        let rule = &self.corpus.settings.dedup.by_line;
        let kept = fates.iter().filter(|fate| **fate == Fate::Keep).count() as u64;
        let buckets = kept.div_ceil(rule.bucket_documents).max(1);
        if rule.max_repeats == 0 {
            return Ok((0..buckets).map(|_| RepeatedLines::default()).collect());
        }
        let count = |bucket: u64, chunk: &Chunk, counts: &mut LineCounts| -> Result<(), Error> {
            self.stop.check()?;
            for (i, document) in
                (chunk.first..).zip(read_shard(&chunk.shard, Some(chunk.row_group))?)
            {
                if fates[i] == Fate::Keep && ranks[i] / rule.bucket_documents == bucket {
                    counts.count(&document?, rule);
                }
            }
            Ok(())
        };
        let touches = |bucket: u64, chunk: usize| {
            let from = ranks[chunks[chunk].first] / rule.bucket_documents;
            let end = chunks.get(chunk + 1).map_or(ranks.len(), |next| next.first);
            let to = ranks[chunks[chunk].first..end]
                .last()
                .map_or(from, |rank| rank / rule.bucket_documents);
            (from..=to).contains(&bucket)
        };
        let repeated = |bucket: u64| {
            let touched: Vec<&Chunk> = (0..chunks.len())
                .filter(|&i| chunks[i].first < ranks.len() && touches(bucket, i))
                .map(|i| &chunks[i])
                .collect();
            // Sums do not depend on their order, so neither does the set of lines.
            let all = touched
                .par_iter()
                .try_fold(LineCounts::default, |mut counts, chunk| {
                    count(bucket, chunk, &mut counts)?;
                    Ok::<_, Error>(counts)
                })
                .try_reduce(LineCounts::default, |mut one, other| {
                    one.add(other);
                    Ok(one)
                })?;
            Ok(all.repeated(rule))
        };
        (0..buckets).map(repeated).collect()
    }

    /// The held-out documents that training documents repeat, with the repeated share of each.
    /// Generated problems are left alone: their wordings repeat by nature, their numbers do not.
    fn repeated_held_out(
        &self,
        chunks: &[Chunk],
        fates: &[Fate],
    ) -> Result<BTreeMap<usize, f64>, Error> {
        let most = self.corpus.settings.max_held_out_overlap;
        if most >= 1.0 {
            return Ok(BTreeMap::new());
        }
        let documents = |chunk: &Chunk, split: Split| -> Result<Vec<(usize, Document)>, Error> {
            self.stop.check()?;
            let mut found = Vec::new();
            let all = read_shard(&chunk.shard, Some(chunk.row_group))?;
            for (i, document) in (chunk.first..).zip(all) {
                let document = document?;
                let counts = document.split == split && document.category != Category::Math;
                if counts && fates[i] == Fate::Keep {
                    found.push((i, document));
                }
            }
            Ok(found)
        };
        let mut overlap = Overlap::default();
        let mut held_out = Vec::new();
        for chunk in chunks {
            let found = documents(chunk, Split::HeldOut)?;
            found.iter().for_each(|(_, document)| overlap.hold_out(document));
            held_out.extend(found);
        }
        let common = |chunk: &Chunk| -> Result<Vec<u64>, Error> {
            let found = documents(chunk, Split::Train)?;
            Ok(found.iter().flat_map(|(_, document)| overlap.common(document)).collect())
        };
        let common: Vec<Vec<u64>> = chunks.par_iter().map(common).collect::<Result<_, _>>()?;
        common.into_iter().for_each(|runs| overlap.see(runs));
        let shares = held_out.iter().map(|(i, document)| (*i, overlap.share(document)));
        Ok(shares.filter(|(_, share)| *share > most).collect())
    }

    /// Applies all verdicts, cleans, and writes what is left in order.
    fn write_corpus(
        &self,
        chunks: &[Chunk],
        verdicts: &Verdicts,
        out: &Path,
        tally: &mut Tally,
    ) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let mut shards = Shards::new(out, self.corpus.settings.shard_bytes);
        let total = Some(verdicts.fates.len() as u64);
        for window in chunks.chunks(CHUNKS_AT_ONCE) {
            let cleaned: Vec<(Vec<Document>, Tally)> = window
                .par_iter()
                .map(|chunk| self.clean(chunk, verdicts))
                .collect::<Result<_, _>>()?;
            for (documents, part) in cleaned {
                tally.add(&part);
                for document in documents {
                    summary.count(&document);
                    shards.push(document)?;
                }
            }
            let done = window.last().map_or(0, |chunk| chunk.first as u64);
            let detail = format!("{} kept", summary.documents);
            self.observer.progress(Progress { done, total, unit: "documents", detail });
        }
        summary.shards = shards.finish()? as u64;
        Ok(summary)
    }

    fn clean(&self, chunk: &Chunk, verdicts: &Verdicts) -> Result<(Vec<Document>, Tally), Error> {
        self.stop.check()?;
        let mut tally = Tally::new(self.corpus.settings.examples_per_rule);
        let mut documents = Vec::new();
        for (i, document) in (chunk.first..).zip(read_shard(&chunk.shard, Some(chunk.row_group))?) {
            documents.extend(self.clean_document(i, document?, verdicts, &mut tally));
        }
        Ok((documents, tally))
    }

    fn clean_document(
        &self,
        i: usize,
        mut document: Document,
        verdicts: &Verdicts,
        tally: &mut Tally,
    ) -> Option<Document> {
        let settings = self.corpus.settings;
        let category = document.category;
        if let Fate::SameUrl(_) = verdicts.fates[i] {
            tally.drop_document(
                ("dedup", "url"),
                &document,
                "another document of this address is newer or first".into(),
            );
            return None;
        }
        tally.left("dedup-url", category, document.text.len() as u64);
        if let Fate::SameText(_) = verdicts.fates[i] {
            tally.drop_document(
                ("dedup", "document"),
                &document,
                "an earlier document has the same text".into(),
            );
            return None;
        }
        tally.left("dedup-document", category, document.text.len() as u64);
        let bucket = (verdicts.ranks[i] / settings.dedup.by_line.bucket_documents) as usize;
        self.delete_lines(&mut document, &verdicts.repeated[bucket], tally);
        if document.text.is_empty() {
            tally.drop_document(
                ("dedup", "emptied"),
                &document,
                "every line was a repeated one".into(),
            );
            return None;
        }
        tally.left("dedup-line", category, document.text.len() as u64);
        if let Some((rule, reason)) = judge(&document, &settings.quality) {
            tally.drop_document(("quality", rule), &document, reason);
            return None;
        }
        tally.left("quality", category, document.text.len() as u64);
        self.mask(&mut document, tally);
        if let Some(share) = verdicts.trained_on.get(&i) {
            document.split = Split::Train;
            let rule = ("split", "repeated-in-training");
            tally.rule(rule).documents_changed += 1;
            let reason = format!("{:.0}% of its runs of words", 100.0 * share);
            tally.example(rule, &document.source, &document.url, &document.text, reason);
        }
        let bytes = document.text.len() as u64;
        tally.left("mask", category, bytes);
        let source = tally.source(&document.source);
        source.documents_kept += 1;
        source.bytes_kept += bytes;
        Some(document)
    }

    fn delete_lines(&self, document: &mut Document, repeated: &RepeatedLines, tally: &mut Tally) {
        let deleted = delete_lines(document, repeated, &self.corpus.settings.dedup.by_line);
        let rule = ("dedup", "line");
        let count = tally.rule(rule);
        count.lines_in += deleted.lines_in;
        count.lines_dropped += deleted.lines;
        count.bytes_dropped += deleted.bytes;
        count.documents_changed += u64::from(deleted.lines > 0);
        if let Some(line) = deleted.example {
            tally.example(
                rule,
                &document.source,
                &document.url,
                &line,
                format!("{} lines of this document", deleted.lines),
            );
        }
        if let Some(text) = deleted.text {
            document.text = text;
        }
    }

    fn mask(&self, document: &mut Document, tally: &mut Tally) {
        let (text, masked) = mask(&document.text, &self.corpus.settings.masking);
        tally.replaced(("mask", "email"), masked.emails);
        tally.replaced(("mask", "ip-address"), masked.ip_addresses);
        tally.replaced(("mask", "key"), masked.keys);
        if let Some(text) = text {
            document.text = text;
        }
    }
}

impl Summary {
    fn count(&mut self, document: &Document) {
        let bytes = document.text.len() as u64;
        self.documents += 1;
        self.bytes += bytes;
        *self.bytes_by_category.entry(document.category).or_default() += bytes;
        if document.split == Split::HeldOut {
            self.held_out_documents += 1;
            self.held_out_bytes += bytes;
        }
    }
}

/// For each document the number of kept ones before it.
fn ranks(fates: &[Fate]) -> Vec<u64> {
    let rank = |kept: &mut u64, fate: &Fate| {
        let rank = *kept;
        *kept += u64::from(*fate == Fate::Keep);
        Some(rank)
    };
    fates.iter().scan(0, rank).collect()
}

fn write_examples(path: &Path, examples: &[&Example]) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for example in examples {
        let json = |source| FsError::Json { path: path.to_owned(), source };
        serde_json::to_writer(&mut bytes, example).map_err(json)?;
        bytes.push(b'\n');
    }
    Ok(base::write_atomic(path, &bytes)?)
}
