//! From a document to candidate questions. Every prompt has one form: the quoted passage, an empty
//! line, the question. Every answer is copied from the passage as it stands, from the start of a line
//! or, for types and arguments, with the mark before it: so a small model can learn to answer by copying.

use super::api::{Entry, entries};
use super::blocks::{Block, blocks, sentences};
use super::task::{NOT_SAID, Task, WHICH_OF_TWO};
use base::{Category, Document, Hasher, Rng, Seed, Split};

/// What decides the side of the split that a question is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// What it asks about, which other documents may be about too.
    Subject,
    /// Its document: held out where the document is, and for a share of the other documents.
    Document,
    /// It is known beforehand.
    Given,
}

/// A question that has not yet been chosen for the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub task: Task,
    /// What it asks about; decides the split.
    pub subject: String,
    /// A second thing that the passage quotes; it must be on the same side of the split.
    pub companion: Option<String>,
    pub passage: String,
    pub question: String,
    pub answer: String,
    /// The document's own side of the split.
    pub split: Split,
    /// What decides the question's side.
    pub placement: Placement,
}

/// How long passages and answers may be, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub passage_words: usize,
    pub answer_words: usize,
}

impl Limits {
    fn allow(&self, candidate: &Candidate) -> bool {
        words(&candidate.passage) <= self.passage_words
            && (1..=self.answer_words).contains(&words(&candidate.answer))
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// All questions that a document gives, within the limits, in the document's order.
pub(super) fn candidates(document: &Document, limits: Limits, seed: Seed) -> Vec<Candidate> {
    let blocks = blocks(&document.text);
    let mut asker = Asker { document, rng: seed.derive(&document.id).rng(), found: Vec::new() };
    let entries = entries(document, &blocks);
    for (position, entry) in entries.iter().enumerate() {
        asker.ask_entry(entry);
        if let Some(next) = entries.get(position + 1) {
            asker.ask_two(entry, next);
        }
    }
    let is_prose = matches!(document.category, Category::General | Category::Multilingual);
    if entries.is_empty() && is_prose {
        asker.ask_prose(&blocks);
    }
    asker.ask_fences(&blocks);
    asker.found.retain(|candidate| limits.allow(candidate));
    asker.found
}

struct Asker<'a> {
    document: &'a Document,
    rng: Rng,
    found: Vec<Candidate>,
}

impl Asker<'_> {
    fn ask(&mut self, task: Task, subject: &str, passage: String, answer: &str) {
        let question = self.phrase(task.phrasings());
        self.add(task, subject, passage, question, answer);
    }

    fn add(&mut self, task: Task, subject: &str, passage: String, question: String, answer: &str) {
        let (subject, answer) = (subject.to_owned(), answer.to_owned());
        let split = self.document.split;
        let placement =
            if subject == self.document.url { Placement::Document } else { Placement::Subject };
        let companion = None;
        self.found.push(Candidate {
            task,
            subject,
            companion,
            passage,
            question,
            answer,
            split,
            placement,
        });
    }

    fn phrase(&mut self, phrasings: &[&str]) -> String {
        self.rng.choose(phrasings).copied().unwrap_or_default().to_owned()
    }

    /// Questions about one entry. Its name alone is the subject, so that methods of the same name and
    /// much the same words (`i32::checked_add`, `i64::checked_add`) stay on one side of the split.
    fn ask_entry(&mut self, entry: &Entry) {
        let subject = entry.name.as_str();
        self.ask(Task::WhichItem, subject, entry.passage(), &entry.path);
        self.ask(Task::Purpose, subject, entry.passage(), &entry.purpose);
        if !entry.returns.is_empty() {
            self.ask(Task::Returns, subject, entry.passage(), &format!("-> {}", entry.returns));
        }
        if entry.arguments != "()" {
            self.ask(Task::Argument, subject, entry.passage(), &entry.arguments);
        }
        if !entry.failure.is_empty() {
            self.ask(Task::Failure, subject, entry.passage(), &entry.failure);
        } else if self.rng.below(12) == 0 {
            self.ask(Task::Failure, subject, entry.passage(), NOT_SAID);
        }
    }

