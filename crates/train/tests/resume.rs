//! A training that was cut off ends with the same bits as one that was not.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Silent, Stop};
use common::{
    Fault, Patterns, Watcher, checkpoints, result, settings, train, train_with, undisturbed,
    weights,
};
use std::fs;
use std::path::Path;
use train::{Error, Settings, learning_rate, read_metrics, read_timing};

/// Trains until a stop that is raised after `step` steps.
fn stop_after(directory: &Path, step: u64, threads: usize) {
    let stop = Stop::new();
    let watcher = Watcher { stop_after: Some((step, &stop)), ..Watcher::default() };
    let mut objective = Patterns::new(1);
    let result = train_with(directory, &mut objective, &settings(), threads, &watcher, &stop);
    assert!(matches!(result, Err(Error::Interrupted(_))), "{result:?}");
}

/// Trains until a fault.
fn disturb(directory: &Path, fault: Fault) -> Error {
    let stop = Stop::new();
    let mut objective = Patterns::with(fault, &stop);
    train_with(directory, &mut objective, &settings(), 1, &Silent, &stop).unwrap_err()
}

#[test]
fn stopped_after_any_step_the_result_is_the_same() {
    let expected = undisturbed();
    // 3 and 6 are evaluated after the stop was raised, so they wait for it in the checkpoint.
    for step in 1..=12 {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        stop_after(directory, step, 1);
        let outcome = train(directory).unwrap();
        assert_eq!(outcome.resumed_from, Some(step));
        assert_eq!(result(directory, &outcome), expected, "stopped after {step}");
    }
}

#[test]
fn stopped_again_and_again_the_result_is_the_same() {
    let expected = undisturbed();
    let directory = tempfile::tempdir().unwrap();
    for step in 1..=12 {
        stop_after(directory.path(), step, 1 + step as usize % 2);
    }
    let outcome = train(directory.path()).unwrap();
    assert_eq!(result(directory.path(), &outcome), expected);
}

#[test]
fn stopped_within_a_step_the_result_is_the_same() {
    let expected = undisturbed();
    for (index, resumed_from) in [(0, None), (4, Some(4)), (6, Some(6)), (11, Some(11))] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let error = disturb(directory, Fault::Stops(index));
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        let outcome = train(directory).unwrap();
        assert_eq!(outcome.resumed_from, resumed_from);
        assert_eq!(result(directory, &outcome), expected);
    }
}

#[test]
fn cut_off_without_warning_it_goes_on_from_the_last_checkpoint() {
    let expected = undisturbed();
    for (index, resumed_from) in [(2, None), (3, None), (4, Some(4)), (7, Some(4)), (11, Some(8))] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let error = disturb(directory, Fault::Fails(index));
        assert!(error.to_string().contains(&format!("step {}", index + 1)), "{error}");
        let outcome = train(directory).unwrap();
        assert_eq!(outcome.resumed_from, resumed_from);
        assert_eq!(result(directory, &outcome), expected);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let expected = undisturbed();
    for threads in [2, 3] {
        let directory = tempfile::tempdir().unwrap();
        let (mut objective, stop) = (Patterns::new(1), Stop::new());
        let outcome =
            train_with(directory.path(), &mut objective, &settings(), threads, &Silent, &stop);
        assert_eq!(result(directory.path(), &outcome.unwrap()), expected);
    }
}

#[test]
fn a_finished_training_only_gives_its_outcome() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let first = train(directory).unwrap();
    let expected = result(directory, &first);
    fs::remove_file(directory.join(train::WEIGHTS_FILE)).unwrap();
    let watcher = Watcher::default();
    let stop = Stop::new();
    let again =
        train_with(directory, &mut Patterns::new(1), &settings(), 1, &watcher, &stop).unwrap();
    assert_eq!(result(directory, &again), expected);
    assert_eq!((again.resumed_from, &again.last), (Some(12), &first.last));
    assert!(watcher.progress.lock().unwrap().is_empty());
    assert!(first.last.evaluation.contains_key("nats-per-token"));
}

#[test]
fn a_final_evaluation_that_was_stopped_is_made_up_for_once() {
    let expected = undisturbed();
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    stop_after(directory, 12, 1);
    assert!(read_metrics(directory).unwrap().iter().all(|record| record.step < 12));
    let outcome = train(directory).unwrap();
    assert_eq!(result(directory, &outcome), expected);
    // Nothing is left to evaluate, so even a raised stop changes nothing.
    let stop = Stop::new();
    stop.raise();
    let again = train_with(directory, &mut Patterns::new(1), &settings(), 1, &Silent, &stop);
    assert_eq!(result(directory, &again.unwrap()), expected);
}

