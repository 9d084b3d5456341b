//! What every rule saw and dropped, and how many documents were left after each stage.

use base::{Category, Document};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The counts of a whole corpus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// One entry a rule, in the order in which the rules are applied.
    pub rules: Vec<RuleCount>,
    /// Documents and bytes after each stage, by category, in the order of the stages.
    pub funnel: Vec<FunnelRow>,
    /// One entry a source, in the recipe's order.
    pub sources: Vec<SourceCount>,
}

/// What one rule saw and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCount {
    /// The stage it belongs to: `read`, `extract`, `blocklist`, `dedup`, `quality`, `mask`,
    /// `split`.
    pub stage: String,
    /// Its name.
    pub rule: String,
    /// Documents (for rules of reading: files or lines) that reached the rule's stage.
    pub documents_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Lines that the rule looked at; 0 for rules that look at whole documents.
    pub lines_in: u64,
    /// Documents dropped.
    pub documents_dropped: u64,
    /// Documents kept with some of their text changed.
    pub documents_changed: u64,
    /// Bytes dropped, with whole documents or out of them.
    pub bytes_dropped: u64,
    /// Lines dropped out of documents that were kept.
    pub lines_dropped: u64,
    /// Places replaced by a placeholder.
    pub replacements: u64,
}

/// What was left after a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunnelRow {
    /// The stage.
    pub stage: String,
    /// Category of the documents.
    pub category: Category,
    /// How many.
    pub documents: u64,
    /// Their bytes: of input for the stage `input`, of text from `extract` on.
    pub bytes: u64,
}

/// What one source gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCount {
    /// Its name.
    pub name: String,
    /// Files that were read.
    pub files: u64,
    /// Their bytes on disk.
    pub bytes_read: u64,
    /// Documents read out of them.
    pub documents_read: u64,
    /// Documents in the corpus.
    pub documents_kept: u64,
    /// Bytes of text in the corpus.
    pub bytes_kept: u64,
}

/// Something that a rule dropped, for reading: one line of `examples.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The rule's stage.
    pub stage: String,
    /// The rule.
    pub rule: String,
    /// The source's name.
    pub source: String,
    /// Address of the document, or the file and line.
    pub url: String,
    /// Why, with the measured value where there is one.
    pub reason: String,
    /// The beginning of the text.
    pub text: String,
}

/// The rules in the order of their stages; whatever is counted is one of these.
pub(crate) const RULES: &[(&str, &str)] = &[
    ("read", "unreadable"),
    ("read", "truncated"),
    ("read", "too-large"),
    ("read", "bad-json"),
    ("read", "missing-text"),
    ("read", "invalid-utf8"),
    ("read", "control-characters"),
    ("read", "bad-shard"),
    ("blocklist", "domain"),
    ("blocklist", "url"),
    ("extract", "interface-page"),
    ("extract", "redirect"),
    ("extract", "noindex"),
    ("extract", "empty"),
    ("dedup", "url"),
    ("dedup", "document"),
    ("dedup", "line"),
    ("dedup", "emptied"),
    ("quality", "words"),
    ("quality", "word-length"),
    ("quality", "symbols"),
    ("quality", "bullet-lines"),
    ("quality", "ellipsis-lines"),
    ("quality", "alphabetic-words"),
    ("quality", "stop-words"),
    ("quality", "code-size"),
    ("quality", "code-line-length"),
    ("quality", "code-alphanumeric"),
    ("quality", "code-generated"),
    ("mask", "email"),
    ("mask", "ip-address"),
    ("mask", "key"),
    ("split", "repeated-in-training"),
];

/// The stages of the funnel, in order.
pub(crate) const STAGES: &[&str] = &[
    "input",
    "blocklist",
    "extract",
    "dedup-url",
    "dedup-document",
    "dedup-line",
    "quality",
    "mask",
];

type Rule = (&'static str, &'static str);

/// Counts while they are made. Parts are made in parallel and added in a fixed order, which also
/// decides which examples are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    rules: BTreeMap<String, RuleCount>,
    funnel: BTreeMap<String, BTreeMap<Category, (u64, u64)>>,
    pub(crate) sources: BTreeMap<String, SourceCount>,
    pub(crate) examples: Vec<Example>,
    examples_per_rule: usize,
}

impl Tally {
    pub(crate) fn new(examples_per_rule: usize) -> Self {
        Self { examples_per_rule, ..Self::default() }
    }

    /// The counts of a rule, made when first asked for.
    pub(crate) fn rule(&mut self, (stage, rule): Rule) -> &mut RuleCount {
        debug_assert!(
            RULES.contains(&(stage, rule)),
            "{stage}/{rule} is not in the table of rules"
        );
        self.rules.entry(format!("{stage}/{rule}")).or_insert_with(|| RuleCount {
            stage: stage.into(),
            rule: rule.into(),
            ..RuleCount::default()
        })
    }

    /// Counts a dropped document and keeps it as an example.
    pub(crate) fn drop_document(&mut self, rule: Rule, document: &Document, reason: String) {
        self.drop_text(rule, &document.source, &document.url, &document.text, reason);
    }

    /// Counts something dropped that is no document yet: a file, a line.
    pub(crate) fn drop_text(
        &mut self,
        rule: Rule,
        source: &str,
        url: &str,
        text: &str,
        reason: String,
    ) {
        let count = self.rule(rule);
        count.documents_dropped += 1;
        count.bytes_dropped += text.len() as u64;
        self.example(rule, source, url, text, reason);
    }

