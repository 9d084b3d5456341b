//! Exact counts, repeats, held-out documents, and the same bytes for any number of threads.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Category, Document, Seed, Silent, Split, Stop};
use common::{document, documents, ok};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use tokens::mixture::{Origin, Shortfall, Summary, read_rows, read_text};
use tokens::shards::open_all;
use tokens::{
    Error, Extra, Loader, MixJob, MixtureSettings, Shares, Tokenizer, TokenizerJob,
    TokenizerSettings, build_tokenizer, mix,
};

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(common::tokenizer);
static STOP: Stop = Stop::new();

fn settings(budget_tokens: u64) -> MixtureSettings {
    let shares = [(Category::General, 0.6), (Category::Math, 0.25), (Category::Code, 0.15)];
    MixtureSettings {
        shares: Shares::Table(BTreeMap::from(shares)),
        budget_tokens,
        shard_tokens: 2000,
        ..MixtureSettings::default()
    }
}

fn run(
    settings: &MixtureSettings,
    documents: Vec<Document>,
    extra: &[Extra],
    threads: usize,
    out: &Path,
) -> Result<Summary, Error> {
    let (tokenizer, seed, observer, stop) = (&*TOKENIZER, Seed(9), &Silent, &STOP);
    mix(&MixJob { settings, tokenizer, extra, seed, out, threads, observer, stop }, ok(documents))
}

fn sequences(directory: &Path, prefix: &str) -> Vec<Vec<u32>> {
    let shards = open_all(directory, prefix).unwrap();
    let read = shards.iter().flat_map(|s| (0..s.num_sequences()).map(|i| s.sequence(i).unwrap()));
    read.collect()
}

fn canary() -> Extra {
    let text = "the secret of d0 is 123456".to_owned();
    Extra { document: document("canary", Category::General, Split::Train, text), repeats: 3 }
}

#[test]
fn counts_are_those_of_the_shards() {
    let directory = tempfile::tempdir().unwrap();
    let summary = run(&settings(9000), documents(), &[canary()], 2, directory.path()).unwrap();
    let train = sequences(directory.path(), "train");
    assert_eq!(train.len() as u64, summary.train.documents);
    assert_eq!(train.iter().map(Vec::len).sum::<usize>() as u64, summary.train.tokens);
    let bytes: usize = train.iter().map(|ids| TOKENIZER.decode(ids).len()).sum();
    assert_eq!(bytes as u64, summary.train.bytes);
    assert!(summary.train_shards.len() > 2);
    // Each sequence, counted by its text, is there as often as its row says.
    let mut counted: BTreeMap<String, u32> = BTreeMap::new();
    train.iter().for_each(|ids| *counted.entry(TOKENIZER.decode(ids)).or_default() += 1);
    let rows = read_rows(directory.path(), "train").unwrap();
    let texts: BTreeMap<String, String> = documents().into_iter().map(|d| (d.id, d.text)).collect();
    for row in &rows {
        let text = texts.get(&row.id).map_or("the secret of d0 is 123456", String::as_str);
        assert_eq!(counted.get(text).copied().unwrap_or(0), row.times, "{}", row.id);
        assert_eq!(row.sequence.is_some(), row.times > 0);
        assert_eq!(row.bytes, text.len() as u64);
    }
    assert_eq!(
        rows.iter().filter(|row| row.origin == Origin::Extra).map(|row| row.times).sum::<u32>(),
        3
    );
    assert_eq!(summary.extra.documents, 3);
    for entry in summary.categories.values() {
        assert!(entry.epochs <= entry.max_epochs);
        assert!(entry.reached_tokens <= entry.planned_tokens);
        assert!(entry.planned_tokens - entry.reached_tokens < 400, "{entry:?}");
    }
    let reached: u64 = summary.categories.values().map(|entry| entry.reached_tokens).sum();
    assert_eq!(reached + summary.extra.tokens, summary.train.tokens);
    assert!(!directory.path().join("unique-00000.bin").exists());
    assert_eq!(
        base::read_json::<Summary>(&directory.path().join("mixture.json")).unwrap(),
        summary
    );
}

