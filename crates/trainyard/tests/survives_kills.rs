//! A run that is killed again and again ends with the same weights as one that was left alone.
#![allow(clippy::unwrap_used)]

mod common;

use base::Seed;
use common::{start, succeed, tiny, weights_digest};
use std::path::Path;
use std::time::{Duration, Instant};

/// At least this many kills, spread over all stages.
const KILLS: usize = 20;

#[test]
fn killed_at_random_moments_the_weights_are_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let whole = directory.path().join("whole");
    succeed(&["run", &tiny(), "--dir", whole.to_str().unwrap()]);
    let expected = weights_digest(&whole);
    let stages = durations(&whole);
    assert!(stages.len() >= 9, "{stages:?}");

    let mut rng = Seed(20).rng();
    let mut kills = 0;
    let mut killed_in = std::collections::BTreeSet::new();
    for attempt in 0.. {
        let dir = directory.path().join(format!("killed-{attempt}"));
        for (stage, seconds) in &stages {
            let delay = Duration::from_secs_f64(seconds * rng.uniform());
            if kill_in(&dir, stage, delay) {
                kills += 1;
                killed_in.insert(stage.clone());
            }
        }
        succeed(&["run", &tiny(), "--dir", dir.to_str().unwrap()]);
        assert_eq!(weights_digest(&dir), expected, "after {kills} kills");
        let noticed = interruptions(&dir);
        assert!(noticed > 0, "kills are written down");
        if kills >= KILLS && killed_in.len() == stages.len() {
            break;
        }
        assert!(attempt < 10, "only {kills} kills, in {killed_in:?}");
    }
}

/// The stages of a finished run with the seconds that each took.
fn durations(dir: &Path) -> Vec<(String, f64)> {
    let status = common::status(dir);
    let stages = status["stages"].as_array().unwrap().iter();
    let pairs =
        stages.map(|s| (s["name"].as_str().unwrap().to_owned(), s["seconds"].as_f64().unwrap()));
    pairs.collect()
}

/// Starts the run and kills it `delay` after `stage` began. False if the run ended before.
fn kill_in(dir: &Path, stage: &str, delay: Duration) -> bool {
    let begun_before = begun(dir, stage);
    let mut child = start(&["run", &tiny(), "--dir", dir.to_str().unwrap()]);
    let deadline = Instant::now() + Duration::from_secs(300);
    while begun(dir, stage) == begun_before {
        assert!(Instant::now() < deadline, "{stage} never began");
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(delay);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// How often a stage was begun.
fn begun(dir: &Path, stage: &str) -> usize {
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
    let mark = format!("\"stage\":\"{stage}\"");
    events
        .lines()
        .filter(|line| line.contains("\"what\":\"stage\"") && line.contains(&mark))
        .count()
}

fn interruptions(dir: &Path) -> usize {
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    events.lines().filter(|line| line.contains("\"what\":\"interrupted\"")).count()
}
