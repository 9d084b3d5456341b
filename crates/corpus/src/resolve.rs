//! From settings to files: variables in paths, patterns, limits, pieces of work. What this module
//! gives needs no further checks.

use crate::error::Error;
use crate::extract::Drop;
use crate::filter::Blocklist;
use crate::settings::{Kind, Settings, Source, WhenMissing};
use base::{Hasher, Seed};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use walkdir::WalkDir;

/// A source with its files found and chosen.
pub(crate) struct Resolved<'a> {
    pub(crate) settings: &'a Source,
    pub(crate) input: Input,
    pub(crate) drop: Drop,
}

/// What a source, or a piece of it, reads.
#[derive(Clone)]
pub(crate) enum Input {
    /// Files, sorted by their relative path.
    Files(Vec<InputFile>),
    /// Generated documents by number.
    Generated(Range<u64>),
}

/// A file that will be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InputFile {
    /// Path relative to the root, with `/`: the file's name in every output.
    pub(crate) relative: String,
    /// The root under which it was found.
    pub(crate) root: PathBuf,
    /// Its size on disk.
    pub(crate) bytes: u64,
}

impl InputFile {
    pub(crate) fn path(&self) -> PathBuf {
        if self.root.is_file() { self.root.clone() } else { self.root.join(&self.relative) }
    }
}

/// Everything that a build needs to know, found and checked.
pub(crate) struct Corpus<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) seed: Seed,
    pub(crate) sources: Vec<Resolved<'a>>,
    pub(crate) blocklist: Blocklist,
}

impl<'a> Corpus<'a> {
    pub(crate) fn resolve(
        settings: &'a Settings,
        base_dir: &Path,
        seed: Seed,
    ) -> Result<Self, Error> {
        check(settings)?;
        let resolve = |(i, s)| resolve_source(i, s, base_dir, seed);
        let sources = settings.sources.iter().enumerate().map(resolve).collect::<Result<_, _>>()?;
        let blocklist = Blocklist::load(&settings.blocklists, base_dir)?;
        Ok(Self { settings, seed, sources, blocklist })
    }

    /// The work cut into pieces that do not depend on the number of threads.
    pub(crate) fn pieces(&self) -> Vec<(&Resolved<'a>, Input)> {
        let cut = |source| cut(source).into_iter().map(move |input| (source, input));
        self.sources.iter().flat_map(cut).collect()
    }
}

const PIECE_BYTES: u64 = 4 << 20;
const PIECE_DOCUMENTS: u64 = 500;
const DEFAULT_GENERATED: u64 = 2_000;

fn cut(source: &Resolved<'_>) -> Vec<Input> {
    match &source.input {
        Input::Generated(range) => (range.start..range.end)
            .step_by(PIECE_DOCUMENTS as usize)
            .map(|from| Input::Generated(from..(from + PIECE_DOCUMENTS).min(range.end)))
            .collect(),
        Input::Files(files) => {
            let mut pieces: Vec<Vec<InputFile>> = Vec::new();
            let mut room = 0;
            for file in files {
                if file.bytes >= room {
                    pieces.push(Vec::new());
                    room = PIECE_BYTES;
                }
                room = room.saturating_sub(file.bytes);
                pieces.last_mut().into_iter().for_each(|piece| piece.push(file.clone()));
            }
            pieces.into_iter().map(Input::Files).collect()
        }
    }
}

fn check(settings: &Settings) -> Result<(), Error> {
    let bad = |key: String, problem: &str| Err(Error::BadSetting { key, problem: problem.into() });
    if settings.sources.is_empty() {
        return bad("corpus.sources".into(), "is empty; name at least one [[corpus.sources]]");
    }
    if !(0.0..1.0).contains(&settings.held_out_share) {
        return bad("corpus.held-out-share".into(), "must be at least 0 and below 1");
    }
    if settings.shard_bytes == 0 {
        return bad("corpus.shard-bytes".into(), "must be above 0");
    }
    if settings.dedup.by_line.bucket_documents == 0 {
        return bad("corpus.dedup.by-line.bucket-documents".into(), "must be above 0");
    }
    for (i, source) in settings.sources.iter().enumerate() {
        let key = |name: &str| format!("corpus.sources[{i}].{name}");
        if source.name.is_empty() {
            return bad(key("name"), "is empty");
        }
        if settings.sources[..i].iter().any(|other| other.name == source.name) {
            return bad(
                key("name"),
                &format!("{:?} is the name of an earlier source", source.name),
            );
        }
        if source.kind != Kind::Arithmetic && source.path.is_empty() {
            return bad(key("path"), "is empty; a source that is not generated needs a path");
        }
    }
    Ok(())
}

fn resolve_source<'a>(
    index: usize,
    settings: &'a Source,
    base_dir: &Path,
    seed: Seed,
) -> Result<Resolved<'a>, Error> {
    let key = |name: &str| format!("corpus.sources[{index}].{name}");
    let drop = Drop::new(&settings.drop_elements)
        .map_err(|problem| Error::BadSetting { key: key("drop-elements"), problem })?;
    if settings.kind == Kind::Arithmetic {
        let count = settings.max_documents.unwrap_or(DEFAULT_GENERATED);
        return Ok(Resolved { settings, input: Input::Generated(0..count), drop });
    }
    let include = globs(&settings.include)
        .map_err(|problem| Error::BadSetting { key: key("include"), problem })?;
    let exclude = globs(&settings.exclude)
        .map_err(|problem| Error::BadSetting { key: key("exclude"), problem })?;
    let (roots, hint) = roots(settings, base_dir)?;
    let mut files = Vec::new();
    for root in &roots {
        if !root.exists() && settings.when_missing == WhenMissing::Refuse {
            return Err(missing(settings, root, &hint));
        }
        files.extend(list(root).into_iter().filter(|file| {
            let chosen = settings.include.is_empty() || include.is_match(&file.relative);
            let single = root.is_file();
            single
                || (chosen
                    && !exclude.is_match(&file.relative)
                    && readable(settings, &file.relative))
        }));
    }
    if files.is_empty() && settings.when_missing == WhenMissing::Refuse {
        return Err(Error::NoFiles {
            name: settings.name.clone(),
            path: roots.into_iter().next().unwrap_or_default(),
        });
    }
    let files = choose(files, settings, seed);
    Ok(Resolved { settings, input: Input::Files(files), drop })
}

