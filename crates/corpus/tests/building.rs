//! The stage as a whole, through its public interface.
#![allow(clippy::unwrap_used)]

use base::{Category, Document, Observer, Progress, Seed, Silent, Split, Stop};
use corpus::{Error, Exempt, Kind, Settings, Source, Summary};
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

const PROSE: &str = "The keeper of the lamps walks to the square and lights all of them. ";

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

fn settings(sources: Vec<Source>) -> Settings {
    let mut settings = Settings { sources, ..Settings::default() };
    settings.quality.prose.min_words = 5;
    settings
}

fn build(
    settings: &Settings,
    base: &Path,
    threads: usize,
) -> Result<(Summary, Vec<Document>, TempDir), Error> {
    let out = tempfile::tempdir().unwrap();
    let summary =
        corpus::build(settings, base, Seed(7), out.path(), threads, &Silent, &Stop::new())?;
    let documents = corpus::read(out.path())?.collect::<Result<_, _>>()?;
    Ok((summary, documents, out))
}

fn files_of(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    std::fs::read_dir(directory).unwrap().map(|e| entry(e.unwrap())).collect()
}

fn dropped(summary: &Summary, stage: &str, rule: &str) -> u64 {
    summary
        .ledger
        .rules
        .iter()
        .find(|r| r.stage == stage && r.rule == rule)
        .unwrap()
        .documents_dropped
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn jsonl(lines: impl IntoIterator<Item = (String, String, &'static str)>) -> Vec<u8> {
    let line = |(text, url, date): (String, String, &str)| {
        serde_json::json!({"text": text, "url": url, "timestamp": date}).to_string() + "\n"
    };
    lines.into_iter().map(line).collect::<String>().into_bytes()
}

fn many(count: usize) -> Vec<u8> {
    let text = |i: usize| {
        format!(
            "{PROSE}It is number {i}.\nSubscribe to the letter of the town today.\nEnd of {i} and of all."
        )
    };
    jsonl((0..count).map(|i| (text(i), format!("https://a.org/{i}"), "2020-01-01")))
}

fn mixed() -> (TempDir, Settings) {
    let page = |i: usize| {
        format!("<main><h1>Page {i}</h1><p>{PROSE}{i}</p><pre>let a = {i};</pre></main>")
    };
    let pages: Vec<(String, String)> =
        (0..40).map(|i| (format!("html/{i}.html"), page(i))).collect();
    let lines = many(300);
    let code = "fn main() {\n    println!(\"hello\");\n}\n".repeat(5);
    let mut files: Vec<(&str, &[u8])> =
        pages.iter().map(|(n, t)| (n.as_str(), t.as_bytes())).collect();
    files.extend([("lines.jsonl", lines.as_slice()), ("code/src/a.rs", code.as_bytes())]);
    let sources = vec![
        Source::new("html", Kind::Html, "html"),
        Source::new("lines", Kind::Jsonl, "lines.jsonl"),
        Source::new("code", Kind::Code, "code"),
        Source { max_documents: Some(1_200), ..Source::new("sums", Kind::Arithmetic, "") },
    ];
    (folder(&files), settings(sources))
}

#[test]
fn the_same_bytes_with_any_number_of_threads() {
    let (input, settings) = mixed();
    let (one, documents, out_one) = build(&settings, input.path(), 1).unwrap();
    let (three, _, out_three) = build(&settings, input.path(), 3).unwrap();
    assert_eq!(files_of(out_one.path()), files_of(out_three.path()));
    assert_eq!((&one, one.documents), (&three, documents.len() as u64));
    let mut ids: Vec<&str> = documents.iter().map(|d| d.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), documents.len());
}

/// Raises a stop after some reports of progress.
struct StopsAfter<'a>(std::sync::atomic::AtomicU64, &'a Stop);

impl Observer for StopsAfter<'_> {
    fn progress(&self, _: Progress) {
        if self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            self.1.raise();
        }
    }
    fn note(&self, _: &str) {}
}

