//! Checkpoints against the faults that users of such systems report.
#![allow(clippy::unwrap_used)]

use checkpoint::{
    Error, PAYLOAD_FILE, STATE_FILE, TensorView, clean, latest, latest_good, load, prune, save,
};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// A checkpoint whose content follows from its step.
fn save_step(directory: &Path, step: u64) -> PathBuf {
    let a: Vec<f32> = (0..60_000).map(|i| (i as f32 + step as f32).sin()).collect();
    let b = [step as f32, f32::MIN_POSITIVE / 2.0, -0.0];
    let tensors = [
        TensorView { name: "first", shape: &[600, 100], data: &a },
        TensorView { name: "second", shape: &[3], data: &b },
        TensorView { name: "empty", shape: &[0, 4], data: &[] },
    ];
    save(directory, step, &tensors, &json!({"tokens_seen": 10 * step, "loss": 0.1})).unwrap()
}

fn flip(path: &Path, byte: usize, bit: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[byte] ^= 1 << bit;
    fs::write(path, bytes).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_saved_is_loaded_bit_for_bit() {
    let directory = tempfile::tempdir().unwrap();
    let path = save_step(directory.path(), 7);
    let loaded = load(&path).unwrap();
    assert_eq!((loaded.step, loaded.state["tokens_seen"].as_u64()), (7, Some(70)));
    assert_eq!(loaded.tensors["first"].shape, [600, 100]);
    assert_eq!(loaded.tensors["empty"].data.len(), 0);
    let bits = |data: &[f32]| data.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&loaded.tensors["second"].data), bits(&[7.0, f32::MIN_POSITIVE / 2.0, -0.0]));
    let first: Vec<f32> = (0..60_000).map(|i| (i as f32 + 7.0).sin()).collect();
    assert_eq!(bits(&loaded.tensors["first"].data), bits(&first));
}

#[test]
fn one_flipped_bit_is_refused_by_file_and_tensor() {
    let check = |file: &str, byte: usize, expected: &[&str]| {
        let directory = tempfile::tempdir().unwrap();
        let path = save_step(directory.path(), 1);
        flip(&path.join(file), byte, 3);
        let error = load(&path).unwrap_err().to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    };
    check(PAYLOAD_FILE, 0, &[PAYLOAD_FILE, "tensor first"]);
    check(PAYLOAD_FILE, 239_999, &[PAYLOAD_FILE, "tensor first"]);
    check(PAYLOAD_FILE, 240_000, &[PAYLOAD_FILE, "tensor second"]);
    check(PAYLOAD_FILE, 240_011, &[PAYLOAD_FILE, "tensor second"]);
}

#[test]
fn no_flipped_bit_of_the_description_goes_unnoticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = save_step(directory.path(), 1);
    let whole = load(&path).unwrap();
    let description = path.join(STATE_FILE);
    for byte in 0..fs::read(&description).unwrap().len() {
        let bit = (byte % 8) as u8;
        flip(&description, byte, bit);
        // White space between the values carries nothing: there, the content is still the same.
        if let Ok(loaded) = load(&path) {
            assert_eq!(loaded, whole, "byte {byte}");
        }
        flip(&description, byte, bit);
    }
}

#[test]
fn a_cut_or_lengthened_payload_is_refused() {
    for length in [0, 100, 240_011, 240_013] {
        let directory = tempfile::tempdir().unwrap();
        let path = save_step(directory.path(), 1);
        let file = fs::File::options().write(true).open(path.join(PAYLOAD_FILE)).unwrap();
        file.set_len(length).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("expected 240012 bytes"), "{error}");
        assert!(latest(directory.path()).unwrap().is_none());
    }
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for step in [10, 20, 30] {
        save_step(directory, step);
    }
    flip(&directory.join("step-00000030").join(PAYLOAD_FILE), 5, 0);
    let found = latest_good(directory).unwrap();
    assert_eq!(found.good.unwrap().step, 20);
    assert_eq!(found.refused.len(), 1);
    assert!(found.refused[0].path.ends_with("step-00000030"));
    fs::remove_file(directory.join("step-00000020").join(STATE_FILE)).unwrap();
    let found = latest_good(directory).unwrap();
    assert_eq!((found.good.unwrap().step, found.refused.len()), (10, 2));
    // Saving the damaged step again puts a good one in its place.
    save_step(directory, 30);
    assert_eq!(latest_good(directory).unwrap().good.unwrap().step, 30);
}

