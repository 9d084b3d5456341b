//! The loop: takes steps until the budget is spent, and can be cut off anywhere.

use crate::Error;
use crate::metrics::{METRICS_FILE, MetricsFile, Record, Timing, TimingFile};
use crate::objective::{Measures, Objective, ObjectiveError};
use crate::optimizer::Optimizer;
use crate::settings::Settings;
use crate::state::{self, LastRecord, State};
use crate::step::{Step, take_step};
use base::{FsError, Observer, Progress, Stop};
use kernels::Pool;
use model::{Capacity, Engine, Purpose, Weights};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The directory of checkpoints in a training's directory.
pub const CHECKPOINTS: &str = "checkpoints";
/// The file of the trained weights in a training's directory.
pub const WEIGHTS_FILE: &str = "weights.safetensors";

/// Where a training runs and whom it tells.
pub struct Context<'a> {
    /// Its directory: checkpoints, metrics and weights are written here and nothing else.
    pub directory: &'a Path,
    /// The threads that compute.
    pub pool: Arc<Pool>,
    /// Is told the progress.
    pub observer: &'a dyn Observer,
    /// Asks for an end.
    pub stop: &'a Stop,
}

/// Measures the model after a step, counted from 1. May use the engine for forward passes that fit its
/// plan. Must give the same values for the same weights.
pub type Evaluate<'a> =
    dyn FnMut(&mut Engine, &Weights, u64) -> Result<Measures, ObjectiveError> + 'a;

/// A finished training.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The trained weights; also in [`WEIGHTS_FILE`].
    pub weights: Weights,
    /// Steps taken in all.
    pub steps: u64,
    /// The last step's record, with the last evaluation.
    pub last: Record,
    /// The step of the checkpoint from which this call went on; `None` when it began anew.
    pub resumed_from: Option<u64>,
}

/// Trains `init` by `objective` and gives the trained weights, which are in [`WEIGHTS_FILE`] too.
///
/// Called again on the same directory it goes on from the newest good checkpoint; when all is done, it
/// only gives the outcome. The weights and `metrics.jsonl` are the same to the bit, however often it was
/// cut off and whatever the number of threads.
///
/// # Errors
/// [`Error::Interrupted`] when asked to stop, with a checkpoint saved; [`Error::NonFinite`] when the loss
/// or the gradient is; [`Error::OtherTraining`] when the directory holds a checkpoint made with other
/// data, settings or initial weights; and what the disk and the objective report. Earlier checkpoints are
/// untouched by every error.
pub fn run<O: Objective>(
    objective: &mut O,
    settings: &Settings,
    init: Weights,
    context: &Context<'_>,
    evaluate: Option<&mut Evaluate<'_>>,
) -> Result<Outcome, Error> {
    settings.check()?;
    let steps = settings.steps(objective.steps_per_epoch());
    let start = Start::find(objective, settings, steps, init, context)?;
    let resumed_from = start.state.as_ref().map(|state| state.record.step);
    let mut training = Training::new(objective, settings, steps, context, evaluate, start)?;
    let result = training.take_steps();
    if matches!(result, Err(Error::Interrupted(_))) {
        training.save()?;
    }
    result?;
    training.finish(resumed_from)
}

/// What a call begins with: the initial weights, or a checkpoint.
struct Start {
    training: Value,
    weights: Weights,
    optimizer: Optimizer,
    state: Option<State>,
}

impl Start {
    fn find<O: Objective>(
        objective: &O,
        settings: &Settings,
        steps: u64,
        init: Weights,
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        let directory = context.directory.join(CHECKPOINTS);
        std::fs::create_dir_all(&directory).map_err(FsError::io("create", &directory))?;
        let json = |source| FsError::Json { path: directory.clone(), source };
        let training = state::describe(objective, settings, steps, &init).map_err(json)?;
        for failed in checkpoint::clean(&directory)? {
            context.observer.note(&format!("{}: {}", failed.error, chain(&failed.error)));
        }
        let latest = checkpoint::latest_good(&directory)?;
        for refused in &latest.refused {
            let (path, error) = (refused.path.display(), &refused.error);
            context.observer.note(&format!("passed over the checkpoint {path}: {error}"));
        }
        let mut weights = init;
        let Some(loaded) = latest.good else {
            if let Some(newest) = latest.refused.into_iter().next() {
                let newest = Box::new(newest.error);
                return Err(Error::NoGoodCheckpoint { path: directory, newest });
            }
            let optimizer = Optimizer::new(&weights);
            let size = state::with_tensors(&weights, &optimizer, checkpoint::size);
            check_space(&directory, size * copies(settings, steps) + size / 3)?;
            return Ok(Self { training, weights, optimizer, state: None });
        };
        let (optimizer, state) = state::restore(&directory, loaded, &training, &mut weights)?;
        if state.record.step < steps {
            check_space(&directory, state::with_tensors(&weights, &optimizer, checkpoint::size))?;
        }
        Ok(Self { training, weights, optimizer, state: Some(state) })
    }
}