#[test]
fn interrupted_anywhere_it_goes_on_to_the_same_bytes() {
    let (input, settings) = mixed();
    let (_, _, whole) = build(&settings, input.path(), 2).unwrap();
    let out = tempfile::tempdir().unwrap();
    for reports in 1..5 {
        let stop = Stop::new();
        let observer = StopsAfter(reports.into(), &stop);
        let result =
            corpus::build(&settings, input.path(), Seed(7), out.path(), 2, &observer, &stop);
        assert!(matches!(result, Err(Error::Interrupted(_))), "{reports}");
    }
    // What a kill in the middle of a write leaves: a shard of work without its end.
    let work = out.path().join("work");
    let shard = std::fs::read_dir(&work)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension() == Some("parquet".as_ref()));
    std::fs::write(shard.unwrap(), b"PAR1").unwrap();
    corpus::build(&settings, input.path(), Seed(7), out.path(), 2, &Silent, &Stop::new()).unwrap();
    assert_eq!(files_of(out.path()), files_of(whole.path()));
}

#[test]
fn the_ledger_adds_up() {
    let (input, settings) = mixed();
    let (summary, documents, _) = build(&settings, input.path(), 2).unwrap();
    let left = |stage: &str| -> u64 {
        summary.ledger.funnel.iter().filter(|row| row.stage == stage).map(|row| row.documents).sum()
    };
    let gone: u64 = summary
        .ledger
        .rules
        .iter()
        .filter(|r| r.stage != "read")
        .map(|r| r.documents_dropped)
        .sum();
    assert_eq!(left("input"), left("mask") + gone);
    assert_eq!(left("mask"), documents.len() as u64);
    let line = summary.ledger.rules.iter().find(|r| r.rule == "line").unwrap();
    assert_eq!(line.lines_dropped, 300);
    let bytes: u64 = documents.iter().map(|d| d.text.len() as u64).sum();
    assert_eq!(
        bytes,
        summary.ledger.funnel.iter().filter(|r| r.stage == "mask").map(|r| r.bytes).sum::<u64>()
    );
}

#[test]
fn the_newest_of_an_address_stays() {
    let text = |word: &str| format!("{PROSE}{word}");
    let lines = jsonl([
        (text("old"), "http://a.org/x/?utm_source=q".into(), "2019-01-01"),
        (text("new"), "https://A.org/x".into(), "2021-01-01"),
        (text("middle"), "https://a.org/x#y".into(), "2020-01-01"),
    ]);
    let input = folder(&[("a.jsonl", &lines)]);
    let (summary, documents, _) =
        build(&settings(vec![Source::new("a", Kind::Jsonl, "a.jsonl")]), input.path(), 1).unwrap();
    assert_eq!(dropped(&summary, "dedup", "url"), 2);
    assert!(documents.len() == 1 && documents[0].text.ends_with("new"));
}

#[test]
fn lines_are_counted_by_bucket() {
    let input = folder(&[("a.jsonl", &many(12))]);
    let mut settings = settings(vec![Source::new("a", Kind::Jsonl, "a.jsonl")]);
    let subscribing = |settings: &Settings| {
        let (_, documents, _) = build(settings, input.path(), 2).unwrap();
        documents.iter().filter(|d| d.text.contains("Subscribe")).count()
    };
    assert_eq!(subscribing(&settings), 0);
    settings.dedup.by_line.bucket_documents = 6;
    assert_eq!(subscribing(&settings), 12);
    settings.dedup.by_line.bucket_documents = 7;
    assert_eq!(subscribing(&settings), 5);
}

