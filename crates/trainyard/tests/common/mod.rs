//! Running the program as a person would.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The smallest recipe that goes through every stage.
pub fn tiny() -> String {
    root().join("recipes/tiny.toml").display().to_string()
}

/// The program with these arguments.
pub fn trainyard(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainyard"));
    command.args(args).stdin(Stdio::null()).current_dir(root());
    command
}

/// Runs to the end.
pub fn output(args: &[&str]) -> Output {
    trainyard(args).output().unwrap()
}

/// Runs to the end and expects success.
pub fn succeed(args: &[&str]) -> String {
    let output = output(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} ended with {}: {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Starts and does not wait.
pub fn start(args: &[&str]) -> Child {
    trainyard(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// `trainyard status --json` of a run.
pub fn status(dir: &Path) -> serde_json::Value {
    serde_json::from_str(&succeed(&["status", "--json", "--dir", dir.to_str().unwrap()])).unwrap()
}

/// The digest of the run's last weights.
pub fn weights_digest(dir: &Path) -> String {
    status(dir)["weights_digest"].as_str().expect("a weights_digest").to_owned()
}