/// How many checkpoints are on the disk at one time: an old one goes after the new one is there.
fn copies(settings: &Settings, steps: u64) -> u64 {
    (settings.keep as u64 + 1).min(steps.div_ceil(settings.checkpoint_every))
}

fn check_space(path: &Path, needed: u64) -> Result<(), Error> {
    match checkpoint::free_bytes(path) {
        Some(free) if free < needed => Err(Error::NoSpace { path: path.to_owned(), needed, free }),
        _ => Ok(()),
    }
}

/// A training under way.
struct Training<'a, 'e, O: Objective> {
    objective: &'a mut O,
    settings: &'a Settings,
    context: &'a Context<'a>,
    evaluate: Option<&'a mut Evaluate<'e>>,
    checkpoints: PathBuf,
    /// How many steps there are to take.
    steps: u64,
    training: Value,
    weights: Weights,
    optimizer: Optimizer,
    /// Made for the first step, so that a finished training needs none.
    engine: Option<Engine>,
    metrics: MetricsFile,
    timing: TimingFile,
    /// The record of the last step that was taken.
    last: Option<Record>,
    last_record: LastRecord,
    /// What the newest checkpoint holds.
    saved: Option<(u64, LastRecord)>,
}

impl<'a, 'e, O: Objective> Training<'a, 'e, O> {
    fn new(
        objective: &'a mut O,
        settings: &'a Settings,
        steps: u64,
        context: &'a Context<'a>,
        evaluate: Option<&'a mut Evaluate<'e>>,
        start: Start,
    ) -> Result<Self, Error> {
        let Start { training, weights, optimizer, state } = start;
        let directory = context.directory;
        let metrics = match &state {
            Some(state) => MetricsFile::resume(directory, state.metrics, state.record.step)?,
            None => MetricsFile::create(directory)?,
        };
        Ok(Self {
            objective,
            settings,
            context,
            evaluate,
            checkpoints: directory.join(CHECKPOINTS),
            steps,
            training,
            weights,
            optimizer,
            engine: None,
            metrics,
            timing: TimingFile::open(directory)?,
            last_record: state.as_ref().map_or(LastRecord::Written, |state| state.last_record),
            saved: state.as_ref().map(|state| (state.record.step, state.last_record)),
            last: state.map(|state| state.record),
        })
    }

    fn step(&self) -> u64 {
        self.last.as_ref().map_or(0, |record| record.step)
    }

    /// The step of the newest checkpoint, 0 where there is none.
    fn newest_checkpoint(&self) -> u64 {
        self.saved.map_or(0, |(step, _)| step)
    }

    fn take_steps(&mut self) -> Result<(), Error> {
        if self.last_record == LastRecord::AwaitsEvaluation {
            self.finish_step()?;
        }
        while self.step() < self.steps {
            let began = Instant::now();
            let record = self.take_step()?;
            let tokens = record.tokens_seen - self.last.as_ref().map_or(0, |r| r.tokens_seen);
            self.report(&record, tokens, began.elapsed().as_secs_f64())?;
            self.last = Some(record);
            self.finish_step()?;
        }
        Ok(())
    }

    fn take_step(&mut self) -> Result<Record, Error> {
        let checkpoint = self.newest_checkpoint();
        let engine = engine(&mut self.engine, self.objective, &self.weights, self.context)?;
        let step = Step {
            settings: self.settings,
            steps: self.steps,
            index: self.last.as_ref().map_or(0, |record| record.step),
            tokens_seen: self.last.as_ref().map_or(0, |record| record.tokens_seen),
            checkpoint,
            pool: &self.context.pool,
            stop: self.context.stop,
        };
        take_step(&step, self.objective, engine, &mut self.weights, &mut self.optimizer)
    }

    fn report(&mut self, record: &Record, tokens: u64, seconds: f64) -> Result<(), Error> {
        let tokens_per_second = tokens as f64 / seconds.max(1e-9);
        self.timing.append(&Timing { step: record.step, seconds, tokens_per_second })?;
        let rate = thousands(tokens_per_second.round() as u64);
        self.context.observer.progress(Progress {
            done: record.step,
            total: Some(self.steps),
            unit: "steps",
            detail: format!("loss {:.3}  {rate} tokens/s", record.loss),
        });
        Ok(())
    }