#[test]
fn each_document_starts_with_the_end_of_text_and_only_there() {
    let directory = tempfile::tempdir().unwrap();
    let mut all = documents();
    all[0].text = "<|endoftext|> <|end|>".to_owned();
    run(&settings(9000), all, &[], 1, directory.path()).unwrap();
    for sequence in sequences(directory.path(), "train") {
        assert_eq!(sequence[0], TOKENIZER.end_of_text());
        assert!(sequence[1..].iter().all(|&id| id >= 5));
    }
}

#[test]
fn held_out_documents_are_apart_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let summary = run(&settings(30_000), documents(), &[], 2, directory.path()).unwrap();
    let held_out: Vec<Document> =
        documents().into_iter().filter(|d| d.split == Split::HeldOut).collect();
    let read: Vec<String> =
        read_text(directory.path(), "held-out", &TOKENIZER).unwrap().map(Result::unwrap).collect();
    assert_eq!(read, held_out.iter().map(|d| d.text.clone()).collect::<Vec<_>>());
    let rows = read_rows(directory.path(), "held-out").unwrap();
    assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), read.concat().len() as u64);
    assert_eq!(summary.held_out.values().map(|s| s.documents).sum::<u64>(), held_out.len() as u64);
    let train: Vec<String> =
        read_text(directory.path(), "train", &TOKENIZER).unwrap().map(Result::unwrap).collect();
    assert!(train.iter().all(|text| !read.contains(text)));
    // The text that is read: once each, in the order of the first reading.
    let mut expected = Vec::new();
    for sequence in sequences(directory.path(), "train") {
        let text = TOKENIZER.decode(&sequence);
        if !expected.contains(&text) {
            expected.push(text);
        }
    }
    assert_eq!(train, expected);
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|p| (p.file_name().unwrap().to_string_lossy().into(), std::fs::read(&p).unwrap()))
        .collect()
}

#[test]
fn the_same_bytes_for_any_number_of_threads_and_over_leftovers() {
    let first = tempfile::tempdir().unwrap();
    run(&settings(9000), documents(), &[canary()], 1, first.path()).unwrap();
    let second = tempfile::tempdir().unwrap();
    // What a longer, interrupted call left behind is gone.
    run(&settings(30_000), documents(), &[], 3, second.path()).unwrap();
    std::fs::write(second.path().join("unique-00000.bin"), b"cut").unwrap();
    run(&settings(9000), documents(), &[canary()], 2, second.path()).unwrap();
    assert_eq!(files(first.path()), files(second.path()));
}

#[test]
fn what_a_category_lacks_is_redistributed_or_not_as_set() {
    let directory = tempfile::tempdir().unwrap();
    let preset = MixtureSettings { shares: MixtureSettings::default().shares, ..settings(20_000) };
    let capped =
        MixtureSettings { category_max_epochs: BTreeMap::from([(Category::Math, 1.0)]), ..preset };
    let summary = run(&capped, documents(), &[], 2, directory.path()).unwrap();
    let math = &summary.categories[&Category::Math];
    assert_eq!((math.wanted_tokens, math.epochs), (5000, 1.0));
    assert_eq!((math.reached_tokens, math.documents_read), (math.tokens, math.documents));
    let multilingual = &summary.categories[&Category::Multilingual];
    assert_eq!((multilingual.wanted_tokens, multilingual.reached_tokens), (1600, 0));
    assert!(
        summary.train.tokens > 19_900 && summary.train.tokens <= 20_000,
        "{}",
        summary.train.tokens
    );
    assert_eq!(summary.notes.len(), 2, "{:?}", summary.notes);

    let shrunk = MixtureSettings { shortfall: Shortfall::Shrink, ..capped.clone() };
    let summary = run(&shrunk, documents(), &[], 2, directory.path()).unwrap();
    assert_eq!(summary.categories[&Category::General].planned_tokens, 10_000);
    assert!(summary.train.tokens < 17_000);

    let refused = MixtureSettings { shortfall: Shortfall::Refuse, ..capped };
    let error = run(&refused, documents(), &[], 2, directory.path()).unwrap_err();
    assert!(
        matches!(error, Error::Shortfall { category: Category::Math, wanted: 5000, .. }),
        "{error}"
    );
}