/// Patterns over relative paths; `*` stays inside a folder, `**` crosses them.
fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        set.add(glob.map_err(|error| error.to_string())?);
    }
    set.build().map_err(|error| error.to_string())
}

fn readable(settings: &Source, relative: &str) -> bool {
    let name = crate::source::without_compression(relative);
    let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
    match settings.kind {
        Kind::Html => matches!(extension, "html" | "htm" | "xhtml"),
        Kind::Code => extension == "rs" || !settings.include.is_empty(),
        Kind::Text => matches!(extension, "txt" | "md") || !settings.include.is_empty(),
        Kind::Jsonl => matches!(extension, "jsonl" | "ndjson" | "json"),
        Kind::Documents => extension == "parquet",
        Kind::Arithmetic => false,
    }
}

fn list(root: &Path) -> Vec<InputFile> {
    if root.is_file() {
        let relative = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = root.metadata().map_or(0, |m| m.len());
        return vec![InputFile { relative, root: root.to_owned(), bytes }];
    }
    let entries = WalkDir::new(root).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_file()).filter_map(|entry| {
        let relative = entry.path().strip_prefix(root).ok()?;
        let parts = relative.components().map(|c| c.as_os_str().to_string_lossy());
        let relative = parts.collect::<Vec<_>>().join("/");
        let bytes = entry.metadata().map_or(0, |m| m.len());
        Some(InputFile { relative, root: root.to_owned(), bytes })
    });
    files.collect()
}

/// The files within the source's limits. They are taken in the order of a hash of path and seed; one
/// that no longer fits is passed over. The result is sorted by path.
fn choose(mut files: Vec<InputFile>, settings: &Source, seed: Seed) -> Vec<InputFile> {
    let seed = seed.derive("files").derive(&settings.name);
    let draw = |file: &InputFile| {
        Hasher::new().field(&seed.0.to_le_bytes()).field(file.relative.as_bytes()).finish().prefix()
    };
    if settings.max_bytes.is_some() || settings.max_documents.is_some() {
        files.sort_by_cached_key(|file| (draw(file), file.relative.clone()));
        let mut bytes = settings.max_bytes.unwrap_or(u64::MAX);
        let mut count = settings.max_documents.unwrap_or(u64::MAX);
        files.retain(|file| {
            let fits = file.bytes <= bytes && count > 0;
            if fits {
                bytes -= file.bytes;
                count -= 1;
            }
            fits
        });
    }
    files.sort();
    files
}

fn missing(settings: &Source, path: &Path, hint: &str) -> Error {
    Error::SourceMissing { name: settings.name.clone(), path: path.to_owned(), hint: hint.into() }
}

const RUST_DOCS: &str = "${rust-docs}";
const CARGO_REGISTRY: &str = "${cargo-registry}";

/// The directories or the file that a source's path names, and what to do if they are missing.
fn roots(settings: &Source, base_dir: &Path) -> Result<(Vec<PathBuf>, String), Error> {
    let path = settings.path.as_str();
    if let Some(rest) = path.strip_prefix(RUST_DOCS) {
        let hint = "get the documentation with `rustup component add rust-docs`, or point the source elsewhere";
        let docs = rust_docs().ok_or_else(|| missing(settings, Path::new(path), hint))?;
        return Ok((vec![docs.join(rest.trim_start_matches('/'))], hint.into()));
    }
    if let Some(rest) = path.strip_prefix(CARGO_REGISTRY) {
        let hint = "cargo fills its registry when it builds something; run `cargo fetch` in any project, \
                    or point the source elsewhere";
        let found = cargo_registries();
        if found.is_empty() {
            return Err(missing(settings, Path::new(path), hint));
        }
        let join = |root: PathBuf| root.join(rest.trim_start_matches('/'));
        return Ok((found.into_iter().map(join).collect(), hint.into()));
    }
    let hint = "check the path; a relative one starts at the recipe's directory";
    let expanded = match path.strip_prefix('~') {
        Some(rest) => home().unwrap_or_default().join(rest.trim_start_matches('/')),
        None => base_dir.join(path),
    };
    Ok((vec![expanded], hint.into()))
}

fn home() -> Option<PathBuf> {
    std::env::home_dir()
}

/// The HTML documentation of the active toolchain.
fn rust_docs() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| Path::new(sysroot.trim()).join("share/doc/rust/html"))
}

/// The unpacked sources of each registry that Cargo has used, sorted.
fn cargo_registries() -> Vec<PathBuf> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(root) = cargo_home.or_else(|| home().map(|h| h.join(".cargo"))) else {
        return Vec::new();
    };
    let entries =
        std::fs::read_dir(root.join("registry/src")).into_iter().flatten().filter_map(Result::ok);
    let mut roots: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    roots.sort();
    roots
}