    /// Evaluates where it is due, writes the record, and saves a checkpoint where it is due.
    fn finish_step(&mut self) -> Result<(), Error> {
        let step = self.step();
        let due = |every: u64| step == self.steps || step.is_multiple_of(every);
        let (evaluate, save) =
            (due(self.settings.evaluate_every), due(self.settings.checkpoint_every));
        self.last_record = LastRecord::AwaitsEvaluation;
        let evaluation = if evaluate { self.evaluate(step)? } else { Measures::new() };
        if let Some(record) = &mut self.last {
            record.evaluation = evaluation;
            self.metrics.append(record)?;
        }
        self.last_record = LastRecord::Written;
        if save { self.save() } else { Ok(()) }
    }

    fn evaluate(&mut self, step: u64) -> Result<Measures, Error> {
        let checkpoint = self.newest_checkpoint();
        let Some(evaluate) = &mut self.evaluate else { return Ok(Measures::new()) };
        let engine = engine(&mut self.engine, self.objective, &self.weights, self.context)?;
        match evaluate(engine, &self.weights, step) {
            Ok(measures) => {
                let mut values = measures.iter();
                match values.find(|(_, value)| !value.is_finite()) {
                    None => Ok(measures),
                    Some((what, &value)) => Err(Error::NonFinite {
                        objective: self.objective.name().to_owned(),
                        what: what.clone(),
                        value,
                        step,
                        checkpoint,
                    }),
                }
            }
            // Whatever the caller's error type, after a stop it is the answer to the stop.
            Err(_) if self.context.stop.raised() => Err(Error::Interrupted(base::Interrupted)),
            Err(source) => Err(Error::Evaluation { step, source }),
        }
    }

    /// Saves a checkpoint of the present state unless it is saved already, then removes old ones.
    fn save(&mut self) -> Result<(), Error> {
        let Some(record) = self.last.clone() else { return Ok(()) };
        let step = record.step;
        if self.saved == Some((step, self.last_record)) {
            return Ok(());
        }
        // The lines that a checkpoint counts on must not be lost before it is.
        let metrics = self.metrics.sync()?;
        let training = self.training.clone();
        let state = State { training, record, last_record: self.last_record, metrics };
        let path = self.context.directory.join(METRICS_FILE);
        let state =
            serde_json::to_value(&state).map_err(|source| FsError::Json { path, source })?;
        state::with_tensors(&self.weights, &self.optimizer, |tensors| {
            checkpoint::save(&self.checkpoints, step, tensors, &state)
        })?;
        self.saved = Some((step, self.last_record));
        for failed in checkpoint::prune(&self.checkpoints, self.settings.keep)?.failed {
            let (path, why) = (failed.path.display(), chain(&failed.error));
            self.context.observer.note(&format!("the old checkpoint {path} stays: {why}"));
        }
        Ok(())
    }

    fn finish(self, resumed_from: Option<u64>) -> Result<Outcome, Error> {
        let path = self.context.directory.join(WEIGHTS_FILE);
        self.weights.save(&path)?;
        let Some(last) = self.last else {
            let (name, found) = ("budget", self.steps.to_string());
            return Err(Error::Setting { name, found, expected: "at least one step" });
        };
        Ok(Outcome { weights: self.weights, steps: self.steps, last, resumed_from })
    }
}

/// The engine, made when it is first needed.
fn engine<'a, O: Objective>(
    engine: &'a mut Option<Engine>,
    objective: &O,
    weights: &Weights,
    context: &Context<'_>,
) -> Result<&'a mut Engine, model::Error> {
    let made = match engine.take() {
        Some(engine) => engine,
        None => {
            let capacity =
                Capacity { tokens: objective.max_tokens(), targets: objective.max_targets() };
            let pool = Arc::clone(&context.pool);
            Engine::with_capacity(weights.config(), capacity, Purpose::Training, pool)?
        }
    };
    Ok(engine.insert(made))
}

/// An error's causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// A number with its digits in groups of three.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, expected) in [(0, "0"), (980, "980"), (4980, "4,980"), (1234567, "1,234,567")]
        {
            assert_eq!(thousands(number), expected);
        }
    }

    #[test]
    fn too_little_disk_is_refused_with_both_figures() {
        let directory = tempfile::tempdir().unwrap();
        check_space(directory.path(), 1).unwrap();
        if checkpoint::free_bytes(directory.path()).is_some() {
            let error = check_space(directory.path(), u64::MAX).unwrap_err();
            assert!(error.is_disk_full() && error.to_string().contains("18446744073709551615"));
        }
    }

    #[test]
    fn a_short_training_needs_room_for_few_checkpoints() {
        let settings = Settings { keep: 2, checkpoint_every: 10, ..Settings::default() };
        for (steps, expected) in [(1, 1), (10, 1), (11, 2), (1000, 3)] {
            assert_eq!(copies(&settings, steps), expected);
        }
    }
}
