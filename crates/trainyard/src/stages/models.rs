//! The models of a run, side by side.

use crate::error::{Failure, Kind, Result};
use crate::run::{Finished, RunDirectory};
use kernels::Pool;
use model::Weights;
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
        let weights = Weights::load(&weights.join(train::WEIGHTS_FILE))?;
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
pub fn of_run(run: &RunDirectory, which: Option<crate::args::Which>) -> Result<(&'static str, Speaker)> {
    use crate::args::Which;
    let known = [
        ("aligned", Which::Aligned, super::round::DPO),
        ("sft", Which::Sft, super::sft::NAME),
        ("base", Which::Base, super::pretrain::NAME),
    ];
    for (name, each, stage) in known {
        if which.is_some_and(|which| which != each) {
            continue;
        }
        let directory = run.stage(stage);
        if let Some(manifest) = base::Manifest::read(&directory)? {
            manifest.verify(&directory)?;
            return Ok((name, Speaker::load(&directory, &run.stage(super::tokenizer::NAME))?));
        }
    }
    let what = which.map_or("any model".to_owned(), |which| format!("the {which:?} model"));
    Err(Failure::new(Kind::Usage, format!("{} does not have {} yet", run.display(), what.to_lowercase()))
        .hint(format!("`trainyard status --dir {}` shows how far it is", run.display())))
}
