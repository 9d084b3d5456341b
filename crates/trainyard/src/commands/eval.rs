//! `trainyard eval`: the held-out questions, answered by a model of a run and graded.

use crate::args;
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::progress::Screen;
use crate::recipe::Recipe;
use crate::run::RunDirectory;
use crate::stages::{self, models};
use crate::threads;
use base::{Seed, Stop};
use judge::evaluate::{Scores, evaluate};
use posttrain::derive;

/// Asks and grades.
pub fn eval(args: &args::Eval, output: Output, stop: &Stop) -> Result<()> {
    let run = RunDirectory::find(args.at.dir.as_deref())?;
    let recipe: Recipe = base::read_json(&run.recipe())?;
    let (name, speaker) = models::of_run(&run, args.model)?;
    let file = run.stage(stages::questions::NAME).join(derive::HELD_OUT_FILE);
    let items = derive::read_items(&file)?;
    let pool = threads::pool(args.threads)?;
    let mut subject = speaker.model(name, &pool);
    let screen = Screen::new();
    screen.begin("eval");
    // The seed of the judgement stage, so that the figures are the report's.
    let seed = Seed(recipe.seed).derive(stages::judge::NAME).derive("answers");
    let result = evaluate(&mut subject, &items, &recipe.judge.answers, seed, &screen, stop);
    screen.end();
    let evaluation = result.map_err(|error| Failure::from(error).answering(stop))?;
    output.line(format!(
        "{:<14} {:>6} {:>22} {:>22}",
        "task", "items", "exact (95%)", "token F1 (95%)"
    ));
    for (task, scores) in &evaluation.tasks {
        output.line(row(task, scores));
    }
    output.line(row("all", &evaluation.overall));
    output.line(format!(
        "the {name} model of {}, held-out items of {}",
        run.display(),
        file.display()
    ));
    output.json(&evaluation)
}

fn row(task: &str, scores: &Scores) -> String {
    let cell = |i: &judge::intervals::Interval| {
        format!("{:.3} ({:.3} to {:.3})", i.estimate, i.low, i.high)
    };
    let (exact, partial) = (cell(&scores.exact), cell(&scores.partial));
    format!("{task:<14} {:>6} {exact:>22} {partial:>22}", scores.items)
}