#[test]
fn damaged_files_are_counted_and_the_others_survive() {
    let whole = gzip(&many(50));
    let half_page = gzip(format!("<main><p>{}</p></main>", PROSE.repeat(50)).as_bytes());
    let zst = zstd::encode_all(&many(60)[..], 3).unwrap();
    let lone: &[u8] = b"{\"text\":\"\\ud800\"}\n{\"url\":\"x\"}\n\xff\xfe\n\n";
    let input = folder(&[
        ("l/cut.jsonl.gz", &whole[..whole.len() / 2]),
        ("l/cut.jsonl.zst", &zst[..zst.len() / 2]),
        ("l/lone.jsonl", lone),
        ("l/empty.jsonl", b""),
        ("l/good.jsonl", &many(70)[..]),
        ("h/cut.html.gz", &half_page[..half_page.len() / 2]),
        ("h/nul.html", format!("\u{feff}<main><p>{PROSE}\0and\r\nmore</p></main>").as_bytes()),
        ("h/empty.html", b""),
        ("d/documents-00000.parquet", b"PAR1 is not enough"),
    ]);
    let sources = vec![
        Source::new("l", Kind::Jsonl, "l"),
        Source::new("h", Kind::Html, "h"),
        Source::new("d", Kind::Documents, "d"),
    ];
    let (summary, documents, out) = build(&settings(sources), input.path(), 2).unwrap();
    assert_eq!(dropped(&summary, "read", "truncated"), 3);
    assert_eq!(dropped(&summary, "read", "bad-json"), 2);
    assert_eq!(dropped(&summary, "read", "missing-text"), 1);
    assert_eq!(dropped(&summary, "read", "bad-shard"), 1);
    assert!(documents.iter().any(|d| d.url == "https://a.org/69"));
    assert!(documents.iter().any(|d| d.url == "nul.html" && !d.text.contains('\0')));
    let examples = String::from_utf8(files_of(out.path())["examples.jsonl"].clone()).unwrap();
    assert!(examples.contains("lone.jsonl:2") && examples.contains("found url"), "{examples}");
}

#[test]
fn long_lines_are_dropped_alone() {
    let mut lines = vec![b'"'; 3_000_000];
    lines.push(b'\n');
    lines.extend(many(3));
    let input = folder(&[("a.jsonl", &lines)]);
    let source = Source { max_document_bytes: 100_000, ..Source::new("a", Kind::Jsonl, "a.jsonl") };
    let (summary, documents, _) = build(&settings(vec![source]), input.path(), 1).unwrap();
    assert_eq!((dropped(&summary, "read", "too-large"), documents.len()), (1, 3));
}

