//! The training engine: forward, scores and backward over one memory plan.
//!
//! A pass is `scores` (or `rewards`), a loss computed by the caller, and `backward` with its gradients
//! by the scores. Where those gradients are known beforehand, `next_token` does it all at once.

use crate::batch::Batch;
use crate::config::ModelConfig;
use crate::device::{Device, Memory, Packed};
use crate::error::Error;
use crate::head::{Head, TokenGradients, TokenScores};
use crate::layer::Rows;
use crate::layout::{Layout, Parameter};
use crate::memory::{Capacity, MemoryPlan, Purpose};
use crate::transformer::Transformer;
use crate::weights::Weights;
use kernels::{Pool, RopeTable};
use std::sync::Arc;

/// The model at work on batches of up to a planned size. All memory is taken when it is made.
pub struct Engine {
    config: ModelConfig,
    pool: Arc<Pool>,
    plan: MemoryPlan,
    memory: Memory,
    rope: RopeTable,
    packed: Packed,
    transformer: Transformer,
    head: Head,
    pending: Option<Pending>,
}

/// The forward pass that a backward pass may follow.
#[derive(PartialEq)]
struct Pending {
    tokens: Vec<u32>,
    segments: Vec<u32>,
    positions: Vec<u32>,
    /// The rows that the head read.
    indices: Vec<u32>,
    head: PendingHead,
}

/// What the head gave.
#[derive(PartialEq)]
enum PendingHead {
    Tokens { targets: Vec<u32>, scores: TokenScores },
    Rewards,
}

impl Engine {
    /// An engine for batches of up to `max_tokens` tokens, all of which may be targets.
    ///
    /// # Errors
    /// [`Error::Config`] for an impossible configuration.
    pub fn new(config: &ModelConfig, max_tokens: usize, pool: Arc<Pool>) -> Result<Self, Error> {
        let capacity = Capacity { tokens: max_tokens, targets: max_tokens };
        Self::with_capacity(config, capacity, Purpose::Training, pool)
    }

    /// An engine that only scores: no gradients, and a fraction of the activations.
    ///
    /// # Errors
    /// [`Error::Config`] for an impossible configuration.
    pub fn for_scoring(
        config: &ModelConfig,
        max_tokens: usize,
        pool: Arc<Pool>,
    ) -> Result<Self, Error> {
        let capacity = Capacity { tokens: max_tokens, targets: max_tokens };
        Self::with_capacity(config, capacity, Purpose::Inference, pool)
    }

    /// An engine over a memory plan of the given capacity and purpose.
    ///
    /// # Errors
    /// [`Error::Config`] for an impossible configuration.
    pub fn with_capacity(
        config: &ModelConfig,
        capacity: Capacity,
        purpose: Purpose,
        pool: Arc<Pool>,
    ) -> Result<Self, Error> {
        config.validate()?;
        let layout = Layout::new(config);
        let plan = MemoryPlan::new(config, capacity, purpose);
        let theta = f64::from(config.rope_theta);
        Ok(Self {
            config: config.clone(),
            memory: Memory::new(&plan),
            rope: RopeTable::new(config.max_seq_len, config.head_dim, theta),
            packed: Packed::new(),
            transformer: Transformer::new(config, &layout, &plan),
            head: Head { scratch: plan.head, table: layout.head, score: layout.score },
            plan,
            pool,
            pending: None,
        })
    }

    /// The model's configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The memory plan.
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// The threads that it computes on.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Bytes of activations, scratch and gradients: constant for the engine's life. The weights, the
    /// rotary table and the kernels' packing buffers come on top.
    pub fn peak_bytes(&self) -> usize {
        self.plan.bytes()
    }

    /// The gradients, each at the place that its weight has in [`Weights::as_slice`]. Empty for an
    /// engine that only scores.
    pub fn gradients(&self) -> &[f32] {
        &self.memory.gradients
    }

    /// The gradients, to be scaled or reduced.
    pub fn gradients_mut(&mut self) -> &mut [f32] {
        &mut self.memory.gradients
    }

    /// Sets all gradients to zero. `backward` adds to them.
    pub fn zero_gradients(&mut self) {
        self.memory.gradients.fill(0.0);
    }

    /// Reads a batch, for the time it takes alone: [`Engine::scores`], [`Engine::rewards`] and
    /// [`Engine::next_token`] do this themselves.
    ///
    /// # Errors
    /// Weights of another configuration, or a batch that is malformed or larger than planned.
    pub fn forward(&mut self, weights: &Weights, batch: &Batch) -> Result<(), Error> {
        self.run_forward(weights, batch, 0).map(|_| ())
    }

