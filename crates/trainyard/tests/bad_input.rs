//! What a person sees who mistypes, whose data are missing or damaged, or whose disk is full.
#![allow(clippy::unwrap_used)]

mod common;

use common::{output, root, start, succeed, tiny, trainyard, weights_digest};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runs, expects the exit code, and gives stderr.
fn fail(args: &[&str], code: i32) -> String {
    let output = output(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    stderr
}

/// A recipe in a directory of its own: the tiny one with replacements.
fn recipe(directory: &Path, replacements: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(tiny()).unwrap();
    let data = root().join("recipes/tiny-data");
    text = text.replace("\"tiny-data", &format!("\"{}", data.display()));
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let path = directory.join("recipe.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn in_directory(directory: &tempfile::TempDir) -> String {
    directory.path().join("run").display().to_string()
}

#[test]
fn a_mistyped_key_is_named_with_its_line_and_the_nearest_one() {
    let directory = tempfile::tempdir().unwrap();
    let recipe = recipe(directory.path(), &[("max-seq-len", "max-seq-length")]);
    let text = std::fs::read_to_string(&recipe).unwrap();
    let line = text.lines().position(|line| line.starts_with("max-seq-length")).unwrap() + 1;
    let shown = fail(&["run", &recipe, "--dir", &in_directory(&directory)], 2);
    assert!(shown.contains(&format!("recipe.toml:{line}:1")), "{shown}");
    assert!(shown.contains("`max-seq-length`"), "{shown}");
    assert!(shown.contains("did you mean `max-seq-len`?"), "{shown}");
}

#[test]
fn a_mistyped_recipe_name_is_answered_with_the_nearest_one() {
    let shown = fail(&["run", "rust-doc"], 2);
    assert!(shown.contains("did you mean the built-in recipe `rust-docs`?"), "{shown}");
}

#[test]
fn a_missing_source_is_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let data = root().join("recipes/tiny-data/docs");
    let recipe = recipe(directory.path(), &[(&data.display().to_string(), "/nowhere/pages")]);
    let shown = fail(&["run", &recipe, "--dir", &in_directory(&directory)], 2);
    assert!(shown.contains("\"docs\"") && shown.contains("/nowhere/pages"), "{shown}");
}

#[test]
fn a_corpus_of_which_nothing_is_left_says_which_rules_took_it() {
    let directory = tempfile::tempdir().unwrap();
    let only = "name = \"empty\"\n[corpus.quality.prose]\nmin-words = 1000000\n[[corpus.sources]]\n\
                name = \"a\"\nkind = \"text\"\npath = \"texts\"\n";
    std::fs::create_dir(directory.path().join("texts")).unwrap();
    std::fs::write(directory.path().join("texts/a.txt"), "a few words and no more").unwrap();
    let path = directory.path().join("recipe.toml");
    std::fs::write(&path, only).unwrap();
    let shown = fail(&["run", path.to_str().unwrap(), "--dir", &in_directory(&directory)], 3);
    assert!(shown.contains("no document is left") && shown.contains("words"), "{shown}");
}

#[test]
fn damaged_shards_and_weights_are_named_and_refused() {
    let directory = tempfile::tempdir().unwrap();
    let dir = in_directory(&directory);
    succeed(&["run", &tiny(), "--dir", &dir]);
    for file in ["03-mixture/train-00000.bin", "04-pretrain/weights.safetensors"] {
        let path = Path::new(&dir).join(file);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let shown = fail(&["run", &tiny(), "--dir", &dir], 3);
        assert!(shown.contains(file) && shown.contains("corrupted"), "{shown}");
        std::fs::write(&path, whole).unwrap();
    }
    succeed(&["run", &tiny(), "--dir", &dir]);
    let released = Path::new(&dir).join("10-release/weights/model.safetensors");
    thaw(&released);
    let mut bytes = std::fs::read(&released).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&released, bytes).unwrap();
    let shown = fail(&["chat", "--dir", &dir, "--prompt", "hello"], 3);
    assert!(shown.contains("model.safetensors is corrupted"), "{shown}");
}