#[test]
fn errors_name_the_source_and_what_to_do() {
    let input = folder(&[("a.txt", b"too short"), ("x/readme.pdf", b"")]);
    let check = |sources: Vec<Source>, words: &[&str]| {
        let error = build(&settings(sources), input.path(), 1).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    check(
        vec![Source::new("web", Kind::Html, "nowhere")],
        &["\"web\"", "nowhere", "recipe's directory"],
    );
    check(vec![Source::new("web", Kind::Html, "x")], &["\"web\"", "no file"]);
    check(vec![Source::new("t", Kind::Text, "a.txt")], &["no document is left", "quality/words 1"]);
    check(vec![], &["corpus.sources"]);
    check(
        vec![Source { include: vec!["[".into()], ..Source::new("t", Kind::Text, ".") }],
        &["sources[0].include"],
    );
    check(
        vec![Source { drop_elements: vec!["a > b".into()], ..Source::new("t", Kind::Text, ".") }],
        &["drop-elements"],
    );
    check(
        vec![Source::new("a", Kind::Text, "a.txt"), Source::new("a", Kind::Text, "a.txt")],
        &["sources[1].name"],
    );
}

#[test]
fn documents_are_read_again_with_their_split() {
    let (input, mut settings) = mixed();
    settings.held_out_share = 0.3;
    let (_, documents, out) = build(&settings, input.path(), 2).unwrap();
    assert!(documents.iter().any(|d| d.split == Split::HeldOut));
    let again = Settings {
        held_out_share: 0.0,
        ..self::settings(vec![Source::new("old", Kind::Documents, out.path().to_str().unwrap())])
    };
    let (_, second, _) = build(&again, Path::new("."), 2).unwrap();
    let key = |d: &Document| (d.url.clone(), d.text.clone(), d.split == Split::HeldOut, d.category);
    assert_eq!(
        second.iter().map(key).collect::<Vec<_>>(),
        documents.iter().map(key).collect::<Vec<_>>()
    );
}

#[test]
fn limits_choose_by_hash_and_inputs_follow_what_is_read() {
    let text = |i: usize| format!("{PROSE}{i}");
    let files: Vec<(String, String)> =
        (0..50).map(|i| (format!("t/{i:02}.txt"), text(i))).collect();
    let as_bytes: Vec<(&str, &[u8])> =
        files.iter().map(|(n, t)| (n.as_str(), t.as_bytes())).collect();
    let input = folder(&as_bytes);
    let limited =
        settings(vec![Source { max_bytes: Some(800), ..Source::new("t", Kind::Text, "t") }]);
    let digest = |seed| corpus::inputs(&limited, input.path(), Seed(seed)).unwrap();
    let (_, documents, _) = build(&limited, input.path(), 1).unwrap();
    let urls: Vec<String> = documents.iter().map(|d| d.url.clone()).collect();
    assert!(
        (5..50).contains(&urls.len())
            && urls.is_sorted()
            && urls[0..3] != ["00.txt", "01.txt", "02.txt"],
        "{urls:?}"
    );
    let before = digest(7);
    assert_ne!(before, digest(8));
    let untouched =
        (0..50).map(|i| format!("{i:02}.txt")).find(|name| !urls.contains(name)).unwrap();
    std::fs::write(input.path().join("t").join(untouched), text(0)).unwrap();
    assert_eq!(before, digest(7));
    std::fs::write(input.path().join("t").join(&urls[0]), text(99)).unwrap();
    assert_ne!(before, digest(7));
}

#[test]
fn code_takes_licence_and_language_from_its_package() {
    let code = "pub fn a() -> u32 {\n    let answer = 42;\n    answer\n}\n".repeat(4);
    let input = folder(&[
        ("c/a-1.0.0/Cargo.toml", b"[package]\nlicense = \"ISC\"\n"),
        ("c/a-1.0.0/src/lib.rs", code.as_bytes()),
        ("c/a-1.0.0/src/notes.md", b"# no code"),
    ]);
    let source = Source { licence: "unknown".into(), ..Source::new("c", Kind::Code, "c") };
    let (_, documents, _) = build(&settings(vec![source]), input.path(), 1).unwrap();
    let found: Vec<_> = documents
        .iter()
        .map(|d| (d.url.as_str(), d.licence.as_str(), d.language.as_str(), d.category))
        .collect();
    assert_eq!(found, [("a-1.0.0/src/lib.rs", "ISC", "rust", Category::Code)]);
}

#[test]
fn every_rule_meets_something_in_the_tiny_inputs() {
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let mut settings = settings(vec![
        Source::new("docs", Kind::Html, "tiny-data/docs"),
        Source::new("texts", Kind::Text, "tiny-data/text"),
        Source {
            max_document_bytes: 16_384,
            ..Source::new("lines", Kind::Jsonl, "tiny-data/jsonl")
        },
        Source {
            include: vec!["*/src/**/*.rs".into()],
            ..Source::new("code", Kind::Code, "tiny-data/code")
        },
    ]);
    settings.quality.prose.min_words = 20;
    settings.dedup.by_line.exempt.push(Exempt::Headings);
    settings.blocklists.files = vec!["tiny-data/blocklist.txt".into()];
    let (summary, documents, _) = build(&settings, &recipes, 2).unwrap();
    let idle =
        |r: &&corpus::RuleCount| r.documents_dropped + r.documents_changed + r.lines_dropped == 0;
    let names: Vec<&str> =
        summary.ledger.rules.iter().filter(idle).map(|r| r.rule.as_str()).collect();
    assert_eq!(names, ["unreadable", "bad-shard", "emptied"]);
    assert!(documents.len() > 80, "{}", documents.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_reader_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600), kind in 0usize..5, ending in 0usize..3) {
        let (kind, name) = [
            (Kind::Html, "a.html"),
            (Kind::Code, "a.rs"),
            (Kind::Text, "a.txt"),
            (Kind::Jsonl, "a.jsonl"),
            (Kind::Documents, "documents-0.parquet"),
        ][kind];
        // Damaged in the middle of a stream as well as at its beginning.
        let (ending, bytes) = match ending {
            0 => ("", bytes),
            1 => (".gz", { let mut z = gzip(&bytes); let end = z.len() * 2 / 3; z[end..].reverse(); z }),
            _ => (".zst", { let mut z = zstd::encode_all(&bytes[..], 1).unwrap(); let end = z.len() * 2 / 3; z.truncate(end); z }),
        };
        let ending = if kind == Kind::Documents { "" } else { ending };
        let input = folder(&[(&format!("{name}{ending}"), &bytes)]);
        let mut settings = settings(vec![Source::new("a", kind, ".")]);
        settings.quality.prose.min_words = 0;
        match build(&settings, input.path(), 1) {
            Ok(_) | Err(Error::NothingLeft { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