    /// Log-probability, log-sum-exp and entropy of every target.
    ///
    /// # Errors
    /// As [`Engine::forward`].
    pub fn scores(&mut self, weights: &Weights, batch: &Batch) -> Result<TokenScores, Error> {
        let positions = self.run_forward(weights, batch, batch.targets.len())?;
        let indices: Vec<u32> = batch.targets.iter().map(|target| target.row).collect();
        let targets: Vec<u32> = batch.targets.iter().map(|target| target.token).collect();
        let (mut device, transformer, head) = self.parts(weights);
        transformer.hidden(&mut device, batch.tokens.len(), &indices);
        let scores = head.scores(&mut device, &targets);
        let head = PendingHead::Tokens { targets, scores: scores.clone() };
        self.pending = Some(Pending::new(batch, positions, indices, head));
        Ok(scores)
    }

    /// Adds the gradients of a loss to [`Engine::gradients`], given its gradients by the scores.
    /// Must follow [`Engine::scores`] on the same batch and weights; once for each.
    ///
    /// # Errors
    /// [`Error::NoForward`] where it does not, or gradients that are not as many as the targets.
    pub fn backward(
        &mut self,
        weights: &Weights,
        batch: &Batch,
        gradients: &TokenGradients,
    ) -> Result<(), Error> {
        let lengths =
            [&gradients.d_log_prob, &gradients.d_log_sum_exp, &gradients.d_entropy].map(Vec::len);
        check_lengths("gradients by scores", &lengths, batch.targets.len())?;
        let pending = self.take_pending(weights, batch)?;
        let PendingHead::Tokens { targets, scores } = &pending.head else {
            return Err(Error::NoForward);
        };
        let same = batch.targets.iter().map(|target| (target.row, target.token));
        if !same.eq(pending.indices.iter().copied().zip(targets.iter().copied())) {
            return Err(Error::NoForward);
        }
        if targets.is_empty() {
            return Ok(());
        }
        let (mut device, transformer, head) = self.parts(weights);
        head.scores_backward(&mut device, targets, scores, gradients);
        transformer.backward(&mut device, &pending.tokens, pending.rows(), &pending.indices);
        Ok(())
    }

    /// Next-token loss and its gradient in one pass. With `w` the weight of each target, adds
    /// `scale * d(sum of w * -log_prob)/d(weights)` to the gradients, and gives the sum of
    /// `w * -log_prob` in nats, not scaled.
    ///
    /// # Errors
    /// As [`Engine::forward`], or other than one weight a target.
    pub fn next_token(
        &mut self,
        weights: &Weights,
        batch: &Batch,
        weights_per_target: &[f32],
        scale: f64,
    ) -> Result<f64, Error> {
        check_lengths("weights of targets", &[weights_per_target.len()], batch.targets.len())?;
        self.check_training()?;
        let positions = self.run_forward(weights, batch, batch.targets.len())?;
        let indices: Vec<u32> = batch.targets.iter().map(|target| target.row).collect();
        let targets: Vec<u32> = batch.targets.iter().map(|target| target.token).collect();
        if targets.is_empty() {
            return Ok(0.0);
        }
        let d_log_prob: Vec<f32> =
            weights_per_target.iter().map(|&w| (-scale * f64::from(w)) as f32).collect();
        let rows = Rows { positions: &positions, segments: &batch.segments };
        let (mut device, transformer, head) = self.parts(weights);
        transformer.hidden(&mut device, rows.len(), &indices);
        let log_prob = head.next_token(&mut device, &targets, &d_log_prob);
        transformer.backward(&mut device, &batch.tokens, rows, &indices);
        let terms = weights_per_target.iter().zip(&log_prob);
        Ok(terms.map(|(&w, &l)| -f64::from(w) * f64::from(l)).sum())
    }

    /// The reward head's value at each of `rows`, indices into the batch's tokens (for whole
    /// sequences, [`Batch::last_rows`]).
    ///
    /// # Errors
    /// As [`Engine::forward`]; [`Error::NoRewardHead`] for weights without one.
    pub fn rewards(
        &mut self,
        weights: &Weights,
        batch: &Batch,
        rows: &[u32],
    ) -> Result<Vec<f32>, Error> {
        let score = self.score()?;
        if let Some(row) = rows.iter().find(|&&row| row as usize >= batch.tokens.len()) {
            let expected = format!("below {}", batch.tokens.len());
            let what = "row of a reward";
            return Err(Error::MalformedBatch { what, found: row.to_string(), expected });
        }
        let positions = self.run_forward(weights, batch, rows.len())?;
        let (mut device, transformer, head) = self.parts(weights);
        transformer.hidden(&mut device, batch.tokens.len(), rows);
        let rewards = head.rewards(&mut device, rows.len(), score);
        self.pending = Some(Pending::new(batch, positions, rows.to_vec(), PendingHead::Rewards));
        Ok(rewards)
    }

