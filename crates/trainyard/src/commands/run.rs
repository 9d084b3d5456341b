//! `trainyard run`: takes a recipe through every stage.

use super::{report, status};
use crate::args;
use crate::commands::decide::person;
use crate::error::{Failure, Kind, Result};
use crate::output::Output;
use crate::progress::{Screen, duration};
use crate::recipe::{Loaded, load};
use crate::run::decisions::{By, Decision};
use crate::run::events::What;
use crate::run::{RunDirectory, events};
use crate::stages::{self, Relay, release};
use crate::threads;
use base::{Stop, write_atomic, write_json};
use std::path::PathBuf;
use std::time::Instant;

/// Runs.
pub fn run(args: &args::Run, output: Output, stop: &Stop) -> Result<()> {
    let mut loaded = load(&args.recipe)?;
    if let Some(seed) = args.seed {
        loaded.recipe.seed = seed;
    }
    let root = args.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&loaded.recipe.name));
    let run = RunDirectory::new(root);
    let _lock = run.lock()?;
    begin(&run, &args.recipe, &loaded, output)?;
    let pool = threads::pool(args.threads)?;
    let screen = Screen::new();
    let relay = Relay {
        run: &run,
        recipe: &loaded.recipe,
        base: loaded.base.clone(),
        pool,
        screen: &screen,
        output,
        stop,
    };
    let began = Instant::now();
    let result = stages::run(&relay, args.until.as_deref());
    screen.end();
    end(&run, &result)?;
    let page = report::write(&run);
    match result {
        Ok(()) => page?,
        Err(failure) => return Err(explain(failure, &args.recipe, &run)),
    };
    output.line(format!("took {}", duration(began.elapsed())));
    finish(&run, args, output)
}

/// Writes down what was asked for, by whom, and that work began.
fn begin(run: &RunDirectory, given: &str, loaded: &Loaded, output: Output) -> Result<()> {
    let recipe = &loaded.recipe;
    write_json(&run.recipe(), recipe)?;
    write_atomic(&run.recipe_text(), loaded.text.as_bytes())?;
    write_atomic(
        &run.command(),
        format!("trainyard run {given} --dir {}\n", run.display()).as_bytes(),
    )?;
    if let Some(stage) = run.record_start()? {
        let at = if stage.is_empty() { "before its first stage".to_owned() } else { stage };
        output.line(format!("the last start ended without a word in {at}; going on from there"));
        let decision = Decision::new(By::Rule, "resume", &at, "where the run goes on", &at)
            .options(["from the newest good state on the disk", "from the beginning"])
            .reason("the last start was killed or crashed; everything durable is kept");
        run.decide(decision, &events::now().to_string())?;
    }
    let who = person();
    let decide = |question: &str, chosen: String, key: &str| {
        let reason = recipe.reasons.get(key).cloned().unwrap_or_default();
        let decision = Decision::new(By::Person, &who, "recipe", question, chosen).reason(reason);
        run.decide(decision, &recipe.seed.to_string())
    };
    let sources: Vec<_> = recipe.corpus.sources.iter().map(|source| source.name.clone()).collect();
    decide("what goes in", sources.join(", "), "corpus")?;
    let shares = recipe.mixture.shares.resolve()?;
    let shares = shares.iter().map(|(c, share)| format!("{} {:.0}%", c.name(), 100.0 * share));
    decide("in which shares it is read", shares.collect::<Vec<_>>().join(", "), "mixture")?;
    Ok(())
}

/// Writes down how the work ended.
fn end(run: &RunDirectory, result: &Result<()>) -> Result<()> {
    let stage = run.read_events()?.last().map(|event| event.stage.clone()).unwrap_or_default();
    match result {
        Ok(()) => run.record(What::Done, "", "")?,
        Err(failure) if failure.kind == Kind::Gate => run.record(What::Done, "", "")?,
        Err(failure) if failure.kind == Kind::Interrupted => {
            run.record(What::Interrupted, &stage, "stopped by a person (signal)")?;
        }
        // The disk may be full: the failure itself matters more than its record.
        Err(failure) => {
            run.record(What::Interrupted, &stage, &failure.error.to_string()).unwrap_or(())
        }
    }
    Ok(())
}

fn explain(failure: Failure, recipe: &str, run: &RunDirectory) -> Failure {
    match failure.kind {
        Kind::Interrupted => {
            let message = "stopped; all that was finished is saved";
            let command = format!("trainyard run {recipe} --dir {}", run.display());
            Failure::new(Kind::Interrupted, message).hint(format!("go on with `{command}`"))
        }
        _ => failure,
    }
}

/// Says what there is and what to type next; a refusal by the gate is a failure.
fn finish(run: &RunDirectory, args: &args::Run, output: Output) -> Result<()> {
    output.line(format!("report   {}", run.report().display()));
    let refused = match release::read(run)? {
        _ if args.until.is_some() => None,
        Some(release) if !release.gate.passed => Some(release),
        _ => None,
    };
    output.line(format!("next     {}", report::next(run)));
    output.json(&status::look(run)?)?;
    match refused {
        None => Ok(()),
        Some(release) => {
            let failed: Vec<_> = release.gate.failed().map(release::describe).collect();
            Err(Failure::new(Kind::Gate, format!("not released: {}", failed.join("; "))).hint(
                format!(
                    "the candidate is kept in {}",
                    run.stage(release::NAME).join("candidate").display()
                ),
            ))
        }
    }
}
