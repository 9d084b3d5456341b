//! What goes wrong halts the training with the step named and the last good checkpoint kept.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Silent, Stop};
use common::{Fault, Patterns, checkpoints, result, settings, train, train_with, undisturbed};
use train::{Error, Settings};

fn disturb(fault: Fault) -> (tempfile::TempDir, Error) {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop::new();
    let mut objective = Patterns::with(fault, &stop);
    let error =
        train_with(directory.path(), &mut objective, &settings(), 1, &Silent, &stop).unwrap_err();
    (directory, error)
}

#[test]
fn what_is_not_finite_halts_and_keeps_the_checkpoint() {
    let expected = undisturbed();
    let check = |fault, what: &str| {
        let (directory, error) = disturb(fault);
        let message = error.to_string();
        let parts = [what, "in step 7 of patterns", "checkpoint is that of step 4"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert_eq!(checkpoints(directory.path()), ["step-00000004"]);
        // Nothing of the bad step is in the checkpoint or the metrics.
        let outcome = train(directory.path()).unwrap();
        assert_eq!(result(directory.path(), &outcome), expected);
    };
    check(Fault::LossIsNan(6), "loss is NaN");
    check(Fault::GradientIsNan(6), "grad_norm is NaN");
    check(Fault::MeasureIsInfinite(6), "odds is inf");
}

#[test]
fn a_step_without_targets_has_no_loss_of_zero() {
    let (_directory, error) = disturb(Fault::NothingCounted(2));
    assert!(matches!(error, Error::NothingCounted { step: 3, .. }), "{error}");
}

#[test]
fn impossible_settings_are_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { learning_rate: 0.0, ..settings() };
    let (mut objective, stop) = (Patterns::new(1), Stop::new());
    let error =
        train_with(directory.path(), &mut objective, &settings, 1, &Silent, &stop).unwrap_err();
    assert!(error.to_string().contains("learning-rate is 0"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_the_metrics_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(train::METRICS_FILE);
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let error = train(directory.path()).unwrap_err();
    assert!(error.is_disk_full() && error.to_string().contains("metrics.jsonl"), "{error}");
}

#[test]
fn checkpoints_that_cannot_be_written_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(train::CHECKPOINTS), b"in the way").unwrap();
    let error = train(directory.path()).unwrap_err();
    assert!(error.to_string().contains("checkpoints"), "{error}");
}
