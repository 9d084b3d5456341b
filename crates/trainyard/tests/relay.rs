//! The whole relay on the tiny recipe, as a person runs it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{output, root, status, succeed, tiny, weights_digest};
use std::path::{Path, PathBuf};

fn run(directory: &Path, name: &str, more: &[&str]) -> PathBuf {
    let dir = directory.join(name);
    let tiny = tiny();
    let mut args = vec!["run", &tiny, "--dir", dir.to_str().unwrap()];
    args.extend(more);
    succeed(&args);
    dir
}

#[test]
fn one_and_two_threads_give_the_same_bytes_and_another_seed_others() {
    let directory = tempfile::tempdir().unwrap();
    let one = run(directory.path(), "one", &["--threads", "1"]);
    let two = run(directory.path(), "two", &["--threads", "2"]);
    let other = run(directory.path(), "other", &["--seed", "8"]);
    let digests = |dir: &Path| -> Vec<String> {
        let status = status(dir);
        let stages = status["stages"].as_array().unwrap().iter();
        stages.map(|stage| stage["digest"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(digests(&one), digests(&two), "every manifest, judgements included");
    assert_eq!(weights_digest(&one), weights_digest(&two));
    assert_ne!(weights_digest(&one), weights_digest(&other));
}

#[test]
fn a_finished_run_does_nothing_when_it_is_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let dir = run(directory.path(), "run", &[]);
    let before = modified(&dir);
    let again = succeed(&["run", &tiny(), "--dir", dir.to_str().unwrap()]);
    assert_eq!(again.matches("done before").count(), before.len(), "{again}");
    assert_eq!(modified(&dir), before);
}

/// When each stage's manifest was written.
fn modified(dir: &Path) -> Vec<std::time::SystemTime> {
    let status = status(dir);
    let stages = status["stages"].as_array().unwrap().iter();
    stages
        .map(|stage| dir.join(stage["name"].as_str().unwrap()).join("manifest.json"))
        .map(|path| std::fs::metadata(path).unwrap().modified().unwrap())
        .collect()
}

#[test]
fn every_command_works_on_a_finished_run() {
    let directory = tempfile::tempdir().unwrap();
    let dir = run(directory.path(), "run", &[]);
    let at = dir.to_str().unwrap();
    for file in [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
        "README.md",
    ] {
        assert!(dir.join("10-release/weights").join(file).exists(), "{file}");
    }
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("Judgements") && !page.contains("<script src"), "a page");

    for model in ["base", "sft", "aligned"] {
        let text = succeed(&["chat", "--dir", at, "--model", model, "--prompt", "hello", "--json"]);
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["model"], model);
        assert!(answer["answer"].is_string());
    }
    let text = succeed(&["eval", "--dir", at, "--json"]);
    let evaluation: serde_json::Value = serde_json::from_str(&text).unwrap();
    let judged: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("09-judge/judged.json")).unwrap()).unwrap();
    assert_eq!(evaluation["overall"], judged["answers"][2]["overall"], "as in the report");

    succeed(&[
        "decide",
        "--dir",
        at,
        "keep the blocklist",
        "--reason",
        "nobody minds",
        "--by",
        "me",
    ]);
    let log = succeed(&["decide", "--dir", at]);
    assert!(log.contains("keep the blocklist") && log.contains("nobody minds"), "{log}");
    succeed(&["report", "--dir", at]);
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("keep the blocklist"), "decisions are on the page");
}

#[test]
fn json_is_one_object_on_stdout() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("run");
    let text =
        succeed(&["run", &tiny(), "--dir", dir.to_str().unwrap(), "--json", "--until", "mixture"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["state"], "unfinished");
}

#[test]
fn a_gate_that_is_not_passed_keeps_the_candidate_and_exits_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let data = root().join("recipes/tiny-data");
    let text = std::fs::read_to_string(tiny()).unwrap();
    let text = text
        .replace("\"tiny-data", &format!("\"{}", data.display()))
        .replace("bits-per-byte-at-most = 8.0", "bits-per-byte-at-most = 0.001");
    let recipe = directory.path().join("strict.toml");
    std::fs::write(&recipe, text).unwrap();
    let dir = directory.path().join("run");
    let args = ["run", recipe.to_str().unwrap(), "--dir", dir.to_str().unwrap()];
    for _ in 0..2 {
        let refused = output(&args);
        let shown = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{shown}");
        assert!(shown.contains("bits-per-byte-at-most"), "{shown}");
    }
    assert!(dir.join("10-release/candidate/model.safetensors").exists());
    assert_eq!(status(&dir)["released"], false);
}

#[test]
fn a_new_recipe_runs_on_ones_own_texts() {
    let directory = tempfile::tempdir().unwrap();
    let mine = directory.path().join("mine");
    succeed(&["new", mine.to_str().unwrap()]);
    std::fs::copy(root().join("recipes/tiny-data/text/history.md"), mine.join("data/history.md"))
        .unwrap();
    let recipe = mine.join("recipe.toml");
    let dir = directory.path().join("run");
    let args =
        ["run", recipe.to_str().unwrap(), "--dir", dir.to_str().unwrap(), "--until", "mixture"];
    succeed(&args);
    assert_eq!(
        output(&["new", mine.to_str().unwrap()]).status.code(),
        Some(2),
        "never overwritten"
    );
}
