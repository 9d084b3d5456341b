//! A process that saves checkpoints all the time is killed at moments spread over its writes.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use checkpoint::{TensorView, clean, latest_good, prune, save};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DIRECTORY: &str = "CHECKPOINT_TEST_DIRECTORY";

/// The child of the test below: it alone has the variable.
#[test]
fn writer() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let first = latest_good(directory).unwrap().good.map_or(0, |loaded| loaded.step);
    for step in first.. {
        let data = vec![step as f32; 1 << 18];
        let tensors = [TensorView { name: "w", shape: &[1 << 18], data: &data }];
        // Odd steps are saved twice with different states, so that replacing is cut off too.
        for state in 0..=(step % 2) {
            save(directory, step, &tensors, &json!({ "state": state })).unwrap();
        }
        prune(directory, 2).unwrap();
    }
}

#[test]
fn after_every_kill_a_good_checkpoint_is_there_and_no_step_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut newest = 0;
    for round in 0..25u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer"])
            .env(DIRECTORY, directory)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(40_000 + 1_777 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(clean(directory).unwrap().is_empty());
        let found = latest_good(directory).unwrap();
        assert!(found.refused.is_empty(), "{:?}", found.refused);
        let Some(loaded) = found.good else { continue };
        assert!(loaded.step >= newest, "{} after {newest}", loaded.step);
        assert!(loaded.tensors["w"].data.iter().all(|&v| v == loaded.step as f32));
        newest = loaded.step;
        let entries = std::fs::read_dir(directory).unwrap().count();
        assert!(entries <= 3, "{entries} entries: leftovers were not swept");
    }
    assert!(newest > 0, "no round got as far as a checkpoint");
}
