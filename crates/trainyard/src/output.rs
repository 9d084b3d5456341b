//! What a command says at its end: lines for a person, or one JSON object with `--json`.

use crate::error::{Failure, Kind, Result};
use serde::Serialize;
use std::io::Write;

/// How results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Lines for a person.
    Lines,
    /// One JSON object on stdout.
    Json,
}

impl Output {
    /// Prints a line for a person; nothing with `--json`. A closed pipe is no error.
    pub fn line(self, text: impl AsRef<str>) {
        if self == Self::Lines {
            writeln!(std::io::stdout(), "{}", text.as_ref()).ok();
        }
    }

    /// Prints the result as JSON with `--json`; nothing otherwise.
    pub fn json<T: Serialize>(self, value: &T) -> Result<()> {
        if self == Self::Json {
            let text = serde_json::to_string_pretty(value)
                .map_err(|error| Failure::new(Kind::Data, error))?;
            writeln!(std::io::stdout(), "{text}").ok();
        }
        Ok(())
    }
}

/// Prints a line on stderr; a closed or full one is no reason to stop a run.
pub fn complain(text: impl AsRef<str>) {
    writeln!(std::io::stderr(), "{}", text.as_ref()).ok();
}
