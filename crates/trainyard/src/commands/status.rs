//! `trainyard status`: how far a run is.

use crate::args;
use crate::error::Result;
use crate::output::Output;
use crate::progress::duration;
use crate::run::events::What;
use crate::run::{RunDirectory, stage};
use crate::stages::{STAGES, TRAININGS, release};
use base::{Digest, Manifest};
use serde::Serialize;
use std::time::Duration;

/// How far a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing is there.
    NotYet,
    /// Begun, and running or cut off.
    Unfinished,
    /// Finished.
    Done,
}

/// One stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageStatus {
    /// Its name.
    pub name: &'static str,
    /// How far it is.
    pub state: State,
    /// Digest of its manifest.
    pub digest: Option<Digest>,
    /// Seconds of work over all attempts.
    pub seconds: f64,
    /// How often it was begun.
    pub attempts: u32,
    /// What came in and went out.
    pub summary: String,
}

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The run's directory.
    pub dir: String,
    /// How far the whole is.
    pub state: State,
    /// Stage by stage.
    pub stages: Vec<StageStatus>,
    /// Digest of the last weights that were trained.
    pub weights_digest: Option<Digest>,
    /// What the gate decided: `true` for a release, nothing where it has not decided.
    pub released: Option<bool>,
    /// How often it was interrupted.
    pub interruptions: usize,
    /// The report, once it is written.
    pub report: Option<String>,
}

/// Looks at a run's directory.
pub fn look(run: &RunDirectory) -> Result<Status> {
    let mut stages = Vec::new();
    let mut weights_digest = None;
    for &name in STAGES {
        let directory = run.stage(name);
        let manifest = Manifest::read(&directory)?;
        let timing = stage::timing(&directory);
        let state = match (&manifest, timing.attempts) {
            (Some(_), _) => State::Done,
            (None, 0) => State::NotYet,
            (None, _) => State::Unfinished,
        };
        if let (true, Some(manifest)) = (TRAININGS.contains(&name), &manifest) {
            weights_digest = manifest.output(train::WEIGHTS_FILE).map(|file| file.digest);
        }
        let digest = manifest.map(|manifest| manifest.digest());
        let (seconds, attempts, summary) = (timing.seconds, timing.attempts, timing.summary);
        stages.push(StageStatus { name, state, digest, seconds, attempts, summary });
    }
    let all = |state| stages.iter().all(|stage| stage.state == state);
    let state = match (all(State::Done), all(State::NotYet)) {
        (true, _) => State::Done,
        (_, true) => State::NotYet,
        _ => State::Unfinished,
    };
    let events = run.read_events()?;
    let interruptions = events.iter().filter(|event| event.what == What::Interrupted).count();
    let report = run.report();
    Ok(Status {
        dir: run.display(),
        state,
        stages,
        weights_digest,
        released: release::read(run)?.map(|release| release.gate.passed),
        interruptions,
        report: report.exists().then(|| report.display().to_string()),
    })
}

/// Shows it.
pub fn status(args: &args::At, output: Output) -> Result<()> {
    let run = RunDirectory::find(args.dir.as_deref())?;
    let status = look(&run)?;
    for stage in &status.stages {
        let took = duration(Duration::from_secs_f64(stage.seconds));
        let text = match stage.state {
            State::Done => format!("{} ({took})", stage.summary),
            State::Unfinished => format!("not finished; begun {} times, {took}", stage.attempts),
            State::NotYet => "not yet".to_owned(),
        };
        output.line(format!("{:<22} {text}", stage.name));
    }
    if let Some(digest) = status.weights_digest {
        output.line(format!("weights                {digest}"));
    }
    output.line(format!("interruptions          {}", status.interruptions));
    output.line(match (status.state, status.released) {
        (State::Done, Some(true)) => format!("released; next: trainyard chat --dir {}", status.dir),
        (State::Done, _) => format!("refused by the gate; see {}", run.report().display()),
        _ => {
            let command = std::fs::read_to_string(run.command()).unwrap_or_default();
            format!("next: {}", command.trim())
        }
    });
    output.json(&status)
}