/// Released weights are read-only; this test wants to damage them.
fn thaw(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_second_run_in_the_same_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let dir = in_directory(&directory);
    let mut first = start(&["run", &tiny(), "--dir", &dir]);
    wait_for(&Path::new(&dir).join("events.jsonl"));
    let shown = fail(&["run", &tiny(), "--dir", &dir], 2);
    assert!(shown.contains("is in use by process"), "{shown}");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn ctrl_c_saves_a_checkpoint_and_the_run_goes_on_to_the_same_weights() {
    let directory = tempfile::tempdir().unwrap();
    let whole = directory.path().join("whole");
    succeed(&["run", &tiny(), "--dir", whole.to_str().unwrap()]);
    let dir = PathBuf::from(in_directory(&directory));
    let child = start(&["run", &tiny(), "--dir", dir.to_str().unwrap()]);
    wait_for(&dir.join("04-pretrain/metrics.jsonl"));
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    let command = format!("go on with `trainyard run {} --dir {}`", tiny(), dir.display());
    assert!(shown.contains(&command), "{shown}");
    succeed(&["run", &tiny(), "--dir", dir.to_str().unwrap()]);
    assert_eq!(weights_digest(&dir), weights_digest(&whole));
}

fn interrupt(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A limit on file sizes stands for a disk that fills up: writing fails in the same place, with
/// another name for the cause.
#[test]
fn a_write_that_fails_loses_nothing_that_was_durable() {
    let directory = tempfile::tempdir().unwrap();
    let dir = PathBuf::from(in_directory(&directory));
    let program = env!("CARGO_BIN_EXE_trainyard");
    // Blocks of 1,024 bytes: the checkpoints of the tiny model do not fit.
    let script = format!(
        "trap '' XFSZ; ulimit -f 300; exec {program} run {} --dir {}",
        tiny(),
        dir.display()
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(shown.contains("error: "), "{shown}");
    let whole = directory.path().join("whole");
    succeed(&["run", &tiny(), "--dir", whole.to_str().unwrap()]);
    succeed(&["run", &tiny(), "--dir", dir.to_str().unwrap()]);
    assert_eq!(weights_digest(&dir), weights_digest(&whole));
}

#[test]
fn a_new_recipe_without_files_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mine = directory.path().join("mine");
    succeed(&["new", mine.to_str().unwrap()]);
    let recipe = mine.join("recipe.toml").display().to_string();
    let shown = fail(&["run", &recipe, "--dir", &in_directory(&directory)], 3);
    assert!(shown.contains("no document comes from the sources"), "{shown}");
}

#[test]
fn a_full_stderr_is_no_reason_to_stop() {
    let directory = tempfile::tempdir().unwrap();
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
    let mut command = trainyard(&["run", &tiny(), "--dir", &in_directory(&directory)]);
    assert!(command.stderr(full).stdout(std::process::Stdio::null()).status().unwrap().success());
}

#[test]
fn a_damaged_manifest_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let dir = in_directory(&directory);
    succeed(&["run", &tiny(), "--dir", &dir, "--until", "mixture"]);
    let manifest = Path::new(&dir).join("02-tokenizer/manifest.json");
    std::fs::write(&manifest, "").unwrap();
    let shown = fail(&["run", &tiny(), "--dir", &dir, "--until", "mixture"], 3);
    assert!(shown.contains("manifest.json") && shown.contains("delete it"), "{shown}");
    std::fs::remove_file(&manifest).unwrap();
    succeed(&["run", &tiny(), "--dir", &dir, "--until", "mixture"]);
}

#[test]
fn odd_questions_about_runs_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("nothing").display().to_string();
    for args in [
        vec!["status", "--dir", &missing],
        vec!["chat", "--dir", &missing],
        vec!["eval", "--dir", &missing],
        vec!["report", "--dir", &missing],
        vec!["decide", "--dir", &missing, "x"],
    ] {
        let shown = fail(&args, 2);
        assert!(shown.contains("is not the directory of a run"), "{shown}");
    }
    let nowhere = trainyard(&["status"]).current_dir(directory.path()).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
}
