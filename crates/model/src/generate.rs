//! Generation with continuous batching: a slot whose answer ends takes the next request at once.
//!
//! A request's tokens depend on the weights, its prompt, its seed and the sampling alone: each row's
//! logits have the same bits in any batch, and the `t`-th token is drawn with the number that
//! `seed.at(t)` gives. So answers are the same alone, in any batch and on any number of threads.

use crate::batch::check_token;
use crate::cache::Cache;
use crate::config::ModelConfig;
use crate::decoder::{Decoder, Step};
use crate::error::Error;
use crate::sampling::Sampling;
use crate::weights::Weights;
use base::{Seed, Stop};
use kernels::Pool;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Sequences that are generated at once.
const MAX_SLOTS: usize = 32;
/// Tokens of prompts that are read at once, where no single prompt is longer.
const PREFILL_TOKENS: usize = 1024;
/// Bytes of key/value cache beyond which there are fewer slots.
const CACHE_BYTES: usize = 256 << 20;

/// A prompt to be continued.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The tokens to continue; at least one.
    pub prompt: Vec<u32>,
    /// Where its draws come from.
    pub seed: Seed,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// A stop token was drawn; it is the answer's last token.
    Stop,
    /// The answer reached `max_new_tokens`, or the sequence the model's `max_seq_len`.
    Length,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The new tokens; a stop token that ended the answer is the last of them.
    pub token_ids: Vec<u32>,
    /// Log-probability (nats) of each token under the model's own distribution: not divided by the
    /// temperature, and over the whole vocabulary. The bits are those of [`crate::Engine::scores`].
    pub log_probs: Vec<f32>,
    /// Why it ended.
    pub finish: Finish,
}

/// Continues every request. `on_token` is called with a request's index and each of its new tokens,
/// in an order that does not depend on threads.
///
/// # Errors
/// An empty prompt, a token id outside the vocabulary, a prompt that leaves no room for an answer
/// ([`Error::SequenceTooLong`]), or [`Error::Interrupted`] once `stop` is raised.
pub fn generate(
    weights: &Weights,
    pool: &Pool,
    requests: &[Request],
    sampling: &Sampling,
    on_token: &mut dyn FnMut(usize, u32),
    stop: &Stop,
) -> Result<Vec<Completion>, Error> {
    let config = weights.config();
    check_requests(config, requests)?;
    if requests.is_empty() || sampling.max_new_tokens == 0 {
        return Ok(requests.iter().map(|_| empty()).collect());
    }
    let lengths = requests.iter().map(|request| sequence_length(config, request, sampling));
    let length = lengths.max().unwrap_or(1);
    let slots = slots(config, requests.len(), length);
    let longest = requests.iter().map(|request| request.prompt.len()).max().unwrap_or(1);
    let all: usize = requests.iter().map(|request| request.prompt.len()).sum();
    let prefill = all.min(PREFILL_TOKENS).max(longest);
    let mut run = Run {
        decoder: Decoder::new(weights, pool, slots, length, prefill),
        pool,
        requests,
        sampling,
        completions: requests.iter().map(|_| empty()).collect(),
        occupied: vec![None; slots],
        next: 0,
        vocab_size: config.vocab_size,
        max_seq_len: config.max_seq_len,
    };
    while run.admit(on_token) || run.advance(on_token) {
        stop.check()?;
    }
    Ok(run.completions)
}

fn check_requests(config: &ModelConfig, requests: &[Request]) -> Result<(), Error> {
    let max_seq_len = config.max_seq_len;
    for (i, request) in requests.iter().enumerate() {
        let found = request.prompt.len();
        if found == 0 {
            let (found, expected) = (format!("empty in request {i}"), "a token".to_owned());
            return Err(Error::MalformedBatch { what: "prompt", found, expected });
        }
        // The answer needs room for one token at least.
        if found >= max_seq_len {
            let (sequence, found) = (i, found + 1);
            return Err(Error::SequenceTooLong { sequence, found, max_seq_len });
        }
        for (position, &token) in request.prompt.iter().enumerate() {
            check_token(token, config, || format!("position {position} of request {i}"))?;
        }
    }
    Ok(())
}

fn empty() -> Completion {
    Completion { token_ids: Vec::new(), log_probs: Vec::new(), finish: Finish::Length }
}

/// Tokens that a request's sequence may come to.
fn sequence_length(config: &ModelConfig, request: &Request, sampling: &Sampling) -> usize {
    request.prompt.len().saturating_add(sampling.max_new_tokens).min(config.max_seq_len)
}

fn slots(config: &ModelConfig, requests: usize, length: usize) -> usize {
    let slot_bytes = Cache::slot_elements(config, length) * size_of::<f32>();
    (CACHE_BYTES / slot_bytes).min(MAX_SLOTS).min(requests).max(1)
}

