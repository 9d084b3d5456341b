//! `trainyard report`: the page, from what is there.

mod facts;
mod figures;

use crate::args;
use crate::error::Result;
use crate::output::Output;
use crate::run::RunDirectory;
use base::write_atomic;

/// Writes the page again.
pub fn report(args: &args::At, output: Output) -> Result<()> {
    let run = RunDirectory::find(args.dir.as_deref())?;
    write(&run)?;
    output.line(format!("written to {}", run.report().display()));
    output.line(format!("next: trainyard chat --dir {}", run.display()));
    output.json(&serde_json::json!({ "report": run.report() }))
}

/// Writes the page.
pub fn write(run: &RunDirectory) -> Result<()> {
    let page = yard::report(&facts::gather(run)?)?;
    Ok(write_atomic(&run.report(), page.as_bytes())?)
}