    /// Which of two neighbouring entries does what one of them does.
    fn ask_two(&mut self, one: &Entry, other: &Entry) {
        if one.purpose == other.purpose || one.name == other.name {
            return;
        }
        let (asked, companion) = if self.rng.below(2) == 0 { (one, other) } else { (other, one) };
        let short = |entry: &Entry| format!("{}\n{}", entry.signature(), entry.purpose);
        let passage = format!("{}\n\n{}", short(one), short(other));
        let question = format!("{}\n{}", self.phrase(&WHICH_OF_TWO), asked.purpose);
        self.add(Task::WhichItem, &asked.name, passage, question, &asked.path);
        if let Some(last) = self.found.last_mut() {
            last.companion = Some(companion.name.clone());
        }
    }

    /// Questions about headings and the paragraphs under them.
    fn ask_prose(&mut self, blocks: &[Block]) {
        let mut title: Option<&str> = None;
        for block in blocks {
            match block {
                Block::Heading(text) => title = Some(text),
                Block::Paragraph(text) if !text.starts_with(['-', '*', '|', '<']) => {
                    let sentences: Vec<&str> =
                        sentences(text).into_iter().filter(|s| is_plain_sentence(s)).collect();
                    if let (Some(title), Some(first)) = (title.take(), sentences.first()) {
                        let passage = format!("{title}\n{first}");
                        self.ask(Task::Section, &self.document.url, passage, title);
                    }
                    self.ask_quote(&sentences);
                }
                _ => {}
            }
        }
    }

    /// Which of two or three sentences mentions a name in backticks that only one of them has; and the
    /// plainest question, to repeat a sentence.
    fn ask_quote(&mut self, sentences: &[&str]) {
        for sentence in sentences {
            self.ask(Task::Repeat, &self.document.url.clone(), (*sentence).to_owned(), sentence);
        }
        for group in sentences.chunks(3).filter(|group| group.len() >= 2) {
            let with_names: Vec<(usize, &str)> = group
                .iter()
                .enumerate()
                .flat_map(|(i, sentence)| backticked(sentence).map(move |name| (i, name)))
                .filter(|(i, name)| {
                    !group.iter().enumerate().any(|(j, other)| j != *i && other.contains(name))
                })
                .collect();
            let Some(&(position, name)) = self.rng.choose(&with_names) else { continue };
            let question = format!("{} `{name}`?", self.phrase(Task::Quote.phrasings()));
            self.add(Task::Quote, &self.document.url, group.join("\n"), question, group[position]);
        }
    }

    /// The language of a fence's first lines, where the fence names one that readers know.
    fn ask_fences(&mut self, blocks: &[Block]) {
        for block in blocks {
            let Block::Fence { language, code } = block else { continue };
            let Some(name) = language_name(language) else { continue };
            let lines: Vec<&str> =
                code.lines().filter(|line| !line.trim().is_empty()).take(6).collect();
            let passage = lines.join("\n");
            // The digest of the code is the subject: the same example on two pages is one thing.
            let digest = Hasher::new().field(passage.as_bytes()).finish().short();
            if words(&passage) >= 3 {
                self.ask(Task::Fence, &format!("code {digest}"), passage, name);
            }
        }
    }
}

/// A sentence that can be quoted alone: it ends, has some words, and is no remains of markup.
fn is_plain_sentence(sentence: &str) -> bool {
    (4..=25).contains(&words(sentence))
        && sentence.ends_with(['.', '!', '?'])
        && sentence.starts_with(|c: char| c.is_uppercase() || c == '`')
        && sentence.matches('`').count().is_multiple_of(2)
        && !sentence.contains("](")
}

fn backticked(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split('`').skip(1).step_by(2).filter(|name| (2..=30).contains(&name.len()))
}

