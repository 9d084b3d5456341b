//! The `[corpus]` block of a recipe.

use base::Category;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What goes into the corpus and by which rules it is cleaned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Where the text comes from, in the order in which ties between duplicates are broken: of two equal
    /// documents the one of the earlier source stays.
    pub sources: Vec<Source>,
    /// Sites and paths that are never taken.
    pub blocklists: Blocklists,
    /// The three deduplication passes.
    pub dedup: Dedup,
    /// Thresholds of the quality rules.
    pub quality: Quality,
    /// What is replaced by a placeholder.
    pub masking: Masking,
    /// Share of the documents that is never trained on, between 0 and 1. Near-identical documents are
    /// kept on one side: the split is drawn by group, not by document.
    pub held_out_share: f64,
    /// Most of a held-out document that training documents may repeat, as a share of its runs of 8 words, 0
    /// to 1. Documents beyond it are trained on instead; 1 turns the rule off.
    pub max_held_out_overlap: f64,
    /// Bytes of text in one shard of the output.
    pub shard_bytes: u64,
    /// How many dropped documents or lines are kept as examples for each rule.
    pub examples_per_rule: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            blocklists: Blocklists::default(),
            dedup: Dedup::default(),
            quality: Quality::default(),
            masking: Masking::default(),
            held_out_share: 0.05,
            max_held_out_overlap: 0.2,
            shard_bytes: 32 << 20,
            examples_per_rule: 5,
        }
    }
}

/// One place that text comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Source {
    /// Name in the ledger and in every document.
    pub name: String,
    /// How its files are read.
    pub kind: Kind,
    /// A file or a directory. `~` is the home directory, `${rust-docs}` the HTML documentation of the
    /// active Rust toolchain, `${cargo-registry}` the unpacked crates of Cargo's registries. A relative
    /// path starts at the recipe's directory. Empty for a generated source.
    #[serde(default)]
    pub path: String,
    /// What is done where no file is found: `refuse` the run, or `skip` the source.
    #[serde(default)]
    pub when_missing: WhenMissing,
    /// Patterns of the paths to take, relative to `path`; empty takes every file that `kind` can read.
    #[serde(default)]
    pub include: Vec<String>,
    /// Patterns of the paths to leave out; they win over `include`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Category of its documents. Code for `kind = "code"`, mathematics for `arithmetic`, general
    /// knowledge for the others.
    #[serde(default)]
    pub category: Option<Category>,
    /// Language of its documents where they do not say: `en`, or for code the one that the file's name
    /// says.
    #[serde(default)]
    pub language: Option<String>,
    /// Licence of its documents; for code under a `Cargo.toml`, the one that is stated there wins.
    #[serde(default)]
    pub licence: String,
    /// Address of the site that the files were taken from, put in front of their paths.
    #[serde(default)]
    pub site: String,
    /// At most so many bytes of files, counted before extraction. Files are taken in the order of a hash of
    /// their paths and the seed, so the choice is spread evenly and is the same on every machine that has
    /// the same files.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// At most so many files (documents for `arithmetic`, where it is how many are generated; 2000 if
    /// unset), chosen in the same way.
    #[serde(default)]
    pub max_documents: Option<u64>,
    /// A file, once decompressed, or a line of JSONL with more bytes than this is dropped and counted.
    #[serde(default = "max_document_bytes")]
    pub max_document_bytes: u64,
    /// HTML elements to leave out beyond the built-in ones: `tag`, `.class`, `tag.class` or `#id`; an id
    /// may end in `*`.
    #[serde(default)]
    pub drop_elements: Vec<String>,
}

fn max_document_bytes() -> u64 {
    8 << 20
}

impl Source {
    /// A source with every optional setting at its default.
    pub fn new(name: &str, kind: Kind, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            path: path.to_owned(),
            when_missing: WhenMissing::Refuse,
            include: Vec::new(),
            exclude: Vec::new(),
            category: None,
            language: None,
            licence: String::new(),
            site: String::new(),
            max_bytes: None,
            max_documents: None,
            max_document_bytes: max_document_bytes(),
            drop_elements: Vec::new(),
        }
    }

    /// The category of its documents.
    pub fn category(&self) -> Category {
        self.category.unwrap_or(match self.kind {
            Kind::Code => Category::Code,
            Kind::Arithmetic => Category::Math,
            Kind::Html | Kind::Text | Kind::Jsonl | Kind::Documents => Category::General,
        })
    }
}

/// What is done with a source that has no files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenMissing {
    /// The run is refused: most often the path is mistyped.
    #[default]
    Refuse,
    /// The run goes on with the other sources.
    Skip,
}

/// How a source's files are read. Each may also be compressed (`.gz`, `.zst`).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Web pages: `.html`, `.htm`, `.xhtml`. The main text is extracted.
    Html,
    /// Program sources, one document a file; `.rs` alone where `include` is empty.
    Code,
    /// Plain text and Markdown, one document a file: `.txt`, `.md`.
    Text,
    /// One JSON object a line, with the field names of dolma, C4 and datatrove: `.jsonl`, `.ndjson`,
    /// `.json`.
    Jsonl,
    /// Arithmetic problems in words with worked steps, generated.
    Arithmetic,
    /// Shards that this stage wrote: `documents-*.parquet`.
    Documents,
}

