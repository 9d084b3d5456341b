//! Documents in Parquet: one column a field of [`base::Document`], text compressed with zstd, row
//! groups of about 8 MB of text. The files hold nothing that changes from run to run.

use crate::error::Error;
use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use base::{AtomicFile, Category, Document, FsError, Split};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TEXTS: [&str; 8] =
    ["id", "source", "url", "category", "language", "licence", "split", "title"];
const ROW_GROUP_BYTES: usize = 8 << 20;

fn schema() -> Arc<Schema> {
    let mut fields: Vec<Field> =
        TEXTS.iter().map(|name| Field::new(*name, DataType::Utf8, false)).collect();
    fields.push(Field::new("fetched", DataType::Int64, false));
    fields.push(Field::new("text", DataType::Utf8, false));
    Arc::new(Schema::new(fields))
}

/// A shard being written; it appears under its name only with [`ShardWriter::commit`].
pub(crate) struct ShardWriter {
    path: PathBuf,
    writer: ArrowWriter<AtomicFile>,
    pending: Vec<Document>,
    pending_bytes: usize,
    pub(crate) bytes: u64,
    pub(crate) documents: u64,
}

impl ShardWriter {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let level = ZstdLevel::try_new(3).unwrap_or_default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by("trainyard".into())
            .build();
        let file = AtomicFile::create(path)?;
        let writer =
            ArrowWriter::try_new(file, schema(), Some(properties)).map_err(|e| failed(path, e))?;
        Ok(Self {
            path: path.to_owned(),
            writer,
            pending: Vec::new(),
            pending_bytes: 0,
            bytes: 0,
            documents: 0,
        })
    }

    pub(crate) fn push(&mut self, document: Document) -> Result<(), Error> {
        self.bytes += document.text.len() as u64;
        self.documents += 1;
        self.pending_bytes += document.text.len();
        self.pending.push(document);
        if self.pending_bytes >= ROW_GROUP_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let batch = batch(&self.pending).map_err(|e| bad(&self.path, e.to_string()))?;
        self.pending.clear();
        self.pending_bytes = 0;
        let written = self.writer.write(&batch).and_then(|()| self.writer.flush());
        written.map_err(|e| failed(&self.path, e))
    }

    pub(crate) fn commit(mut self) -> Result<(), Error> {
        self.flush()?;
        let file = self.writer.into_inner().map_err(|e| failed(&self.path, e))?;
        Ok(file.commit()?)
    }
}

/// A failed write: an I/O error where there is one underneath, so that a full disk is told apart.
fn failed(path: &Path, error: parquet::errors::ParquetError) -> Error {
    use parquet::errors::ParquetError;
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other.to_string()),
        },
        other => std::io::Error::other(other.to_string()),
    };
    FsError::io("write", path)(source).into()
}

fn batch(documents: &[Document]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut texts: Vec<StringBuilder> = TEXTS.iter().map(|_| StringBuilder::new()).collect();
    let mut fetched = Int64Builder::new();
    let mut text = StringBuilder::new();
    for d in documents {
        let split = split_name(d.split);
        let values =
            [&d.id, &d.source, &d.url, d.category.name(), &d.language, &d.licence, split, &d.title];
        texts.iter_mut().zip(values).for_each(|(column, value)| column.append_value(value));
        fetched.append_value(d.fetched);
        text.append_value(&d.text);
    }
    let mut columns: Vec<ArrayRef> =
        texts.into_iter().map(|mut b| Arc::new(b.finish()) as ArrayRef).collect();
    columns.push(Arc::new(fetched.finish()));
    columns.push(Arc::new(text.finish()));
    RecordBatch::try_new(schema(), columns)
}

fn split_name(split: Split) -> &'static str {
    match split {
        Split::Train => "train",
        Split::HeldOut => "held-out",
    }
}

fn bad(path: &Path, problem: String) -> Error {
    Error::BadShard { path: path.to_owned(), problem }
}

/// The number of row groups of a shard.
pub(crate) fn row_groups(path: &Path) -> Result<usize, Error> {
    let file = File::open(path).map_err(FsError::io("read", path))?;
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| bad(path, e.to_string()))?;
    Ok(builder.metadata().num_row_groups())
}

/// The documents of one row group, or of the whole shard.
pub(crate) fn read_shard(path: &Path, row_group: Option<usize>) -> Result<ShardReader, Error> {
    let file = File::open(path).map_err(FsError::io("read", path))?;
    let mut builder =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| bad(path, e.to_string()))?;
    if let Some(row_group) = row_group {
        builder = builder.with_row_groups(vec![row_group]);
    }
    let reader = builder.with_batch_size(256).build().map_err(|e| bad(path, e.to_string()))?;
    Ok(ShardReader { path: path.to_owned(), reader, ready: VecDeque::new() })
}

/// The documents of a shard, in order.
pub(crate) struct ShardReader {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    ready: VecDeque<Document>,
}

