//! The whole relay, in order. Each stage is a file; what joins them is here.

mod card;
pub mod corpus;
mod held_out;
pub mod judge;
pub mod mixture;
pub mod models;
pub mod pretrain;
pub mod questions;
pub mod redteam;
mod relay;
pub mod release;
pub mod round;
pub mod sft;
pub mod tokenizer;

pub use self::judge::{JudgeSettings, Judged};
pub use relay::Relay;

use crate::error::{Failure, Kind, Result};

/// Version of what joins the libraries to stages; the libraries' own versions come on top.
const ALGORITHM: u32 = 1;

/// Every stage, in order.
pub const STAGES: &[&str] = &[
    corpus::NAME,
    tokenizer::NAME,
    mixture::NAME,
    pretrain::NAME,
    questions::NAME,
    sft::NAME,
    round::ROLLOUTS,
    round::PREFERENCES,
    round::REWARD,
    round::REJECT,
    round::WINNERS,
    round::DPO,
    redteam::NAME,
    judge::NAME,
    release::NAME,
];

/// The stages that train the model that goes on, in order.
pub const TRAININGS: &[&str] = &[pretrain::NAME, sft::NAME, round::WINNERS, round::DPO];

/// Goes through all stages, or up to `until`.
pub fn run(relay: &Relay<'_>, until: Option<&str>) -> Result<()> {
    let last = until.map(stage_named).transpose()?;
    let ends = |name: &str| last == Some(name);

    let documents = relay.corpus()?;
    if ends(corpus::NAME) {
        return Ok(());
    }
    let tokenizer = relay.tokenizer(&documents)?;
    if ends(tokenizer::NAME) {
        return Ok(());
    }
    let mixture = relay.mixture(&documents, &tokenizer)?;
    if ends(mixture::NAME) {
        return Ok(());
    }
    let base = relay.pretrain(&tokenizer, &mixture)?;
    if ends(pretrain::NAME) {
        return Ok(());
    }
    let questions = relay.questions(&documents)?;
    let sft = relay.sft(&tokenizer, &questions, &base)?;
    if ends(sft::NAME) {
        return Ok(());
    }
    let round = relay.round(&tokenizer, &questions, &sft)?;
    if ends(round::DPO) {
        return Ok(());
    }
    let models = models::Models { base: &base, sft: &sft, aligned: &round.aligned };
    let redteam = relay.redteam(&tokenizer, &models)?;
    let judged = relay.judge(&tokenizer, &mixture, &questions, &models, &round, &redteam)?;
    relay.release(&tokenizer, &models, &judged)?;
    Ok(())
}

/// A failure of the corpus stage; what is missing or wrong in the recipe is for its writer to mend.
fn corpus_failure(error: ::corpus::Error) -> Failure {
    let usage = matches!(error, ::corpus::Error::SourceMissing { .. });
    let failure = Failure::from(error);
    if usage { Failure { kind: Kind::Usage, ..failure } } else { failure }
}

/// The stage that a person means: `corpus` for `01-corpus`.
fn stage_named(given: &str) -> Result<&'static str> {
    let short = |name: &'static str| name.split_once('-').map_or(name, |(_, short)| short);
    let allowed = [corpus::NAME, tokenizer::NAME, mixture::NAME, pretrain::NAME, sft::NAME];
    let found = allowed.into_iter().find(|name| *name == given || short(name) == given);
    found.ok_or_else(|| {
        let names: Vec<_> = allowed.into_iter().map(short).collect();
        Failure::new(Kind::Usage, format!("a run cannot stop after {given:?}"))
            .hint(format!("stages to stop after: {}", names.join(", ")))
    })
}
