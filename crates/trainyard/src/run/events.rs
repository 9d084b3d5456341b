//! When a run was started, how it ended, and what interrupted it. A start without an end is a kill:
//! the next start finds it and writes it down.

use super::{RunDirectory, journal};
use base::FsError;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The program began to work on the run.
    Started,
    /// A stage began.
    Stage,
    /// All stages ended.
    Done,
    /// The work stopped before its end.
    Interrupted,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since 1970.
    pub when: i64,
    /// What happened.
    pub what: What,
    /// The stage at that time, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// The cause of an interruption.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
}

impl RunDirectory {
    /// Writes an event down.
    pub fn record(&self, what: What, stage: &str, cause: &str) -> Result<(), FsError> {
        let event = Event { when: now(), what, stage: stage.to_owned(), cause: cause.to_owned() };
        journal::append(&self.events(), &event)
    }

    /// All events so far.
    pub fn read_events(&self) -> Result<Vec<Event>, FsError> {
        journal::read(&self.events())
    }

    /// Writes down a start, and before it the interruption that an earlier start without an end
    /// means. Gives the stage that was interrupted.
    pub fn record_start(&self) -> Result<Option<String>, FsError> {
        let events = self.read_events()?;
        let killed = match events.last() {
            Some(last) if matches!(last.what, What::Started | What::Stage) => {
                Some(last.stage.clone())
            }
            _ => None,
        };
        if let Some(stage) = &killed {
            self.record(What::Interrupted, stage, "killed, crashed or power lost")?;
        }
        self.record(What::Started, "", "")?;
        Ok(killed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_without_an_end_is_written_down_as_a_kill() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(directory.path());
        assert_eq!(run.record_start().unwrap(), None);
        run.record(What::Stage, "04-pretrain", "").unwrap();
        assert_eq!(run.record_start().unwrap(), Some("04-pretrain".into()));
        run.record(What::Done, "", "").unwrap();
        assert_eq!(run.record_start().unwrap(), None);
        let interruptions = run.read_events().unwrap();
        let count = interruptions.iter().filter(|e| e.what == What::Interrupted).count();
        assert_eq!(count, 1);
    }
}