    /// Counts replacements in a document that is kept.
    pub(crate) fn replaced(&mut self, rule: Rule, places: u64) {
        if places > 0 {
            let count = self.rule(rule);
            count.documents_changed += 1;
            count.replacements += places;
        }
    }

    /// Keeps an example while the rule has room for one.
    pub(crate) fn example(
        &mut self,
        (stage, rule): Rule,
        source: &str,
        url: &str,
        text: &str,
        reason: String,
    ) {
        let same = |e: &&Example| e.stage == stage && e.rule == rule;
        if self.examples.iter().filter(same).count() < self.examples_per_rule {
            let text: String = text.chars().take(EXAMPLE_CHARACTERS).collect();
            let (stage, rule, source, url) = (stage.into(), rule.into(), source.into(), url.into());
            self.examples.push(Example { stage, rule, source, url, reason, text });
        }
    }

    /// Counts a document that is left after a stage.
    pub(crate) fn left(&mut self, stage: &str, category: Category, bytes: u64) {
        let row = self.funnel.entry(stage.into()).or_default().entry(category).or_default();
        row.0 += 1;
        row.1 += bytes;
    }

    /// The counts of a source.
    pub(crate) fn source(&mut self, name: &str) -> &mut SourceCount {
        self.sources
            .entry(name.into())
            .or_insert_with(|| SourceCount { name: name.into(), ..SourceCount::default() })
    }

    /// Adds the counts of a part. Parts must be added in a fixed order.
    pub(crate) fn add(&mut self, part: &Self) {
        for (key, other) in &part.rules {
            let empty = || RuleCount {
                stage: other.stage.clone(),
                rule: other.rule.clone(),
                ..RuleCount::default()
            };
            let count = self.rules.entry(key.clone()).or_insert_with(empty);
            count.documents_dropped += other.documents_dropped;
            count.documents_changed += other.documents_changed;
            count.bytes_dropped += other.bytes_dropped;
            count.lines_in += other.lines_in;
            count.lines_dropped += other.lines_dropped;
            count.replacements += other.replacements;
        }
        for (stage, categories) in &part.funnel {
            for (&category, &(documents, bytes)) in categories {
                let row =
                    self.funnel.entry(stage.clone()).or_default().entry(category).or_default();
                row.0 += documents;
                row.1 += bytes;
            }
        }
        for (name, other) in &part.sources {
            let count = self.source(name);
            count.files += other.files;
            count.bytes_read += other.bytes_read;
            count.documents_read += other.documents_read;
            count.documents_kept += other.documents_kept;
            count.bytes_kept += other.bytes_kept;
        }
        for example in &part.examples {
            let same = |e: &&Example| e.stage == example.stage && e.rule == example.rule;
            if self.examples.iter().filter(same).count() < self.examples_per_rule {
                self.examples.push(example.clone());
            }
        }
    }

    /// The ledger, with its rules, stages and sources in their fixed order.
    pub(crate) fn ledger(&self, sources: &[&str]) -> Ledger {
        let mut ledger = Ledger::default();
        for &(stage, rule) in RULES {
            let found = self.rules.get(&format!("{stage}/{rule}")).cloned();
            let mut count = found.unwrap_or_default();
            (count.stage, count.rule) = (stage.into(), rule.into());
            (count.documents_in, count.bytes_in) = self.before(stage, rule);
            ledger.rules.push(count);
        }
        for &stage in STAGES {
            for (&category, &(documents, bytes)) in self.funnel.get(stage).into_iter().flatten() {
                ledger.funnel.push(FunnelRow { stage: stage.into(), category, documents, bytes });
            }
        }
        let empty = |name: &str| SourceCount { name: name.into(), ..SourceCount::default() };
        let count = |name: &&str| self.sources.get(*name).cloned().unwrap_or_else(|| empty(name));
        ledger.sources = sources.iter().map(count).collect();
        ledger
    }

    /// Documents and bytes that reached a rule: those left by the stage before it.
    fn before(&self, stage: &str, rule: &str) -> (u64, u64) {
        let stage = match (stage, rule) {
            ("read" | "blocklist", _) => "input",
            ("extract", _) => "blocklist",
            ("dedup", "url") => "extract",
            ("dedup", "document") => "dedup-url",
            ("dedup", _) => "dedup-document",
            ("quality", _) => "dedup-line",
            _ => "quality",
        };
        let rows = self.funnel.get(stage).into_iter().flatten();
        rows.fold((0, 0), |(documents, bytes), (_, row)| (documents + row.0, bytes + row.1))
    }

    /// The examples sorted by the order of the rules, as they are written.
    pub(crate) fn sorted_examples(&self) -> Vec<&Example> {
        let mut examples: Vec<&Example> = self.examples.iter().collect();
        let order = |e: &Example| RULES.iter().position(|&(s, r)| s == e.stage && r == e.rule);
        examples.sort_by_key(|e| order(e));
        examples
    }
}

const EXAMPLE_CHARACTERS: usize = 400;

impl Ledger {
    /// The rules that dropped most documents, in words, for an error message.
    pub fn biggest(&self) -> String {
        let mut rules: Vec<&RuleCount> =
            self.rules.iter().filter(|r| r.documents_dropped > 0).collect();
        rules.sort_by_key(|r| std::cmp::Reverse(r.documents_dropped));
        let words = |r: &&RuleCount| format!("{}/{} {}", r.stage, r.rule, r.documents_dropped);
        let text = rules.iter().take(3).map(words).collect::<Vec<_>>().join(", ");
        if text.is_empty() { "none: the sources hold no document".into() } else { text }
    }
}
