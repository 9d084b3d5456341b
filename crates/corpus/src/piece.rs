//! The first task: one piece of input becomes one shard of documents and its counts.
//!
//! The shard's name carries the digest of everything that decides its content, so a task whose shard
//! is there and whole is not done again.

use crate::build::ALGORITHM;
use crate::error::Error;
use crate::extract::{Extracted, extract_without};
use crate::filter::{is_interface_page, normalise};
use crate::ledger::Tally;
use crate::resolve::{Corpus, Input, Resolved};
use crate::settings::Kind;
use crate::source::{Licences, Raw, arithmetic, read_file};
use crate::store::ShardWriter;
use crate::{inputs, split};
use base::{Digest, Document, FsError, Hasher, Stop};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A finished piece: beside its shard lies this as JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Digest of the shard.
    digest: Digest,
    pub(crate) tally: Tally,
}

/// Where a piece's shard is, with its counts.
pub(crate) type Done = (PathBuf, Tally);

/// Does the task, or takes what an earlier run left.
pub(crate) fn read_piece(
    corpus: &Corpus<'_>,
    index: usize,
    source: &Resolved<'_>,
    input: &Input,
    work: &Path,
    stop: &Stop,
) -> Result<Done, Error> {
    stop.check()?;
    let key = key(corpus, source, input)?;
    let shard = work.join(format!("read-{index:05}-{}.parquet", key.short()));
    let counts = shard.with_extension("json");
    if let Some(piece) = finished(&shard, &counts) {
        return Ok((shard, piece.tally));
    }
    let mut writer = ShardWriter::create(&shard)?;
    let mut tally = Tally::new(corpus.settings.examples_per_rule);
    let mut licences = Licences::default();
    let mut admit = |raw: Raw, tally: &mut Tally| match admit(corpus, source, raw, tally) {
        Some(document) => writer.push(document),
        None => Ok(()),
    };
    match input {
        Input::Generated(range) => {
            for number in range.clone() {
                let raw = arithmetic::document(corpus.seed, corpus.settings.held_out_share, number);
                admit(raw, &mut tally)?;
            }
        }
        Input::Files(files) => {
            for file in files {
                stop.check()?;
                let count = tally.source(&source.settings.name);
                count.files += 1;
                count.bytes_read += file.bytes;
                read_file(source.settings, file, &mut licences, &mut tally, &mut admit)?;
            }
        }
    }
    writer.commit()?;
    let digest = Digest::of_file(&shard).map_err(FsError::io("read", &shard))?;
    base::write_json(&counts, &Piece { digest, tally: tally.clone() })?;
    Ok((shard, tally))
}

/// What decides the content of a piece.
fn key(corpus: &Corpus<'_>, source: &Resolved<'_>, input: &Input) -> Result<Digest, Error> {
    let settings = serde_json::json!({
        "source": source.settings,
        "blocklists": corpus.settings.blocklists,
        "held-out-share": corpus.settings.held_out_share,
        "examples": corpus.settings.examples_per_rule,
    });
    let mut hasher = Hasher::new();
    hasher
        .field(&ALGORITHM.to_le_bytes())
        .field(settings.to_string().as_bytes())
        .field(&corpus.blocklist.digest().0)
        .field(&corpus.seed.0.to_le_bytes())
        .field(&inputs::digest(input)?.0);
    Ok(hasher.finish())
}

fn finished(shard: &Path, counts: &Path) -> Option<Piece> {
    if !shard.exists() {
        return None;
    }
    let piece: Piece = base::read_json(counts).ok()?;
    (Digest::of_file(shard).ok()? == piece.digest).then_some(piece)
}

/// From a raw document to a document, through the rules that need its address and its markup.
fn admit(
    corpus: &Corpus<'_>,
    source: &Resolved<'_>,
    mut raw: Raw,
    tally: &mut Tally,
) -> Option<Document> {
    let settings = source.settings;
    let category = raw.category.unwrap_or_else(|| settings.category());
    let bytes = raw.text.len() as u64;
    tally.source(&settings.name).documents_read += 1;
    tally.left("input", category, bytes);
    if raw.url.is_empty() {
        raw.url.clone_from(&raw.place);
    }
    let refuse = |tally: &mut Tally, rule, raw: &Raw, reason: String| {
        tally.drop_text(rule, &settings.name, &raw.url, &raw.text, reason);
        None
    };
    if let Some((rule, entry)) = corpus.blocklist.blocks(&raw.url) {
        return refuse(tally, ("blocklist", rule), &raw, format!("covered by {entry}"));
    }
    tally.left("blocklist", category, bytes);
    if settings.kind == Kind::Html {
        if is_interface_page(&raw.url) {
            return refuse(
                tally,
                ("extract", "interface-page"),
                &raw,
                "named as part of the site's machinery".into(),
            );
        }
        let page = match extract_without(&raw.text, &source.drop) {
            Extracted::Page(page) => page,
            Extracted::Redirect => {
                return refuse(tally, ("extract", "redirect"), &raw, "a redirection".into());
            }
            Extracted::NoIndex => {
                return refuse(
                    tally,
                    ("extract", "noindex"),
                    &raw,
                    "asks not to be indexed".into(),
                );
            }
            Extracted::Empty => {
                return refuse(
                    tally,
                    ("extract", "empty"),
                    &raw,
                    "no text in its main part".into(),
                );
            }
        };
        if settings.site.is_empty() {
            raw.url = page.canonical.unwrap_or(raw.url);
        }
        raw.title = page.title;
        raw.fetched = page.modified;
        raw.language = settings.language.clone().or(page.language);
        raw.text = page.text;
    }
    let is_code = settings.kind == Kind::Code;
    let (text, controls) = normalise(&raw.text, is_code);
    tally.replaced(("read", "control-characters"), controls);
    if text.trim().is_empty() {
        return refuse(tally, ("extract", "empty"), &raw, "no text".into());
    }
    tally.left("extract", category, text.len() as u64);
    let group = raw.group.unwrap_or_else(|| split::group(&raw.url));
    let side = raw
        .split
        .unwrap_or_else(|| split::side(corpus.seed, corpus.settings.held_out_share, &group));
    let id = Hasher::new()
        .field(settings.name.as_bytes())
        .field(raw.url.as_bytes())
        .field(raw.place.as_bytes())
        .finish();
    Some(Document {
        id: id.to_string()[..16].to_owned(),
        source: settings.name.clone(),
        url: raw.url,
        category,
        language: raw.language.or_else(|| settings.language.clone()).unwrap_or_else(|| "en".into()),
        licence: raw.licence.unwrap_or_else(|| settings.licence.clone()),
        fetched: raw.fetched,
        split: side,
        title: raw.title,
        text,
    })
}