fn language_name(language: &str) -> Option<&'static str> {
    Some(match language {
        "rust" | "rs" => "Rust",
        "toml" => "TOML",
        "console" | "sh" | "bash" | "shell" | "shell-session" | "sh-session" => "Shell",
        "json" => "JSON",
        "c" => "C",
        "c++" | "cpp" => "C++",
        "html" => "HTML",
        "javascript" | "js" => "JavaScript",
        "python" | "py" => "Python",
        "yaml" | "yml" => "YAML",
        "grammar" | "ebnf" | "bnf" => "Grammar",
        "text" | "txt" | "plain" | "plaintext" => "Plain text",
        "ini" => "INI",
        "diff" => "Diff",
        "powershell" | "ps1" => "PowerShell",
        "xml" => "XML",
        "makefile" | "make" => "Make",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::api::tests::document;
    use super::*;

    const LIMITS: Limits = Limits { passage_words: 60, answer_words: 25 };

    fn asked(url: &str, text: &str) -> Vec<(Task, String, String, String)> {
        candidates(&document(url, text), LIMITS, Seed(1))
            .into_iter()
            .map(|c| (c.task, c.passage, c.question, c.answer))
            .collect()
    }

    const PAGE: &str = "# Struct Vec\n\n#### pub fn push(&mut self, value: T)\nAppends an element.\n\n\
        Panics if the capacity overflows.\n\n#### pub fn len(&self) -> usize\nReturns the length.\n";

    #[test]
    fn answers_stand_in_their_passages() {
        let found = asked("std/vec/struct.Vec.html", PAGE);
        for (task, passage, question, answer) in &found {
            assert!(passage.contains(answer) || answer == NOT_SAID, "{task:?}: {answer}");
            assert!(!question.is_empty());
        }
        let answers: Vec<&str> = found.iter().map(|(_, _, _, answer)| answer.as_str()).collect();
        for expected in
            ["Vec::push", "(&mut self, value: T)", "Panics if the capacity overflows.", "-> usize"]
        {
            assert!(answers.contains(&expected), "{expected} is missing in {answers:?}");
        }
    }

    #[test]
    fn two_entries_are_told_apart_by_what_one_does() {
        let found = candidates(&document("std/vec/struct.Vec.html", PAGE), LIMITS, Seed(1));
        let two = found.iter().find(|c| c.companion.is_some()).unwrap();
        let asked_for = two.question.lines().last().unwrap();
        let line_before = two.passage.lines().take_while(|line| *line != asked_for).last().unwrap();
        assert!(line_before.starts_with(&two.answer), "{two:?}");
        assert_ne!(Some(&two.subject), two.companion.as_ref());
    }

    #[test]
    fn prose_gives_titles_and_quotes() {
        let text = "## Ownership\nEach value in Rust has an owner. The `drop` function runs then. \
            Values of `Copy` types are copied.\n\n```toml\n[package]\nname = \"a\"\n```\n";
        let found = asked("book/ch04.html", text);
        let find = |task| found.iter().find(|f| f.0 == task).unwrap();
        assert_eq!(find(Task::Section).3, "Ownership");
        let quote = find(Task::Quote);
        let name = quote.2.split('`').nth(1).unwrap();
        assert!(quote.3.contains(name), "{quote:?}");
        assert_eq!(find(Task::Fence).3, "TOML");
    }

    #[test]
    fn generated_problems_and_sources_are_no_prose() {
        let mut page =
            document("arithmetic/1", "Ada has 7 books and gets 14 more. How many are there?");
        page.category = Category::Math;
        assert!(candidates(&page, LIMITS, Seed(1)).is_empty());
        page.category = Category::General;
        assert!(!candidates(&page, LIMITS, Seed(1)).is_empty());
    }

    #[test]
    fn hostile_text_gives_nothing_and_no_panic() {
        for text in ["", "```", "# ", "`", "#### fn ()", "#### pub fn x<", "\u{0}\u{feff}# é\né."]
        {
            asked("a/struct.É.html", text);
        }
    }

    #[test]
    fn long_passages_are_left_out() {
        let text = format!("## Title\nLong {} sentence.\n", "word ".repeat(30));
        assert!(asked("book/a.html", &text).is_empty());
    }
}
