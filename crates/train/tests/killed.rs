//! A training in a process of its own is killed again and again, and ends with the same bits.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use base::{Silent, Stop};
use common::{Patterns, result, settings, train_with, undisturbed};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use train::Settings;

const DIRECTORY: &str = "TRAIN_TEST_DIRECTORY";

/// With a checkpoint after every step, so that many kills meet one being written.
fn train(directory: &Path) -> train::Outcome {
    let settings = Settings { checkpoint_every: 1, ..settings() };
    let (mut objective, stop) = (Patterns::new(1), Stop::new());
    train_with(directory, &mut objective, &settings, 2, &Silent, &stop).unwrap()
}

/// The child of the test below: it alone has the variable.
#[test]
fn victim() {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        train(Path::new(&directory));
    }
}

#[test]
fn killed_at_any_moment_the_result_is_the_same() {
    let expected = undisturbed();
    for round in 0..4u64 {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut kills = 0;
        loop {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "victim"])
                .env(DIRECTORY, directory)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros(9_000 + 1_300 * (kills + round) % 12_000));
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success());
                break;
            }
            child.kill().unwrap();
            if child.wait().unwrap().success() {
                break;
            }
            kills += 1;
            if kills > 60 {
                break;
            }
        }
        let outcome = train(directory);
        assert_eq!(result(directory, &outcome), expected, "round {round}, {kills} kills");
    }
}
