//! Copying drills: a run of random tokens and pieces of it again. Nothing but looking back predicts the
//! pieces, so a model learns early to copy from its context (induction heads: Olsson et al. 2022,
//! "In-context Learning and Induction Heads"), which small budgets of text alone do not teach.

use crate::Error;
use base::Seed;
use model::{Batch, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shortest run, in tokens.
const SHORTEST: usize = 8;

/// How much pretraining practises copying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Share of the windows of text whose place a drill takes, 0 to 1.
    pub share: f64,
}

/// Drills in the place of windows, chosen by position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drills {
    pub share: f64,
    pub seed: Seed,
    pub vocab_size: usize,
}

impl Drills {
    pub fn new(settings: Settings, vocab_size: usize, seed: Seed) -> Result<Self, Error> {
        let share = settings.share;
        if !(0.0..=1.0).contains(&share) {
            let expected = "a share from 0 to 1";
            return Err(Error::Setting { name: "share", found: share.to_string(), expected });
        }
        Ok(Self { share, seed, vocab_size })
    }

    /// Whether a drill takes this position's place.
    pub fn takes(&self, position: u64) -> bool {
        self.seed.derive("place").at(position).rng().uniform() < self.share
    }

    /// Appends the position's drill, one segment of `rows` rows: a run of 8 to `rows / 2` tokens, then
    /// pieces of it from random places to its end. Only what can be known is a target: all of a piece
    /// but its first token.
    pub fn append(&self, batch: &mut Batch, position: u64, rows: usize) {
        let mut rng = self.seed.derive("drill").at(position).rng();
        let most = (rows / 2).max(SHORTEST + 1);
        let ratio = most as f64 / SHORTEST as f64;
        let length = (SHORTEST as f64 * ratio.powf(rng.uniform())) as usize;
        let mut tokens: Vec<u32> = (0..length).map(|_| rng.below(self.vocab_size) as u32).collect();
        let start = batch.tokens.len() as u32;
        batch.segments.push(start);
        while tokens.len() <= rows {
            let from = rng.below(length);
            for at in from..length {
                if at > from && tokens.len() <= rows {
                    let row = start + tokens.len() as u32 - 1;
                    batch.targets.push(Target { row, token: tokens[at] });
                }
                tokens.push(tokens[at]);
            }
        }
        batch.tokens.extend_from_slice(&tokens[..rows]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drills(share: f64) -> Drills {
        Drills::new(Settings { share }, 50, Seed(3)).unwrap()
    }

    #[test]
    fn every_target_follows_the_same_two_tokens_earlier_in_the_drill() {
        for position in 0..50 {
            let mut batch = Batch::new();
            batch.tokens.extend([0; 7]);
            drills(1.0).append(&mut batch, position, 64);
            assert_eq!((batch.tokens.len(), batch.segments.as_slice()), (71, &[7][..]));
            assert!(!batch.targets.is_empty());
            for target in &batch.targets {
                let row = target.row as usize;
                let next = batch.tokens.get(row + 1).copied().unwrap_or(target.token);
                assert_eq!(next, target.token);
                let pair = [batch.tokens[row], target.token];
                assert!(batch.tokens[7..=row].windows(2).any(|earlier| earlier == pair));
            }
        }
    }

    #[test]
    fn the_share_is_kept_and_places_do_not_change() {
        let taken = (0..10_000).filter(|&at| drills(0.1).takes(at)).count();
        assert!((900..1100).contains(&taken), "{taken}");
        assert!((0..1000).all(|at| drills(1.0).takes(at) && !drills(0.0).takes(at)));
    }

    #[test]
    fn impossible_shares_are_refused() {
        for share in [-0.1, 1.1, f64::NAN] {
            let error = Drills::new(Settings { share }, 50, Seed(3)).unwrap_err();
            assert!(error.to_string().contains("share"), "{error}");
        }
    }
}