impl Iterator for ShardReader {
    type Item = Result<Document, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Some(Ok(document));
            }
            let batch = match self.reader.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(bad(&self.path, error.to_string()))),
            };
            match unpack(&batch) {
                Ok(documents) => self.ready.extend(documents),
                Err(problem) => return Some(Err(bad(&self.path, problem))),
            }
        }
    }
}

fn unpack(batch: &RecordBatch) -> Result<Vec<Document>, String> {
    let column = |name: &str| {
        let found = batch.column_by_name(name).filter(|column| column.null_count() == 0);
        let names = || {
            batch.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>().join(", ")
        };
        found.ok_or_else(|| {
            format!("expected a column {name:?} without gaps; columns found: {}", names())
        })
    };
    let text = |name: &str| {
        let found = column(name)?.as_any().downcast_ref::<StringArray>();
        found.ok_or_else(|| format!("column {name:?} does not hold text"))
    };
    let texts = TEXTS.map(text);
    let [id, source, url, category, language, licence, split, title] = texts;
    let (id, source, url, category) = (id?, source?, url?, category?);
    let (language, licence, split, title) = (language?, licence?, split?, title?);
    let body = text("text")?;
    let fetched = column("fetched")?.as_any().downcast_ref::<Int64Array>();
    let fetched = fetched.ok_or("column \"fetched\" does not hold numbers")?;
    let row = |i: usize| {
        let named = Category::ALL.into_iter().find(|c| c.name() == category.value(i));
        Ok(Document {
            id: id.value(i).to_owned(),
            source: source.value(i).to_owned(),
            url: url.value(i).to_owned(),
            category: named.ok_or_else(|| format!("unknown category {:?}", category.value(i)))?,
            language: language.value(i).to_owned(),
            licence: licence.value(i).to_owned(),
            fetched: fetched.value(i),
            split: if split.value(i) == "held-out" { Split::HeldOut } else { Split::Train },
            title: title.value(i).to_owned(),
            text: body.value(i).to_owned(),
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The documents of a directory of shards, in order: shard by shard, row by row.
pub struct Documents {
    shards: VecDeque<PathBuf>,
    current: Option<ShardReader>,
}

impl Iterator for Documents {
    type Item = Result<Document, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.current.as_mut().and_then(Iterator::next) {
                return Some(found);
            }
            let shard = self.shards.pop_front()?;
            match read_shard(&shard, None) {
                Ok(reader) => self.current = Some(reader),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Reads the documents that [`crate::build`] wrote into `directory`.
///
/// # Errors
/// The directory cannot be listed. What is wrong with a shard comes out of the iterator.
pub fn read(directory: &Path) -> Result<Documents, Error> {
    let entries = std::fs::read_dir(directory).map_err(FsError::io("read", directory))?;
    let mut shards: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|e| e.path()).filter(|p| is_shard(p)).collect();
    shards.sort();
    Ok(Documents { shards: shards.into(), current: None })
}

pub(crate) fn is_shard(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("documents-") && name.ends_with(".parquet")
}

pub(crate) fn shard_path(directory: &Path, index: usize) -> PathBuf {
    directory.join(format!("documents-{index:05}.parquet"))
}

/// Writes documents into shards of about `shard_bytes` of text and removes older shards of the
/// directory. Gives the number of shards.
///
/// # Errors
/// A document that came as an error, or a file that cannot be written.
pub fn write(
    directory: &Path,
    shard_bytes: u64,
    documents: impl Iterator<Item = Result<Document, Error>>,
) -> Result<usize, Error> {
    let mut shards = Shards::new(directory, shard_bytes);
    for document in documents {
        shards.push(document?)?;
    }
    shards.finish()
}

/// Cuts a stream of documents into shards.
pub(crate) struct Shards {
    directory: PathBuf,
    shard_bytes: u64,
    current: Option<ShardWriter>,
    count: usize,
}

impl Shards {
    pub(crate) fn new(directory: &Path, shard_bytes: u64) -> Self {
        Self { directory: directory.to_owned(), shard_bytes, current: None, count: 0 }
    }

    pub(crate) fn push(&mut self, document: Document) -> Result<(), Error> {
        let mut writer = match self.current.take() {
            Some(writer) => writer,
            None => ShardWriter::create(&shard_path(&self.directory, self.count))?,
        };
        writer.push(document)?;
        if writer.bytes >= self.shard_bytes {
            self.count += 1;
            writer.commit()
        } else {
            self.current = Some(writer);
            Ok(())
        }
    }

    /// Closes the last shard and removes shards of an earlier, longer corpus.
    pub(crate) fn finish(mut self) -> Result<usize, Error> {
        if let Some(writer) = self.current.take() {
            self.count += 1;
            writer.commit()?;
        }
        let entries =
            std::fs::read_dir(&self.directory).into_iter().flatten().filter_map(Result::ok);
        let ours: Vec<PathBuf> = (0..self.count).map(|i| shard_path(&self.directory, i)).collect();
        for path in entries.map(|e| e.path()).filter(|p| is_shard(p) && !ours.contains(p)) {
            std::fs::remove_file(&path).map_err(FsError::io("remove", &path))?;
        }
        Ok(self.count)
    }
}
