//! `trainyard report`: the page, from what is there.

mod facts;
mod figures;

use crate::args;
use crate::error::Result;
use crate::output::Output;
use crate::run::RunDirectory;
use crate::stages::TRAININGS;
use base::manifest::FILE_NAME;
use base::write_atomic;

/// Writes the page again.
pub fn report(args: &args::At, output: Output) -> Result<()> {
    let run = RunDirectory::find(args.dir.as_deref())?;
    write(&run)?;
    output.line(format!("written to {}", run.report().display()));
    output.line(format!("next: {}", next(&run)));
    output.json(&serde_json::json!({ "report": run.report() }))
}

/// What to type next: go on with the run, or talk to its model.
pub fn next(run: &RunDirectory) -> String {
    let has_model = TRAININGS.iter().any(|name| run.stage(name).join(FILE_NAME).exists());
    match std::fs::read_to_string(run.command()) {
        Ok(command) if !has_model => command.trim().to_owned(),
        _ => format!("trainyard chat --dir {}", run.display()),
    }
}

/// Writes the page.
pub fn write(run: &RunDirectory) -> Result<()> {
    let page = yard::report(&facts::gather(run)?)?;
    Ok(write_atomic(&run.report(), page.as_bytes())?)
}
