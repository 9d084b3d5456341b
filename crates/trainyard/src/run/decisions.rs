//! The log of every call that was made, by whom, and why.

use super::events::now;
use super::{RunDirectory, journal};
use base::{FsError, Hasher};
use serde::{Deserialize, Serialize};

/// Who makes a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A person, through the recipe or by hand.
    Person,
    /// A rule of a stage.
    Rule,
    /// A gate with a threshold.
    Gate,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Digest of what was decided and under which circumstances: repeated work does not repeat it.
    pub id: String,
    /// Seconds since 1970.
    pub when: i64,
    /// What kind of judge.
    pub by: By,
    /// The person's, rule's or gate's name.
    pub who: String,
    /// The stage it is about.
    pub stage: String,
    /// What was to be decided.
    pub question: String,
    /// What could have been chosen.
    pub options: Vec<String>,
    /// What was chosen.
    pub chosen: String,
    /// Why.
    pub reason: String,
}

impl Decision {
    /// A decision about `stage`, made now.
    pub fn new(by: By, who: &str, stage: &str, question: &str, chosen: impl Into<String>) -> Self {
        Self {
            id: String::new(),
            when: now(),
            by,
            who: who.to_owned(),
            stage: stage.to_owned(),
            question: question.to_owned(),
            options: Vec::new(),
            chosen: chosen.into(),
            reason: String::new(),
        }
    }

    /// What else could have been chosen.
    pub fn options<S: Into<String>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.options = options.into_iter().map(Into::into).collect();
        self
    }

    /// Why.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    fn identify(mut self, circumstances: &str) -> Self {
        let mut hasher = Hasher::new();
        for field in [&self.who, &self.stage, &self.question, &self.chosen, &self.reason] {
            hasher.field(field.as_bytes());
        }
        self.id = hasher.field(circumstances.as_bytes()).finish().short();
        self
    }
}

impl RunDirectory {
    /// Writes a decision down, once for the same circumstances (such as a stage's key).
    pub fn decide(&self, decision: Decision, circumstances: &str) -> Result<Decision, FsError> {
        let decision = decision.identify(circumstances);
        if !self.read_decisions()?.iter().any(|known| known.id == decision.id) {
            journal::append(&self.decisions(), &decision)?;
        }
        Ok(decision)
    }

    /// All decisions so far.
    pub fn read_decisions(&self) -> Result<Vec<Decision>, FsError> {
        journal::read(&self.decisions())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_work_does_not_repeat_a_decision() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(directory.path());
        let decision =
            Decision::new(By::Rule, "best", "round", "start from", "sft").reason("only one");
        run.decide(decision.clone(), "k1").unwrap();
        run.decide(decision.clone(), "k1").unwrap();
        assert_eq!(run.read_decisions().unwrap().len(), 1);
        run.decide(decision, "k2").unwrap();
        assert_eq!(run.read_decisions().unwrap().len(), 2);
    }
}