/// One call of [`generate`] at work.
struct Run<'a> {
    decoder: Decoder<'a>,
    pool: &'a Pool,
    requests: &'a [Request],
    sampling: &'a Sampling,
    completions: Vec<Completion>,
    /// The request in each slot.
    occupied: Vec<Option<usize>>,
    /// The first request that has no slot yet.
    next: usize,
    vocab_size: usize,
    max_seq_len: usize,
}

impl Run<'_> {
    /// Gives free slots to waiting requests and reads their prompts. False where there was nothing
    /// to do.
    fn admit(&mut self, on_token: &mut dyn FnMut(usize, u32)) -> bool {
        let requests = self.requests;
        let mut room = self.decoder.prefill_tokens();
        let mut admitted = Vec::new();
        for slot in 0..self.occupied.len() {
            let Some(request) = requests.get(self.next) else { break };
            if self.occupied[slot].is_some() {
                continue;
            }
            if request.prompt.len() > room {
                break;
            }
            room -= request.prompt.len();
            self.occupied[slot] = Some(self.next);
            admitted.push((slot, self.next));
            self.next += 1;
        }
        if admitted.is_empty() {
            return false;
        }
        let prompts: Vec<(usize, &[u32])> =
            admitted.iter().map(|&(slot, i)| (slot, requests[i].prompt.as_slice())).collect();
        let logits = self.decoder.prefill(&prompts);
        let rows = Rows { requests, sampling: self.sampling, vocab_size: self.vocab_size };
        let drawn = rows.draw(self.pool, logits, &admitted, &self.completions);
        self.take(&admitted, &drawn, on_token);
        true
    }

    /// One more token for every slot at work. False where there is none.
    fn advance(&mut self, on_token: &mut dyn FnMut(usize, u32)) -> bool {
        let requests = self.requests;
        let occupied = self.occupied.iter().enumerate();
        let working: Vec<(usize, usize)> =
            occupied.filter_map(|(slot, request)| request.map(|i| (slot, i))).collect();
        if working.is_empty() {
            return false;
        }
        let step = |&(slot, i): &(usize, usize)| {
            let answer = &self.completions[i].token_ids;
            // The newest token stands just behind the prompt and the others.
            let position = requests[i].prompt.len() + answer.len() - 1;
            Step { slot, position, token: answer.last().copied().unwrap_or_default() }
        };
        let steps: Vec<Step> = working.iter().map(step).collect();
        let logits = self.decoder.step(&steps);
        let rows = Rows { requests, sampling: self.sampling, vocab_size: self.vocab_size };
        let drawn = rows.draw(self.pool, logits, &working, &self.completions);
        self.take(&working, &drawn, on_token);
        true
    }

    /// Appends drawn tokens and frees the slots whose answers ended.
    fn take(
        &mut self,
        working: &[(usize, usize)],
        drawn: &[(u32, f32)],
        on_token: &mut dyn FnMut(usize, u32),
    ) {
        for (&(slot, i), &(token, log_prob)) in working.iter().zip(drawn) {
            let completion = &mut self.completions[i];
            completion.token_ids.push(token);
            completion.log_probs.push(log_prob);
            on_token(i, token);
            let new_tokens = completion.token_ids.len();
            let stopped = self.sampling.stop.contains(&token);
            let full = new_tokens == self.sampling.max_new_tokens
                || self.requests[i].prompt.len() + new_tokens == self.max_seq_len;
            if stopped {
                completion.finish = Finish::Stop;
            }
            if stopped || full {
                self.occupied[slot] = None;
            }
        }
    }
}

/// What drawing tokens needs to know.
struct Rows<'a> {
    requests: &'a [Request],
    sampling: &'a Sampling,
    vocab_size: usize,
}

impl Rows<'_> {
    /// A token and its log-probability from each row of logits.
    fn draw(
        &self,
        pool: &Pool,
        logits: &[f32],
        working: &[(usize, usize)],
        completions: &[Completion],
    ) -> Vec<(u32, f32)> {
        let cells: Vec<OnceLock<(u32, f32)>> = working.iter().map(|_| OnceLock::new()).collect();
        pool.run(working.len(), |row| {
            let (_, i) = working[row];
            let logits = &logits[row * self.vocab_size..][..self.vocab_size];
            let draw = completions[i].token_ids.len() as u64;
            let uniform = self.requests[i].seed.at(draw).rng().uniform();
            let token = self.sampling.choose(logits, uniform);
            let log_prob = kernels::score_logits(logits, token).log_prob;
            // Each cell is set once, by the one piece that has its row.
            cells[row].get_or_init(|| (token, log_prob));
        });
        cells.into_iter().map(|cell| cell.into_inner().unwrap_or_default()).collect()
    }
}
