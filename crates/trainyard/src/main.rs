//! The `trainyard` program: arguments in, rendering out. Every stage lives in a library of its own;
//! here are the spine that joins them (`stages`), the run on the disk (`run`), the recipe and the
//! commands.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod commands;
mod error;
mod output;
mod progress;
mod recipe;
mod run;
mod stages;
mod threads;

use args::{Arguments, Command};
use base::Stop;
use clap::Parser;
use error::{Failure, Kind, Result};
use output::{Output, complain};
use std::process::ExitCode;

/// Raised by Ctrl-C and by SIGTERM.
static STOP: Stop = Stop::new();

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = if arguments.json { Output::Json } else { Output::Lines };
    match listen_for_interrupts().and_then(|()| dispatch(&arguments.command, output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(failure.to_string());
            ExitCode::from(failure.kind.exit_code())
        }
    }
}

fn dispatch(command: &Command, output: Output) -> Result<()> {
    match command {
        Command::Run(args) => commands::run::run(args, output, &STOP),
        Command::New(args) => commands::new::new(args, output),
        Command::Status(args) => commands::status::status(args, output),
        Command::Chat(args) => commands::chat::chat(args, output, &STOP),
        Command::Eval(args) => commands::eval::eval(args, output, &STOP),
        Command::Report(args) => commands::report::report(args, output),
        Command::Decide(args) => commands::decide::decide(args, output),
    }
}

/// The first signal asks for a stop at the next safe point; the second ends the program at once.
fn listen_for_interrupts() -> Result<()> {
    ctrlc::set_handler(|| {
        if STOP.raised() {
            std::process::exit(i32::from(Kind::Interrupted.exit_code()));
        }
        STOP.raise();
        complain("stopping at the next safe point (again to stop at once)");
    })
    .map_err(|error| Failure::new(Kind::Usage, error))
}
