//! `trainyard decide`: adds a person's decision to a run's log, or lists the log.

use crate::args;
use crate::error::{Failure, Kind, Result};
use crate::output::Output;
use crate::run::decisions::{By, Decision};
use crate::run::{RunDirectory, events};

/// Adds or lists.
pub fn decide(args: &args::Decide, output: Output) -> Result<()> {
    let run = RunDirectory::find(args.at.dir.as_deref())?;
    let Some(what) = &args.what else { return list(&run, output) };
    if what.trim().is_empty() {
        return Err(Failure::new(Kind::Usage, "a decision needs words: what was decided?"));
    }
    let who = args.by.clone().unwrap_or_else(person);
    let stage = args.stage.as_deref().unwrap_or("run");
    let decision = Decision::new(By::Person, &who, stage, "by hand", what.trim())
        .options(args.options.iter().cloned())
        .reason(args.reason.clone().unwrap_or_default());
    let decision = run.decide(decision, &events::now().to_string())?;
    output.line(format!("written to {}", run.decisions().display()));
    output.line(format!("next: trainyard report --dir {}", run.display()));
    output.json(&decision)
}

/// The logged-in user's name.
pub fn person() -> String {
    ["USER", "USERNAME", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_else(|| "the person who ran it".to_owned())
}

fn list(run: &RunDirectory, output: Output) -> Result<()> {
    let decisions = run.read_decisions()?;
    for d in &decisions {
        output.line(format!("{:<12} {}: {} -> {}", d.stage, d.who, d.question, d.chosen));
        if !d.reason.is_empty() {
            output.line(format!("{:<12} because {}", "", d.reason));
        }
    }
    if decisions.is_empty() {
        output.line("no decisions yet; add one with `trainyard decide \"WHAT\" --reason WHY`");
    }
    output.json(&decisions)
}
