//! The models of a run, side by side.

use super::release;
use crate::args::Which;
use crate::error::{Failure, Kind, Result};
use crate::run::{Finished, RunDirectory};
use kernels::Pool;
use model::Weights;
use model::export::import_hugging_face;
use posttrain::Encoder;
use std::path::Path;
use std::sync::Arc;
use tokens::{ChatTemplate, Tokenizer};

/// The stages that made the models.
pub struct Models<'a> {
    /// Completes text.
    pub base: &'a Finished,
    /// Answers.
    pub sft: &'a Finished,
    /// Answers better.
    pub aligned: &'a Finished,
}

impl<'a> Models<'a> {
    /// Names and stages, in the order in which one came from the other.
    pub fn all(&self) -> [(&'static str, &'a Finished); 3] {
        [("base", self.base), ("sft", self.sft), ("aligned", self.aligned)]
    }
}

/// Weights with all that is needed to talk to them.
pub struct Speaker {
    /// The weights.
    pub weights: Weights,
    /// Turns text into ids.
    pub tokenizer: Tokenizer,
    /// Turns conversations into ids.
    pub template: ChatTemplate,
}

impl Speaker {
    /// Loads the weights of one directory and the tokenizer of another.
    pub fn load(weights: &Path, tokenizer: &Path) -> Result<Self> {
        Self::of(Weights::load(&weights.join(train::WEIGHTS_FILE))?, tokenizer)
    }

    /// Weights with the tokenizer of a directory.
    fn of(weights: Weights, tokenizer: &Path) -> Result<Self> {
        let tokenizer = Tokenizer::load(&tokenizer.join(super::tokenizer::FILE))?;
        Ok(Self { weights, tokenizer, template: ChatTemplate::default() })
    }

    /// Turns conversations into rows of the model.
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder {
            tokenizer: &self.tokenizer,
            template: &self.template,
            max_seq_len: self.weights.config().max_seq_len,
        }
    }

    /// As something that can be asked.
    pub fn model(&self, name: &str, pool: &Arc<Pool>) -> judge::Model<'_> {
        judge::Model::new(name, &self.weights, &self.tokenizer, &self.template, Arc::clone(pool))
    }
}

/// The model of a run that a person asks for, checked against its manifest: the newest, or the one named.
/// The aligned model is the released one where there is a release.
pub fn of_run(run: &RunDirectory, which: Option<Which>) -> Result<(&'static str, Speaker)> {
    let tokenizer = run.stage(super::tokenizer::NAME);
    if which.is_none_or(|which| which == Which::Aligned)
        && let Some(release) = release::read(run)?
    {
        let stage = run.stage(release::NAME);
        verified(&stage)?;
        let directory = stage.join(&release.directory);
        return Ok(("aligned", Speaker::of(import_hugging_face(&directory)?, &tokenizer)?));
    }
    let known = [
        ("aligned", Which::Aligned, super::round::DPO),
        ("sft", Which::Sft, super::sft::NAME),
        ("base", Which::Base, super::pretrain::NAME),
    ];
    for (name, each, stage) in known {
        let directory = run.stage(stage);
        if which.is_none_or(|which| which == each) && verified(&directory)? {
            return Ok((name, Speaker::load(&directory, &tokenizer)?));
        }
    }
    let what = which.map_or("a model".to_owned(), |which| format!("the {which:?} model"));
    let message = format!("{} does not have {} yet", run.display(), what.to_lowercase());
    Err(Failure::new(Kind::Usage, message)
        .hint(format!("`trainyard status --dir {}` shows how far it is", run.display())))
}

/// Whether a stage is finished; an error if it is not as it was when it ended.
fn verified(directory: &Path) -> Result<bool> {
    match base::Manifest::read(directory)? {
        Some(manifest) => Ok(manifest.verify(directory).map(|()| true)?),
        None => Ok(false),
    }
}
