//! Readers: from a file, or a generator, to raw documents. A reader never fails on bad content: it
//! counts it and goes on.

pub mod arithmetic;
mod code;
mod compressed;
mod dates;
mod jsonl;
mod whole;

pub(crate) use compressed::without_compression;
pub(crate) use dates::seconds;

use crate::error::Error;
use crate::ledger::Tally;
use crate::resolve::InputFile;
use crate::settings::{Kind, Source};
use crate::store;
use base::{Category, Split};

/// A document before its address was looked at and its text extracted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Raw {
    /// Address, or empty where the input has none.
    pub(crate) url: String,
    /// Where it was read: the file's relative path, with the line where there are several.
    pub(crate) place: String,
    pub(crate) text: String,
    pub(crate) title: String,
    pub(crate) fetched: i64,
    pub(crate) language: Option<String>,
    pub(crate) licence: Option<String>,
    pub(crate) category: Option<Category>,
    /// The group for the split, where the reader knows better than the address.
    pub(crate) group: Option<String>,
    /// The side of the split, where it was decided before.
    pub(crate) split: Option<Split>,
}

/// Takes raw documents one by one.
pub(crate) type Sink<'a> = dyn FnMut(Raw, &mut Tally) -> Result<(), Error> + 'a;

/// Reads one file of a source.
pub(crate) fn read_file(
    source: &Source,
    file: &InputFile,
    licences: &mut code::Licences,
    tally: &mut Tally,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    match source.kind {
        Kind::Html | Kind::Text => whole::read(source, file, tally, sink),
        Kind::Code => code::read(source, file, licences, tally, sink),
        Kind::Jsonl => jsonl::read(source, file, tally, sink),
        Kind::Documents => read_documents(source, file, tally, sink),
        Kind::Arithmetic => Ok(()),
    }
}

pub(crate) use code::Licences;

/// Reads a shard of this stage again. A shard that cannot be read is counted; the documents before the
/// damage are kept.
fn read_documents(
    source: &Source,
    file: &InputFile,
    tally: &mut Tally,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let documents = match store::read_shard(&file.path(), None) {
        Ok(documents) => documents,
        Err(error) => {
            tally.drop_text(
                ("read", "bad-shard"),
                &source.name,
                &file.relative,
                "",
                error.to_string(),
            );
            return Ok(());
        }
    };
    for document in documents {
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                tally.drop_text(
                    ("read", "bad-shard"),
                    &source.name,
                    &file.relative,
                    "",
                    error.to_string(),
                );
                return Ok(());
            }
        };
        let raw = Raw {
            url: document.url,
            place: document.id,
            text: document.text,
            title: document.title,
            fetched: document.fetched,
            language: Some(document.language),
            licence: Some(document.licence),
            category: Some(document.category),
            group: None,
            split: Some(document.split),
        };
        sink(raw, tally)?;
    }
    Ok(())
}
