//! One step: the gradient of the mean loss over all micro-batches, clipped, and the update.

use crate::Error;
use crate::metrics::Record;
use crate::objective::{Measures, Objective, Sums};
use crate::optimizer::{Optimizer, Update};
use crate::schedule::learning_rate;
use crate::settings::Settings;
use base::Stop;
use kernels::{Pool, sum_of_squares};
use model::{Engine, Weights};

/// What a step is taken with.
pub(crate) struct Step<'a> {
    pub settings: &'a Settings,
    /// How many steps there are in all.
    pub steps: u64,
    /// The step, counted from 0.
    pub index: u64,
    /// Tokens read before it.
    pub tokens_seen: u64,
    /// The step of the newest checkpoint, for the message when the step fails.
    pub checkpoint: u64,
    pub pool: &'a Pool,
    pub stop: &'a Stop,
}

/// Takes a step. After an error the weights and moments are what they were.
pub(crate) fn take_step<O: Objective>(
    step: &Step<'_>,
    objective: &mut O,
    engine: &mut Engine,
    weights: &mut Weights,
    optimizer: &mut Optimizer,
) -> Result<Record, Error> {
    let number = step.index + 1;
    let work = objective.work(step.index).map_err(|source| failed(objective, number, source))?;
    let (sums, weight) = accumulate(step, objective, engine, weights, &work)?;
    let grad_norm = sum_of_squares(step.pool, engine.gradients()).sqrt();
    let mean = |sum: f64| sum / weight;
    let record = Record {
        step: number,
        tokens_seen: step.tokens_seen + work.iter().map(|work| objective.tokens(work)).sum::<u64>(),
        loss: mean(sums.loss),
        grad_norm,
        learning_rate: learning_rate(step.settings, step.steps, step.index),
        measures: sums.measures.iter().map(|(name, &sum)| (name.clone(), mean(sum))).collect(),
        evaluation: Measures::new(),
    };
    check_finite(step, objective, &record)?;
    let update = Update { step: number, learning_rate: record.learning_rate, grad_norm };
    optimizer.update(step.pool, step.settings, update, engine.gradients(), weights);
    Ok(record)
}

/// Sums loss and gradient over the micro-batches. Each counts by its targets, so that the gradient is that
/// of the mean over all targets of the step.
fn accumulate<O: Objective>(
    step: &Step<'_>,
    objective: &mut O,
    engine: &mut Engine,
    weights: &Weights,
    work: &[O::Work],
) -> Result<(Sums, f64), Error> {
    let number = step.index + 1;
    let weight: f64 = work.iter().map(|work| objective.weight(work)).sum();
    if weight <= 0.0 {
        let objective = objective.name().to_owned();
        return Err(Error::NothingCounted { objective, step: number });
    }
    engine.zero_gradients();
    let mut sums = Sums::default();
    for work in work.iter() {
        step.stop.check()?;
        if objective.weight(work) > 0.0 {
            let part = objective.accumulate(engine, weights, work, 1.0 / weight);
            sums.add(&part.map_err(|source| failed(objective, number, source))?);
        }
    }
    Ok((sums, weight))
}

fn failed<O: Objective>(
    objective: &O,
    step: u64,
    source: crate::objective::ObjectiveError,
) -> Error {
    Error::Objective { objective: objective.name().to_owned(), step, source }
}

fn check_finite<O: Objective>(
    step: &Step<'_>,
    objective: &O,
    record: &Record,
) -> Result<(), Error> {
    let own = [("loss", record.loss), ("grad_norm", record.grad_norm)];
    let others = record.measures.iter().map(|(name, &value)| (name.as_str(), value));
    match own.into_iter().chain(others).find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((what, value)) => Err(Error::NonFinite {
            objective: objective.name().to_owned(),
            what: what.to_owned(),
            value,
            step: record.step,
            checkpoint: step.checkpoint,
        }),
    }
}
