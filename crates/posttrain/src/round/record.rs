//! The record of a round: the model it started from and why that one, and what each step gave.

use super::{dpo, reject, reward, rollouts, verify};
use crate::sft;
use base::{Digest, FsError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file of the record.
pub const FILE: &str = "round.json";

/// A model among those that the round could have started from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Candidate {
    /// The stage that made it.
    pub name: String,
    /// Digest of its weights.
    pub weights: Digest,
    /// What it was judged by, higher being better; nothing where it was not measured.
    pub score: Option<f64>,
}

/// Which model a round starts from, out of which, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Start {
    /// The one that was taken.
    pub chosen: Candidate,
    /// All that there were.
    pub candidates: Vec<Candidate>,
    /// Why this one.
    pub reason: String,
}

impl Start {
    /// The candidate with the highest score; the first among equals, and unmeasured ones last. Llama 3
    /// starts each round from the best model of the earlier ones. Nothing without candidates.
    pub fn best(candidates: Vec<Candidate>, measured_by: &str) -> Option<Self> {
        let score = |candidate: &Candidate| candidate.score.unwrap_or(f64::NEG_INFINITY);
        let mut chosen = candidates.first()?;
        for candidate in &candidates {
            if score(candidate) > score(chosen) {
                chosen = candidate;
            }
        }
        let reason = match (candidates.len(), chosen.score) {
            (1, _) => format!("{} is the only model there is", chosen.name),
            (count, Some(score)) => {
                format!("{} has the best {measured_by}, {score:.4}, of {count} models", chosen.name)
            }
            (count, None) => {
                format!("none of {count} models was measured; {} comes first", chosen.name)
            }
        };
        Some(Self { chosen: chosen.clone(), reason, candidates: candidates.clone() })
    }
}

/// A finished round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The round's number, counted from 1.
    pub round: u32,
    /// The model it started from.
    pub start: Start,
    /// What was sampled.
    pub rollouts: rollouts::Summary,
    /// How the answers were judged.
    pub judge: verify::Summary,
    /// The reward model.
    pub reward: reward::Summary,
    /// The reward model's choices.
    pub reject: reject::Summary,
    /// The fine-tuning on them.
    pub tune: sft::Summary,
    /// DPO.
    pub dpo: dpo::Summary,
    /// Digest of the reward model's weights.
    pub reward_weights: Digest,
    /// Digest of the tuned weights.
    pub tuned_weights: Digest,
    /// Digest of the aligned weights.
    pub aligned_weights: Digest,
}

impl Record {
    /// Writes the record to [`FILE`] in `out`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), FsError> {
        base::write_json(&out.join(FILE), self)
    }

    /// Reads the record of a round's directory.
    ///
    /// # Errors
    /// The file cannot be read, or is no record.
    pub fn read(directory: &Path) -> Result<Self, FsError> {
        base::read_json(&directory.join(FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, score: Option<f64>) -> Candidate {
        Candidate { name: name.into(), weights: Digest::of_bytes(name.as_bytes()), score }
    }

    #[test]
    fn the_best_measured_model_is_taken_and_the_reason_says_so() {
        let check = |candidates: Vec<Candidate>, name: &str, reason: &str| {
            let start = Start::best(candidates, "exact match").unwrap();
            assert_eq!(start.chosen.name, name);
            assert!(start.reason.contains(reason), "{}", start.reason);
        };
        check(vec![candidate("sft", None)], "sft", "only model");
        let two = vec![candidate("base", Some(0.1)), candidate("sft", Some(0.5))];
        check(two, "sft", "best exact match, 0.5000, of 2 models");
        check(vec![candidate("a", Some(0.5)), candidate("b", Some(0.5))], "a", "best");
        check(vec![candidate("a", None), candidate("b", Some(-1.0))], "b", "best");
        check(vec![candidate("a", None), candidate("b", None)], "a", "none of 2");
        assert!(Start::best(vec![], "exact match").is_none());
    }
}
