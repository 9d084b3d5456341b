//! A tiny training whose data are random, and ways to disturb it.
#![allow(dead_code, clippy::unwrap_used)]

use base::{Digest, Observer, Progress, Seed, Stop};
use kernels::Pool;
use model::{Batch, Engine, ModelConfig, Weights};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use train::{
    Budget, Context, Error, Evaluate, Measures, Objective, ObjectiveError, Outcome, Settings, Sums,
    learn_targets,
};

pub const VOCAB: usize = 24;

pub fn weights() -> Weights {
    Weights::init(&ModelConfig::from_depth(0, VOCAB, 16), Seed(3)).unwrap()
}

/// 12 steps with a checkpoint after every 4th and an evaluation after every 3rd.
pub fn settings() -> Settings {
    Settings {
        budget: Budget::Steps(12),
        global_batch_tokens: 96,
        micro_batch_tokens: 32,
        learning_rate: 0.01,
        warmup_share: 0.2,
        checkpoint_every: 4,
        evaluate_every: 3,
        ..Settings::default()
    }
}

/// What goes wrong in a step, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// The second micro-batch fails: what a killed process leaves behind.
    Fails(u64),
    /// The stop is raised while the first micro-batch is computed.
    Stops(u64),
    LossIsNan(u64),
    GradientIsNan(u64),
    MeasureIsInfinite(u64),
    NothingCounted(u64),
}

/// Sequences with a pattern, as a pure function of seed and step; micro-batches of unequal size.
pub struct Patterns<'a> {
    pub seed: Seed,
    pub fault: Fault,
    pub stop: Option<&'a Stop>,
    step: AtomicU64,
}

impl<'a> Patterns<'a> {
    pub fn new(seed: u64) -> Self {
        Self { seed: Seed(seed), fault: Fault::None, stop: None, step: AtomicU64::new(0) }
    }

    pub fn with(fault: Fault, stop: &'a Stop) -> Self {
        Self { fault, stop: Some(stop), ..Self::new(1) }
    }
}

/// `count` sequences that count up from a random start.
pub fn sequences(seed: Seed, count: usize) -> Vec<Vec<u32>> {
    let mut rng = seed.rng();
    (0..count)
        .map(|_| {
            let (start, length) = (rng.below(VOCAB), 3 + rng.below(6));
            (0..length).map(|i| ((start + i) % VOCAB) as u32).collect()
        })
        .collect()
}

impl Objective for Patterns<'_> {
    type Work = Batch;

    fn name(&self) -> &str {
        "patterns"
    }

    fn digest(&self) -> Digest {
        Digest::of_bytes(&self.seed.0.to_le_bytes())
    }

    fn max_tokens(&self) -> usize {
        64
    }

    fn steps_per_epoch(&self) -> f64 {
        4.0
    }

    fn work(&self, step: u64) -> Result<Vec<Batch>, ObjectiveError> {
        self.step.store(step, Ordering::SeqCst);
        if self.fault == Fault::NothingCounted(step) {
            return Ok(vec![Batch::new()]);
        }
        let seed = self.seed.at(step);
        Ok((0..3)
            .map(|i| Batch::from_sequences(&sequences(seed.at(i), 1 + 3 * i as usize)))
            .collect())
    }

    fn weight(&self, work: &Batch) -> f64 {
        work.targets.len() as f64
    }

    fn tokens(&self, work: &Batch) -> u64 {
        work.tokens.len() as u64
    }

    fn accumulate(
        &mut self,
        engine: &mut Engine,
        weights: &Weights,
        work: &Batch,
        scale: f64,
    ) -> Result<Sums, ObjectiveError> {
        let step = self.step.load(Ordering::SeqCst);
        let second = work.segments.len() > 1;
        if self.fault == Fault::Fails(step) && second {
            return Err("the power went out".into());
        }
        if let (Fault::Stops(at), Some(stop)) = (self.fault, self.stop)
            && at == step
        {
            stop.raise();
        }
        let mut sums = learn_targets(engine, weights, work, scale)?;
        sums.measures.insert("targets-doubled".into(), 2.0 * self.weight(work));
        match self.fault {
            Fault::LossIsNan(at) if at == step => sums.loss = f64::NAN,
            Fault::GradientIsNan(at) if at == step => engine.gradients_mut()[5] = f32::NAN,
            Fault::MeasureIsInfinite(at) if at == step => {
                sums.measures.insert("odds".into(), f64::INFINITY);
            }
            _ => {}
        }
        Ok(sums)
    }
}

/// Keeps what it is told, and raises a stop after a step.
#[derive(Default)]
pub struct Watcher<'a> {
    pub stop_after: Option<(u64, &'a Stop)>,
    pub progress: Mutex<Vec<Progress>>,
    pub notes: Mutex<Vec<String>>,
}

impl Observer for Watcher<'_> {
    fn progress(&self, progress: Progress) {
        if let Some((step, stop)) = self.stop_after
            && step == progress.done
        {
            stop.raise();
        }
        self.progress.lock().unwrap().push(progress);
    }

    fn note(&self, message: &str) {
        self.notes.lock().unwrap().push(message.to_owned());
    }
}

/// Held-out loss of a fixed set, unless the stop is raised.
pub fn evaluation(stop: &Stop) -> impl FnMut(&mut Engine, &Weights, u64) -> Evaluated + '_ {
    |engine, weights, _| {
        let batches = train::batches_of(&sequences(Seed(99), 4), 16, 32);
        let loss = train::held_out_loss(engine, weights, &batches, stop)?;
        Ok(Measures::from([("nats-per-token".into(), loss.nats_per_token())]))
    }
}

pub type Evaluated = Result<Measures, ObjectiveError>;

/// Trains in `directory` with everything given.
pub fn train_with(
    directory: &Path,
    objective: &mut Patterns<'_>,
    settings: &Settings,
    threads: usize,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Outcome, Error> {
    let pool = Arc::new(Pool::new(threads));
    let context = Context { directory, pool, observer, stop };
    let mut evaluate = evaluation(stop);
    let evaluate: &mut Evaluate<'_> = &mut evaluate;
    train::run(objective, settings, weights(), &context, Some(evaluate))
}

/// Trains undisturbed.
pub fn train(directory: &Path) -> Result<Outcome, Error> {
    let mut objective = Patterns::new(1);
    let stop = Stop::new();
    train_with(directory, &mut objective, &settings(), 1, &base::Silent, &stop)
}

/// All that must not depend on interruptions: the weights' digest and file, and the metrics' bytes.
#[derive(PartialEq)]
pub struct Traces {
    pub digest: Digest,
    pub file: Vec<u8>,
    pub metrics: String,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.digest, self.metrics)
    }
}

pub fn result(directory: &Path, outcome: &Outcome) -> Traces {
    Traces {
        digest: outcome.weights.digest(),
        file: std::fs::read(directory.join(train::WEIGHTS_FILE)).unwrap(),
        metrics: std::fs::read_to_string(directory.join(train::METRICS_FILE)).unwrap(),
    }
}

/// The result of an undisturbed training.
pub fn undisturbed() -> Traces {
    let directory = tempfile::tempdir().unwrap();
    let outcome = train(directory.path()).unwrap();
    result(directory.path(), &outcome)
}

/// Names in the directory of checkpoints, sorted.
pub fn checkpoints(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory.join(train::CHECKPOINTS)).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