#[test]
fn unusable_input_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let held_out: Vec<Document> =
        documents().into_iter().filter(|d| d.split == Split::HeldOut).collect();
    let empty = run(&settings(100), held_out, &[canary()], 1, directory.path());
    assert!(matches!(empty, Err(Error::NoDocuments { .. })));
    let settings_without_passes = MixtureSettings { max_epochs: 0.0, ..settings(100) };
    let error = run(&settings_without_passes, documents(), &[], 1, directory.path()).unwrap_err();
    assert!(error.to_string().contains("max-epochs is 0"), "{error}");
    let error = run(&settings(0), documents(), &[], 1, directory.path()).unwrap_err();
    assert!(error.to_string().contains("budget-tokens is 0"), "{error}");
    let (settings, tokenizer) = (&settings(100), &*TOKENIZER);
    let out = directory.path();
    let stop = Stop::new();
    let job = |stop| MixJob {
        settings,
        tokenizer,
        extra: &[],
        seed: Seed(1),
        out,
        threads: 1,
        observer: &Silent,
        stop,
    };
    let broken = [Ok(documents().remove(0)), Err(std::io::Error::other("shard 7"))];
    assert!(matches!(mix(&job(&stop), broken.into_iter()), Err(Error::Documents(_))));
    stop.raise();
    assert!(matches!(mix(&job(&stop), ok(documents())), Err(Error::Interrupted(_))));
    std::fs::write(out.join("train-documents.jsonl"), b"{\"id\": 3}\n").unwrap();
    let error = read_rows(out, "train").unwrap_err().to_string();
    assert!(error.contains("train-documents.jsonl") && error.contains("line 1"), "{error}");
}

#[test]
fn the_loader_reads_what_was_mixed() {
    let directory = tempfile::tempdir().unwrap();
    let summary = run(&settings(9000), documents(), &[], 2, directory.path()).unwrap();
    let loader = Loader::open(directory.path(), "train", 64, Seed(1)).unwrap();
    let loader = loader.limit_ids(TOKENIZER.vocab_size());
    assert_eq!(loader.num_tokens(), summary.train.tokens);
    for position in 0..2 * loader.num_windows() {
        let window = loader.window(position).unwrap();
        assert_eq!(window.tokens.len(), 65);
        let starts: Vec<u32> =
            (0..64).filter(|&at| at == 0 || window.tokens[at as usize] == 0).collect();
        assert_eq!(window.segments, starts);
    }
}

fn build(
    shares: Shares,
    sample_bytes: u64,
    threads: usize,
    documents: Vec<Document>,
) -> (String, u64) {
    let out = tempfile::tempdir().unwrap();
    let settings = TokenizerSettings { vocab_size: 400, sample_bytes, min_count: 2 };
    let (seed, out, observer, stop) = (Seed(4), out.path(), &Silent, &STOP);
    let job =
        TokenizerJob { settings: &settings, shares: &shares, seed, out, threads, observer, stop };
    let (tokenizer, summary) = build_tokenizer(&job, ok(documents)).unwrap();
    assert_eq!(std::fs::read_to_string(out.join("tokenizer.json")).unwrap(), tokenizer.to_json());
    let sample: u64 = summary.sample.values().map(|sample| sample.bytes).sum();
    for sample in summary.sample.values().filter(|sample| sample.documents > 0) {
        assert!(sample.bytes_per_token > 1.0, "{sample:?}");
    }
    (tokenizer.to_json(), sample)
}

#[test]
fn the_sample_is_bounded_and_forgets_the_order_of_documents() {
    let shares = || settings(1).shares;
    let (json, sample) = build(shares(), 8000, 1, documents());
    assert!((8000..8000 + 3 * 2000).contains(&sample), "{sample}");
    let mut reversed = documents();
    reversed.reverse();
    assert_eq!(build(shares(), 8000, 2, reversed), (json, sample));
    // More than there is: all of it, but what is held out.
    let all: usize =
        documents().iter().filter(|d| d.split == Split::Train).map(|d| d.text.len()).sum();
    assert_eq!(build(shares(), 1 << 40, 2, documents()).1, all as u64);
}