#[test]
fn a_checkpoint_copied_by_hand_is_used_and_stays() {
    let elsewhere = tempfile::tempdir().unwrap();
    let original = save_step(elsewhere.path(), 50);
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    save_step(directory, 10);
    for name in ["step-50", "step-00000050-backup"] {
        let copy = directory.join(name);
        fs::create_dir(&copy).unwrap();
        for file in [PAYLOAD_FILE, STATE_FILE] {
            fs::copy(original.join(file), copy.join(file)).unwrap();
        }
    }
    assert!(clean(directory).unwrap().is_empty());
    assert_eq!(latest(directory).unwrap().unwrap().path, directory.join("step-50"));
    assert_eq!(latest_good(directory).unwrap().good.unwrap().step, 50);
    assert_eq!(names(directory), ["step-00000010", "step-00000050-backup", "step-50"]);
}

#[test]
fn a_copy_under_another_steps_name_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let path = save_step(directory, 10);
    save_step(directory, 5);
    fs::rename(path, directory.join("step-00000099")).unwrap();
    let found = latest_good(directory).unwrap();
    assert_eq!(found.good.unwrap().step, 5);
    assert!(matches!(found.refused[0].error, Error::Misnamed { found: 10, .. }));
}

#[test]
fn a_wrong_path_is_an_error_that_names_it() {
    let error = load(Path::new("runs/nowhere/step-00000001")).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }));
    assert!(error.to_string().contains("runs/nowhere/step-00000001"), "{error}");
    assert!(latest(Path::new("runs/nowhere")).unwrap().is_none());
}

#[test]
fn another_layout_is_told_apart_from_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = save_step(directory.path(), 1).join(STATE_FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"layout\": 1", "\"layout\": 2")).unwrap();
    let error = latest_good(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Layout { expected: 1, found: 2, .. }), "{error}");
}

#[test]
fn pruning_keeps_the_newest_whole_ones() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for step in 1..=5 {
        save_step(directory, step);
    }
    fs::remove_file(directory.join("step-00000005").join(STATE_FILE)).unwrap();
    let pruned = prune(directory, 2).unwrap();
    assert_eq!(pruned.removed.iter().map(|found| found.step).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(names(directory), ["step-00000003", "step-00000004", "step-00000005"]);
    assert_eq!(prune(directory, 0).unwrap().removed.len(), 1);
    assert_eq!(latest_good(directory).unwrap().good.unwrap().step, 4);
}

#[test]
fn bad_tensors_are_not_saved() {
    let directory = tempfile::tempdir().unwrap();
    let state = json!({});
    let wrong = TensorView { name: "w", shape: &[2, 2], data: &[1.0, 2.0] };
    let error = save(directory.path(), 1, &[wrong], &state).unwrap_err();
    assert!(matches!(error, Error::Shape { found: 2, .. }), "{error}");
    let twice = TensorView { name: "w", shape: &[1], data: &[1.0] };
    let error = save(directory.path(), 1, &[twice, twice], &state).unwrap_err();
    assert!(matches!(error, Error::Duplicate { .. }), "{error}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn the_same_checkpoint_gives_the_same_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (save_step(one.path(), 3), save_step(two.path(), 3));
    save_step(two.path(), 3);
    for file in [PAYLOAD_FILE, STATE_FILE] {
        assert_eq!(fs::read(a.join(file)).unwrap(), fs::read(b.join(file)).unwrap());
    }
}
