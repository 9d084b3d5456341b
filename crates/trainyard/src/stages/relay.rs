//! What every stage is given, and how a stage is announced, done and summed up.

use crate::error::{Failure, Kind, Result};
use crate::output::Output;
use crate::progress::{Screen, duration};
use crate::recipe::Recipe;
use crate::run::decisions::{By, Decision};
use crate::run::{Finished, RunDirectory, Stage, Yield, stage};
use base::{Digest, Seed, Stop};
use kernels::Pool;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A run under way.
pub struct Relay<'a> {
    /// Where it is.
    pub run: &'a RunDirectory,
    /// What was asked for.
    pub recipe: &'a Recipe,
    /// Where the recipe's relative paths start.
    pub base: PathBuf,
    /// Threads that compute.
    pub pool: Arc<Pool>,
    /// Shows progress.
    pub screen: &'a Screen,
    /// Shows results.
    pub output: Output,
    /// Asks for an end.
    pub stop: &'a Stop,
}

impl Relay<'_> {
    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// The seed of a stage.
    pub fn seed(&self, name: &str) -> Seed {
        Seed(self.recipe.seed).derive(name)
    }

    /// What a training stage runs in.
    pub fn training<'b>(&'b self, directory: &'b Path) -> train::Context<'b> {
        train::Context {
            directory,
            pool: Arc::clone(&self.pool),
            observer: self.screen,
            stop: self.stop,
        }
    }

    /// Does a stage unless it is done: `inputs` are the stages that it reads.
    pub fn perform<S: Serialize>(
        &self,
        name: &'static str,
        algorithm: u32,
        settings: &S,
        inputs: &[&Finished],
        work: impl FnOnce(&Path, Seed) -> Result<Yield>,
    ) -> Result<Finished> {
        let inputs = inputs.iter().map(|input| (input.manifest.stage.clone(), input.digest()));
        self.perform_on(name, algorithm, settings, inputs.collect(), work)
    }

    /// Does a stage that reads something other than stages.
    pub fn perform_on<S: Serialize>(
        &self,
        name: &'static str,
        algorithm: u32,
        settings: &S,
        inputs: BTreeMap<String, Digest>,
        work: impl FnOnce(&Path, Seed) -> Result<Yield>,
    ) -> Result<Finished> {
        self.stop.check().map_err(|error| Failure::from(error).answering(self.stop))?;
        let seed = self.seed(name);
        let settings =
            serde_json::to_value(settings).map_err(|error| Failure::new(Kind::Usage, error))?;
        let stage = Stage { name, algorithm, seed, settings, inputs };
        self.screen.begin(name);
        let finished = stage::perform(self.run, &stage, |at| work(at, seed));
        self.screen.end();
        let finished = finished.map_err(|failure| failure.answering(self.stop))?;
        let took = match finished.skipped {
            true => "done before".to_owned(),
            false => duration(Duration::from_secs_f64(finished.timing.seconds)),
        };
        self.output.line(format!("{name:<22} {} ({took})", finished.timing.summary));
        Ok(finished)
    }

    /// Writes down a decision that a rule made.
    pub fn rule(&self, rule: &str, stage: &Finished, decision: Made) -> Result<()> {
        self.decided(By::Rule, rule, stage, decision)
    }

    /// Writes down a decision.
    pub fn decided(&self, by: By, who: &str, stage: &Finished, made: Made) -> Result<()> {
        let decision = Decision::new(by, who, &stage.manifest.stage, &made.question, made.chosen)
            .options(made.options)
            .reason(made.reason);
        self.run.decide(decision, &stage.manifest.own_key().to_string())?;
        Ok(())
    }
}

/// A decision's content.
#[derive(Default)]
pub struct Made {
    /// What was to be decided.
    pub question: String,
    /// What could have been chosen.
    pub options: Vec<String>,
    /// What was chosen.
    pub chosen: String,
    /// Why.
    pub reason: String,
}
