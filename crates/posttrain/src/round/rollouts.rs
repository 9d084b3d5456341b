//! Several answers to each training prompt, sampled from the model that the round starts from.
//!
//! They are written in chunks, each a whole file (`rollouts-00000.jsonl`), so that a kill costs one chunk.
//! An answer's seed comes from its item and number alone: the answers are the same in any chunking.

use crate::{Error, Result, jsonl};
use base::{FsError, Item, Observer, Progress, Seed, Stop};
use judge::{Answer, Ask, Finish, Sampling, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How many answers are sampled, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// How many training items are asked.
    pub prompts: usize,
    /// How many answers to each (Llama 3: 10 to 30).
    pub samples_per_prompt: usize,
    /// How they are drawn.
    pub sampling: Sampling,
    /// Prompts in one file.
    pub chunk_prompts: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let sampling = Sampling { temperature: 0.8, top_k: None, top_p: 0.95, max_new_tokens: 64 };
        Self { prompts: 640, samples_per_prompt: 6, sampling, chunk_prompts: 32 }
    }
}

/// One sampled answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sampled {
    /// What the model wrote.
    pub text: String,
    /// Tokens in it.
    pub tokens: u64,
    /// Why it ended.
    pub finish: Finish,
}

/// All answers to one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rollouts {
    /// What was asked, with the right answer.
    pub item: Item,
    /// The answers, in the order of their numbers.
    pub answers: Vec<Sampled>,
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Prompts asked.
    pub prompts: u64,
    /// Answers sampled.
    pub answers: u64,
    /// Tokens written.
    pub tokens: u64,
    /// Answers that reached the limit of tokens.
    pub unended: u64,
    /// Answers that could not begin since the prompt fills the context; they are left out.
    pub dropped_too_long: u64,
}

