//! Stage 10: the weights as a Hugging Face directory, released or kept as a refused candidate.

use super::models::{Models, Speaker};
use super::{ALGORITHM, Relay, card};
use crate::error::Result;
use crate::progress::bytes;
use crate::run::{Finished, RunDirectory, Yield};
use base::{Digest, FsError, Message, Role};
use judge::gate::{Bound, Check, GateReport};
use model::{Sampling, export};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tokens::Part;

/// The stage's name.
pub const NAME: &str = "10-release";
/// What was decided, in the stage's directory.
const FILE: &str = "release.json";
/// What other implementations are compared with: `scripts/parity/transformers_parity.py`.
const PARITY: &str = "parity.json";
/// The directory of released weights.
pub const RELEASED: &str = "weights";
/// The directory of refused weights.
pub const CANDIDATE: &str = "candidate";
/// A prompt that any Rust assistant should know.
const PARITY_PROMPT: &str = "What is a vector in Rust?";

/// What was decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Release {
    /// The gate's report.
    pub gate: GateReport,
    /// Digest of the weights.
    pub weights: Digest,
    /// Where they are, in the stage's directory.
    pub directory: String,
    /// The files there.
    pub files: Vec<String>,
}

/// What was decided in a run, once it was.
pub fn read(run: &RunDirectory) -> Result<Option<Release>> {
    let directory = run.stage(NAME);
    match base::Manifest::read(&directory)? {
        Some(_) => Ok(Some(base::read_json(&directory.join(FILE))?)),
        None => Ok(None),
    }
}

/// A check in words.
pub fn describe(check: &Check) -> String {
    let measured = check.measured.map_or("not measured".to_owned(), |value| format!("{value:.3}"));
    let bound = match check.bound {
        Bound::AtLeast => "at least",
        Bound::AtMost => "at most",
    };
    format!("{} is {measured}, expected {bound} {:.3}", check.name, check.threshold)
}

impl Relay<'_> {
    /// Writes the directory.
    pub fn release(
        &self,
        tokenizer: &Finished,
        models: &Models<'_>,
        judged: &Finished,
    ) -> Result<Finished> {
        let sampling = &self.recipe.judge.answers.sampling;
        let read = [tokenizer, models.aligned, judged];
        self.perform(NAME, ALGORITHM, sampling, &read, |out, _| {
            let judgement: super::Judged = base::read_json(&judged.path(super::judge::FILE))?;
            let speaker = Speaker::load(&models.aligned.directory, &tokenizer.directory)?;
            let weights = speaker.weights.digest();
            let directory = if judgement.gate.passed { RELEASED } else { CANDIDATE };
            let at = out.join(directory);
            let mut files = write_model(&at, &speaker, sampling)?;
            let card = card::card(self, models, &judgement, weights, &speaker);
            base::write_atomic(&at.join("README.md"), card.as_bytes())?;
            files.push("README.md".to_owned());
            files.sort();
            self.write_parity(&out.join(PARITY), &speaker)?;
            files.iter().try_for_each(|file| freeze(&at.join(file)))?;
            let gate = judgement.gate;
            let summary = match gate.passed {
                true => format!("released: {} thresholds met", gate.checks.len()),
                false => {
                    let failed: Vec<_> = gate.failed().map(describe).collect();
                    format!("refused: {}", failed.join("; "))
                }
            };
            let release =
                Release { gate, weights, directory: directory.into(), files: files.clone() };
            base::write_json(&out.join(FILE), &release)?;
            let mut outputs: Vec<String> =
                files.iter().map(|file| format!("{directory}/{file}")).collect();
            outputs.extend([FILE.to_owned(), PARITY.to_owned()]);
            let size = (4 * speaker.weights.as_slice().len()) as u64;
            Ok(Yield {
                outputs,
                counts: BTreeMap::from([("files".into(), files.len() as u64)]),
                measures: BTreeMap::new(),
                summary: format!("{summary}; {} in {}", bytes(size), at.display()),
            })
        })
    }

    fn write_parity(&self, path: &Path, speaker: &Speaker) -> Result<()> {
        let prompt = [Message::new(Role::User, PARITY_PROMPT)];
        let encoded = speaker.template.encode(&speaker.tokenizer, &prompt, Part::Prompt)?;
        let limit = speaker.weights.config().max_seq_len;
        let ids = &encoded.token_ids[..encoded.len().min(limit / 2)];
        let record = export::parity_record(&speaker.weights, &self.pool, ids, 32)?;
        Ok(base::write_json(path, &record)?)
    }
}

/// Everything that `transformers` reads.
fn write_model(at: &Path, speaker: &Speaker, sampling: &judge::Sampling) -> Result<Vec<String>> {
    let stop = vec![speaker.tokenizer.end_of_turn(), speaker.tokenizer.end_of_text()];
    let sampling = Sampling {
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        max_new_tokens: sampling.max_new_tokens,
        ..Sampling::greedy(sampling.max_new_tokens, stop)
    };
    let begin = speaker.tokenizer.end_of_text();
    let mut files: Vec<String> = export::hugging_face(at, &speaker.weights, begin, &sampling)?
        .into_iter()
        .map(str::to_owned)
        .collect();
    let length = speaker.weights.config().max_seq_len;
    speaker.tokenizer.save_hugging_face(at, &speaker.template, length)?;
    files.extend(["tokenizer.json".to_owned(), "tokenizer_config.json".to_owned()]);
    Ok(files)
}

/// Released and refused weights are frozen: nobody writes into them by accident.
fn freeze(path: &Path) -> Result<(), FsError> {
    let metadata = std::fs::metadata(path).map_err(FsError::io("read", path))?;
    let mut permissions = metadata.permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(path, permissions).map_err(FsError::io("freeze", path))
}