    /// Adds the gradients of a loss, given its gradient by each reward. Must follow
    /// [`Engine::rewards`] on the same batch, rows and weights; once for each.
    ///
    /// # Errors
    /// [`Error::NoForward`] where it does not; gradients that are not as many as the rows.
    pub fn rewards_backward(
        &mut self,
        weights: &Weights,
        batch: &Batch,
        rows: &[u32],
        d_reward: &[f32],
    ) -> Result<(), Error> {
        let score = self.score()?;
        check_lengths("gradients by rewards", &[d_reward.len()], rows.len())?;
        let pending = self.take_pending(weights, batch)?;
        if pending.head != PendingHead::Rewards || pending.indices != rows {
            return Err(Error::NoForward);
        }
        let (mut device, transformer, head) = self.parts(weights);
        head.rewards_backward(&mut device, score, d_reward);
        transformer.backward(&mut device, &pending.tokens, pending.rows(), rows);
        Ok(())
    }

    fn score(&self) -> Result<Parameter, Error> {
        self.head.score.ok_or(Error::NoRewardHead)
    }

    /// Checks everything, then reads the batch. Gives the positions.
    fn run_forward(
        &mut self,
        weights: &Weights,
        batch: &Batch,
        targets: usize,
    ) -> Result<Vec<u32>, Error> {
        self.pending = None;
        self.check_weights(weights)?;
        let planned = self.plan.capacity();
        let sizes =
            [("tokens", batch.tokens.len(), planned.tokens), ("targets", targets, planned.targets)];
        for (what, found, planned) in sizes {
            if found > planned {
                return Err(Error::TooLarge { what, found, planned });
            }
        }
        batch.validate(&self.config)?;
        let positions = batch.positions();
        let rows = Rows { positions: &positions, segments: &batch.segments };
        let (mut device, transformer, _) = self.parts(weights);
        transformer.forward(&mut device, &batch.tokens, rows);
        Ok(positions)
    }

    /// The pending forward pass, if it was over this batch.
    fn take_pending(&mut self, weights: &Weights, batch: &Batch) -> Result<Pending, Error> {
        self.check_weights(weights)?;
        self.check_training()?;
        let pending = self.pending.take().ok_or(Error::NoForward)?;
        if pending.tokens != batch.tokens || pending.segments != batch.segments {
            return Err(Error::NoForward);
        }
        Ok(pending)
    }

    fn check_training(&self) -> Result<(), Error> {
        if self.plan.purpose() == Purpose::Training { Ok(()) } else { Err(Error::NoGradients) }
    }

    fn check_weights(&self, weights: &Weights) -> Result<(), Error> {
        if weights.config() == &self.config {
            return Ok(());
        }
        let (engine, weights) = (self.config.to_json(), weights.config().to_json());
        Err(Error::OtherConfiguration { engine, weights })
    }

    /// The device with the pass's weights, and what runs on it.
    fn parts<'a>(&'a mut self, weights: &'a Weights) -> (Device<'a>, &'a Transformer, &'a Head) {
        let device = Device {
            pool: &self.pool,
            rope: &self.rope,
            memory: &mut self.memory,
            weights: weights.as_slice(),
            packed: &self.packed,
        };
        (device, &self.transformer, &self.head)
    }
}

impl Pending {
    fn new(batch: &Batch, positions: Vec<u32>, indices: Vec<u32>, head: PendingHead) -> Self {
        let (tokens, segments) = (batch.tokens.clone(), batch.segments.clone());
        Self { tokens, segments, positions, indices, head }
    }

    fn rows(&self) -> Rows<'_> {
        Rows { positions: &self.positions, segments: &self.segments }
    }
}

fn check_lengths(what: &'static str, found: &[usize], expected: usize) -> Result<(), Error> {
    match found.iter().find(|&&length| length != expected) {
        None => Ok(()),
        Some(length) => Err(Error::MalformedBatch {
            what,
            found: format!("{length} values"),
            expected: format!("one each, {expected}"),
        }),
    }
}