/// Samples the answers and writes them to `out`. Chunks that are already there are kept.
///
/// # Errors
/// No item is there, the model cannot answer, a file cannot be written, or the stop was raised (whole
/// chunks stay).
pub fn sample(
    settings: &Settings,
    items: &[Item],
    subject: &mut dyn Subject,
    seed: Seed,
    out: &Path,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Summary> {
    let chosen = choose(items, settings.prompts, seed);
    if chosen.is_empty() {
        let reason = format!("{} items were given, {} are wanted", items.len(), settings.prompts);
        return Err(Error::NothingLeft { what: "prompts to sample answers for", reason });
    }
    let mut summary = Summary::default();
    for (number, chunk) in chosen.chunks(settings.chunk_prompts.max(1)).enumerate() {
        stop.check()?;
        let path = chunk_path(out, number);
        let rollouts = match finished(&path, chunk, settings.samples_per_prompt) {
            Some(rollouts) => rollouts,
            None => {
                let rollouts = sample_chunk(settings, chunk, subject, seed, stop)?;
                jsonl::write(&path, &rollouts)?;
                rollouts
            }
        };
        summary.count(&rollouts);
        let detail = format!("{} tokens", summary.tokens);
        let (done, total) = (summary.prompts, Some(chosen.len() as u64));
        observer.progress(Progress { done, total, unit: "prompts", detail });
    }
    remove_from(out, chosen.len().div_ceil(settings.chunk_prompts.max(1)))?;
    Ok(summary)
}

/// Removes chunks that an earlier call with more prompts or smaller chunks has left.
fn remove_from(out: &Path, first: usize) -> Result<()> {
    for number in first.. {
        let path = chunk_path(out, number);
        if !path.exists() {
            break;
        }
        std::fs::remove_file(&path).map_err(FsError::io("remove", &path))?;
    }
    Ok(())
}

impl Summary {
    fn count(&mut self, rollouts: &[Rollouts]) {
        let answers = || rollouts.iter().flat_map(|r| &r.answers);
        self.prompts += rollouts.len() as u64;
        self.answers += answers().count() as u64;
        self.tokens += answers().map(|answer| answer.tokens).sum::<u64>();
        self.unended += answers().filter(|answer| answer.finish == Finish::Length).count() as u64;
        self.dropped_too_long += answers().filter(|a| a.finish == Finish::TooLong).count() as u64;
    }
}

/// The items with the smallest digests under the seed: the same whatever their order.
fn choose(items: &[Item], count: usize, seed: Seed) -> Vec<&Item> {
    let mut keyed: Vec<(u64, &Item)> =
        items.iter().map(|item| (seed.derive("choose").derive(&item.id).0, item)).collect();
    keyed.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
    keyed.into_iter().take(count).map(|(_, item)| item).collect()
}

fn chunk_path(out: &Path, number: usize) -> PathBuf {
    out.join(format!("rollouts-{number:05}.jsonl"))
}

/// A chunk that an earlier call finished: the same items with as many answers. Anything else is redone.
fn finished(path: &Path, chunk: &[&Item], samples: usize) -> Option<Vec<Rollouts>> {
    let rollouts: Vec<Rollouts> = jsonl::read(path, EXPECTED).ok()?;
    let same = rollouts.len() == chunk.len()
        && rollouts
            .iter()
            .zip(chunk)
            .all(|(r, item)| r.item == **item && r.answers.len() == samples);
    same.then_some(rollouts)
}

const EXPECTED: &str = "an item with its sampled answers";

fn sample_chunk(
    settings: &Settings,
    chunk: &[&Item],
    subject: &mut dyn Subject,
    seed: Seed,
    stop: &Stop,
) -> Result<Vec<Rollouts>> {
    let samples = settings.samples_per_prompt;
    let asks: Vec<Ask> = chunk
        .iter()
        .flat_map(|item| (0..samples).map(|n| Ask::of_item(item, None, seed.at(n as u64))))
        .collect();
    let answers = subject.ask(&asks, &settings.sampling, stop)?;
    let of_item = |(item, answers): (&&Item, &[Answer])| Rollouts {
        item: (*item).clone(),
        answers: answers.iter().map(Sampled::of).collect(),
    };
    Ok(chunk.iter().zip(answers.chunks(samples.max(1))).map(of_item).collect())
}

impl Sampled {
    fn of(answer: &Answer) -> Self {
        let tokens = answer.token_ids.len() as u64;
        Self { text: answer.text.clone(), tokens, finish: answer.finish }
    }
}

/// Reads all chunks of a directory, in order.
///
/// # Errors
/// The directory or a file cannot be read, or a line is no record of rollouts.
pub fn read(directory: &Path) -> Result<Vec<Rollouts>> {
    let mut all = Vec::new();
    for number in 0.. {
        let path = chunk_path(directory, number);
        if !path.exists() && number > 0 {
            break;
        }
        all.extend(jsonl::read::<Rollouts>(&path, EXPECTED)?);
    }
    Ok(all)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::{Digest, Silent, Split};

    pub(crate) fn item(id: &str, answer: &str) -> Item {
        Item {
            id: id.into(),
            task: "returns".into(),
            subject: id.into(),
            split: Split::Train,
            prompt: format!("What is {id}?"),
            answer: answer.into(),
        }
    }

    pub(crate) fn rollouts(right: &str, answers: &[&str]) -> Rollouts {
        let sampled = |text: &&str| Sampled {
            text: (*text).to_owned(),
            tokens: text.len() as u64,
            finish: Finish::Stop,
        };
        Rollouts { item: item("it", right), answers: answers.iter().map(sampled).collect() }
    }

    /// Answers with the ask's seed, and counts how often it is asked.
    struct Echo {
        asked: usize,
        stop_after: usize,
    }

    impl Subject for Echo {
        fn name(&self) -> &str {
            "echo"
        }

        fn digest(&self) -> Digest {
            Digest::of_bytes(b"echo")
        }

        fn ask(
            &mut self,
            asks: &[Ask],
            _: &Sampling,
            stop: &Stop,
        ) -> std::result::Result<Vec<Answer>, judge::Error> {
            self.asked += asks.len();
            if self.asked >= self.stop_after {
                stop.raise();
            }
            let answer = |ask: &Ask| Answer {
                item: ask.item.clone(),
                text: format!("{:x}", ask.seed.0),
                token_ids: vec![1, 2],
                specials: vec![],
                finish: Finish::Stop,
            };
            Ok(asks.iter().map(answer).collect())
        }

        fn log_probs(
            &mut self,
            texts: &[String],
            _: &Stop,
        ) -> std::result::Result<Vec<f64>, judge::Error> {
            Ok(vec![0.0; texts.len()])
        }
    }

    fn run(out: &Path, items: &[Item], echo: &mut Echo, chunk_prompts: usize) -> Result<Summary> {
        let settings =
            Settings { prompts: 7, samples_per_prompt: 3, chunk_prompts, ..Settings::default() };
        sample(&settings, items, echo, Seed(3), out, &Silent, &Stop::new())
    }

    fn items() -> Vec<Item> {
        (0..10).map(|i| item(&format!("i{i}"), "x")).collect()
    }

    #[test]
    fn an_interrupted_sampling_goes_on_and_gives_the_same_bytes() {
        let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let summary =
            run(whole.path(), &items(), &mut Echo { asked: 0, stop_after: 999 }, 2).unwrap();
        assert_eq!((summary.prompts, summary.answers, summary.tokens), (7, 21, 42));
        let mut echo = Echo { asked: 0, stop_after: 12 };
        let error = run(cut.path(), &items(), &mut echo, 2).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        let mut rest = Echo { asked: 0, stop_after: 999 };
        assert_eq!(run(cut.path(), &items(), &mut rest, 2).unwrap(), summary);
        assert_eq!(rest.asked, 21 - 12);
        assert_eq!(read(cut.path()).unwrap(), read(whole.path()).unwrap());
    }

    #[test]
    fn answers_do_not_depend_on_chunks_or_the_order_of_items() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        run(one.path(), &items(), &mut Echo { asked: 0, stop_after: 999 }, 2).unwrap();
        let reversed: Vec<Item> = items().into_iter().rev().collect();
        run(other.path(), &reversed, &mut Echo { asked: 0, stop_after: 999 }, 5).unwrap();
        assert_eq!(read(one.path()).unwrap(), read(other.path()).unwrap());
    }

    #[test]
    fn chunks_of_another_size_leave_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path(), &items(), &mut Echo { asked: 0, stop_after: 999 }, 1).unwrap();
        run(directory.path(), &items(), &mut Echo { asked: 0, stop_after: 999 }, 4).unwrap();
        assert_eq!(read(directory.path()).unwrap().len(), 7);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_damaged_chunk_is_sampled_again() {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path(), &items(), &mut Echo { asked: 0, stop_after: 999 }, 4).unwrap();
        let before = read(directory.path()).unwrap();
        std::fs::write(chunk_path(directory.path(), 1), b"{\"item\":").unwrap();
        let error = read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("rollouts-00001.jsonl, line 1"), "{error}");
        run(directory.path(), &items(), &mut Echo { asked: 0, stop_after: 999 }, 4).unwrap();
        assert_eq!(read(directory.path()).unwrap(), before);
    }

    #[test]
    fn no_items_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error =
            run(directory.path(), &[], &mut Echo { asked: 0, stop_after: 9 }, 2).unwrap_err();
        assert!(matches!(error, Error::NothingLeft { .. }), "{error}");
    }
}