#[test]
fn another_training_is_refused_with_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    stop_after(directory, 5, 1);
    let check = |objective: &mut Patterns<'_>, settings: &Settings, part: &str| {
        let stop = Stop::new();
        let error = train_with(directory, objective, settings, 1, &Silent, &stop).unwrap_err();
        assert!(matches!(error, Error::OtherTraining { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let other = Settings { learning_rate: 0.02, ..settings() };
    check(&mut Patterns::new(1), &other, "settings.learning-rate was 0.01, is 0.02 now");
    check(&mut Patterns::new(2), &settings(), "objective-digest");
    let mut longer = settings();
    longer.budget = train::Budget::Steps(13);
    check(&mut Patterns::new(1), &longer, "steps was 12, is 13 now");
    // What changes nothing in the result may change: the same budget in other words, and checkpoints.
    let mut same = Settings { checkpoint_every: 1, keep: 5, ..settings() };
    same.budget = train::Budget::Epochs(3.0);
    let stop = Stop::new();
    train_with(directory, &mut Patterns::new(1), &same, 1, &Silent, &stop).unwrap();
}

#[test]
fn other_initial_weights_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    stop_after(directory.path(), 5, 1);
    let mut init = weights();
    init.as_mut_slice()[0] += 1.0;
    let stop = Stop::new();
    let pool = std::sync::Arc::new(kernels::Pool::new(1));
    let context =
        train::Context { directory: directory.path(), pool, observer: &Silent, stop: &stop };
    let error = train::run(&mut Patterns::new(1), &settings(), init, &context, None).unwrap_err();
    assert!(error.to_string().contains("initial-weights"), "{error}");
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let expected = undisturbed();
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    disturb(directory, Fault::Fails(9));
    assert_eq!(checkpoints(directory), ["step-00000004", "step-00000008"]);
    let damage = |step: &str| {
        let path = directory.join(train::CHECKPOINTS).join(step).join(checkpoint::PAYLOAD_FILE);
        let mut bytes = fs::read(&path).unwrap();
        bytes[1000] ^= 4;
        fs::write(path, bytes).unwrap();
    };
    damage("step-00000008");
    let (watcher, stop) = (Watcher::default(), Stop::new());
    let outcome =
        train_with(directory, &mut Patterns::new(1), &settings(), 1, &watcher, &stop).unwrap();
    assert_eq!(outcome.resumed_from, Some(4));
    assert_eq!(result(directory, &outcome), expected);
    let notes = watcher.notes.lock().unwrap().join("\n");
    assert!(notes.contains("step-00000008") && notes.contains("corrupted in tensor"), "{notes}");
    // With all of them damaged it does not begin anew in silence.
    damage("step-00000008");
    damage("step-00000012");
    let error = train(directory).unwrap_err();
    assert!(matches!(error, Error::NoGoodCheckpoint { .. }), "{error}");
    assert!(error.to_string().contains("step-00000012"), "{error}");
}

#[test]
fn metrics_that_were_changed_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    stop_after(directory.path(), 5, 1);
    let path = directory.path().join(train::METRICS_FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"step\":1", "\"step\":7", 1)).unwrap();
    let error = train(directory.path()).unwrap_err();
    assert!(matches!(error, Error::MetricsChanged { step: 5, .. }), "{error}");
}

#[test]
fn the_records_follow_from_the_settings_also_after_resuming() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    disturb(directory, Fault::Fails(6));
    stop_after(directory, 10, 1);
    train(directory).unwrap();
    let records = read_metrics(directory).unwrap();
    assert_eq!(records.len(), 12);
    let mut tokens_seen = 0;
    for (record, step) in records.iter().zip(1..) {
        assert_eq!(record.step, step);
        assert_eq!(record.learning_rate, learning_rate(&settings(), 12, step - 1));
        assert!(record.tokens_seen > tokens_seen);
        assert_eq!(record.measures["targets-doubled"], 2.0);
        assert_eq!(record.evaluation.is_empty(), step % 3 != 0);
        tokens_seen = record.tokens_seen;
    }
    // Steps 5 and 6 were taken twice.
    let timing: Vec<u64> = read_timing(directory).unwrap().iter().map(|t| t.step).collect();
    assert_eq!(timing, [1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn progress_is_told_every_step_and_old_checkpoints_go() {
    let directory = tempfile::tempdir().unwrap();
    let (watcher, stop) = (Watcher::default(), Stop::new());
    let mut objective = Patterns::new(1);
    train_with(directory.path(), &mut objective, &settings(), 1, &watcher, &stop).unwrap();
    let progress = watcher.progress.lock().unwrap();
    assert_eq!(progress.len(), 12);
    assert_eq!((progress[4].done, progress[4].total, progress[4].unit), (5, Some(12), "steps"));
    assert!(progress[4].detail.starts_with("loss ") && progress[4].detail.ends_with(" tokens/s"));
    assert_eq!(checkpoints(directory.path()), ["step-00000008", "step-00000012"]);
}