/// Sites and paths that are never taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Blocklists {
    /// Domains; each covers its sub-domains.
    pub domains: Vec<String>,
    /// Patterns of addresses as `host/path`, where `*` stands for any characters. Without a `*` at its
    /// end it covers everything that begins with it. Documents without a host are matched by patterns
    /// that begin with `*`.
    pub urls: Vec<String>,
    /// Files with one domain or pattern a line; `#` begins a comment. Relative paths start at the
    /// recipe's directory.
    pub files: Vec<String>,
}

/// The three deduplication passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Dedup {
    /// Of documents with the same address keep the newest.
    pub by_url: bool,
    /// Of documents with the same text, case and spacing aside, keep the first.
    pub by_document: bool,
    /// Delete lines that are repeated in many documents.
    pub by_line: LineRule,
}

impl Default for Dedup {
    fn default() -> Self {
        Self { by_url: true, by_document: true, by_line: LineRule::default() }
    }
}

/// The line rule of Llama 3 (section 3.1.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LineRule {
    /// A line that appears more often than this in a bucket is deleted everywhere in the bucket; 0 turns
    /// the rule off.
    pub max_repeats: u32,
    /// Documents in a bucket.
    pub bucket_documents: u64,
    /// What the rule leaves alone.
    pub exempt: Vec<Exempt>,
}

impl Default for LineRule {
    fn default() -> Self {
        Self {
            max_repeats: 6,
            bucket_documents: 30_000_000,
            exempt: vec![
                Exempt::FencedCode,
                Exempt::CodeDocuments,
                Exempt::MathDocuments,
                Exempt::BlankLines,
            ],
        }
    }
}

/// Text that the line rule leaves alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exempt {
    /// Lines of fenced code blocks, the fences included.
    FencedCode,
    /// Documents of the category code.
    CodeDocuments,
    /// Documents of the category mathematics: worked steps repeat by nature.
    MathDocuments,
    /// Lines without a letter or a digit.
    BlankLines,
    /// Markdown headings: they repeat by nature (`## Examples`) and hold a document's structure.
    Headings,
}

/// Thresholds of the quality rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Quality {
    /// For prose (general knowledge and other languages). Mathematics passes `min-words` and `max-words`
    /// alone.
    pub prose: ProseRules,
    /// For the category code.
    pub code: CodeRules,
}

/// Gopher's quality rules (arXiv 2112.11446, table A1). Words and lines inside fenced code count for
/// the number of words alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ProseRules {
    /// Fewest words.
    pub min_words: u64,
    /// Most words.
    pub max_words: u64,
    /// Shortest mean length of a word, in characters.
    pub min_mean_word_length: f64,
    /// Longest mean length of a word, in characters.
    pub max_mean_word_length: f64,
    /// Most symbols (`#` that opens no heading, `...`, `…`) per word.
    pub max_symbols_per_word: f64,
    /// Largest share of lines that begin with a bullet.
    pub max_bullet_lines: f64,
    /// Largest share of lines that end in an ellipsis.
    pub max_ellipsis_lines: f64,
    /// Smallest share of words with a letter in them.
    pub min_alphabetic_words: f64,
    /// Fewest different words out of `the be to of and that have with`; English documents only.
    pub min_stop_words: u64,
}

impl Default for ProseRules {
    fn default() -> Self {
        Self {
            min_words: 50,
            max_words: 100_000,
            min_mean_word_length: 3.0,
            max_mean_word_length: 10.0,
            max_symbols_per_word: 0.1,
            max_bullet_lines: 0.9,
            max_ellipsis_lines: 0.3,
            min_alphabetic_words: 0.8,
            min_stop_words: 2,
        }
    }
}

/// Rules for program sources, after those of The Stack and StarCoder (arXiv 2305.06161, section 3.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CodeRules {
    /// Fewest bytes.
    pub min_bytes: u64,
    /// Longest line, in characters.
    pub max_line_length: u64,
    /// Longest mean length of a line, in characters.
    pub max_mean_line_length: f64,
    /// Smallest share of letters and digits among the characters that are not white space.
    pub min_alphanumeric: f64,
    /// Whether files that say in their first lines that they are generated are dropped.
    pub drop_generated: bool,
}

impl Default for CodeRules {
    fn default() -> Self {
        Self {
            min_bytes: 100,
            max_line_length: 1_000,
            max_mean_line_length: 100.0,
            min_alphanumeric: 0.25,
            drop_generated: true,
        }
    }
}

/// What is replaced by a placeholder. See the crate's `filter::mask` for what counts as each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Masking {
    /// E-mail addresses become `<email>`.
    pub emails: bool,
    /// Public IP addresses become `<ip>`.
    pub ip_addresses: bool,
    /// Access keys, tokens and private keys become `<key>`.
    pub keys: bool,
}

impl Default for Masking {
    fn default() -> Self {
        Self { emails: true, ip_addresses: true, keys: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_published_thresholds() {
        let settings = Settings::default();
        assert_eq!(settings.dedup.by_line.max_repeats, 6);
        assert_eq!(settings.dedup.by_line.bucket_documents, 30_000_000);
        assert_eq!(settings.quality.prose.min_words, 50);
        assert_eq!(settings.quality.prose.max_words, 100_000);
    }

    #[test]
    fn unknown_keys_are_refused_and_the_rest_round_trips() {
        let source = r#"{"name": "a", "kind": "html", "path": "x"}"#;
        assert_eq!(
            serde_json::from_str::<Source>(source).unwrap(),
            Source::new("a", Kind::Html, "x")
        );
        assert!(serde_json::from_str::<Settings>(r#"{"held-out": 1}"#).is_err());
        let settings =
            Settings { sources: vec![Source::new("a", Kind::Code, "x")], ..Settings::default() };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    }
}
