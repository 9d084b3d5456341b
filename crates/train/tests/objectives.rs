//! The objectives on real models: they learn, and count what they should.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Digest, Seed, Silent, Stop};
use common::{VOCAB, sequences, settings, weights};
use kernels::Pool;
use model::{Batch, Engine, Weights};
use std::sync::Arc;
use tokens::shards::{ShardWriter, Width};
use tokens::{Encoded, Loader};
use train::{
    Budget, Context, NextToken, Objective, Outcome, Settings, Supervised, batches_of, held_out_loss,
};

fn train<O: Objective>(objective: &mut O, settings: &Settings) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop::new();
    let pool = Arc::new(Pool::new(2));
    let context = Context { directory: directory.path(), pool, observer: &Silent, stop: &stop };
    train::run(objective, settings, weights(), &context, None).unwrap()
}

fn nats(weights: &Weights, batches: &[Batch]) -> f64 {
    let mut engine = Engine::new(weights.config(), 64, Arc::new(Pool::new(1))).unwrap();
    held_out_loss(&mut engine, weights, batches, &Stop::new()).unwrap().nats_per_token()
}

fn shards(documents: usize) -> (tempfile::TempDir, Loader) {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = ShardWriter::new(directory.path(), "train", Width::of(VOCAB), 1 << 20);
    for sequence in sequences(Seed(8), documents) {
        writer.push(&sequence).unwrap();
    }
    writer.finish().unwrap();
    let loader = Loader::open(directory.path(), "train", 8, Seed(2)).unwrap();
    (directory, loader)
}

#[test]
fn next_token_learns_from_shards_and_reads_each_window_once_an_epoch() {
    let (_directory, loader) = shards(200);
    let windows = loader.num_windows();
    let settings = Settings { budget: Budget::Epochs(2.0), ..settings() };
    let mut objective = NextToken::new(loader, Digest::of_bytes(b"data"), &settings).unwrap();
    // 96 tokens a step are 12 windows of 8, in three micro-batches of 4.
    assert_eq!(objective.steps_per_epoch(), windows as f64 / 12.0);
    let work = objective.work(0).unwrap();
    assert_eq!(work.len(), 3);
    assert!(work.iter().all(|batch| batch.tokens.len() == 32 && batch.targets.len() == 32));
    let held_out = batches_of(&sequences(Seed(9), 40), 16, 64);
    let before = nats(&weights(), &held_out);
    assert!((before - (VOCAB as f64).ln()).abs() < 0.1, "{before}");
    let outcome = train(&mut objective, &settings);
    assert_eq!(outcome.steps, (2.0 * windows as f64 / 12.0).ceil() as u64);
    assert_eq!(outcome.last.tokens_seen, outcome.steps * 96);
    let after = nats(&outcome.weights, &held_out);
    assert!(after < 0.5 * before, "{before} to {after}");
}

#[test]
fn another_order_or_other_data_are_another_training() {
    let digest = |data: &[u8], seed| {
        let (directory, _) = shards(50);
        let loader = Loader::open(directory.path(), "train", 8, Seed(seed)).unwrap();
        NextToken::new(loader, Digest::of_bytes(data), &settings()).unwrap().digest()
    };
    assert_eq!(digest(b"a", 1), digest(b"a", 1));
    assert_ne!(digest(b"a", 1), digest(b"b", 1));
    assert_ne!(digest(b"a", 1), digest(b"a", 2));
}

#[test]
fn a_micro_batch_shorter_than_a_sequence_is_refused() {
    let (_directory, loader) = shards(50);
    let settings = Settings { micro_batch_tokens: 7, ..settings() };
    let error = NextToken::new(loader, Digest::of_bytes(b""), &settings).err().unwrap();
    assert!(error.to_string().contains("micro-batch-tokens is 7"), "{error}");
}

/// The prompt is a random token, the answer the three that follow it.
fn conversations(count: usize) -> Vec<Encoded> {
    let mut rng = Seed(4).rng();
    (0..count)
        .map(|_| {
            let start = rng.below(VOCAB);
            let noise = rng.below(VOCAB) as u32;
            let answer = (0..4).map(|i| ((start + i) % VOCAB) as u32);
            Encoded {
                token_ids: std::iter::once(noise).chain(answer).collect(),
                loss_mask: vec![false, false, true, true, true],
                formatting: vec![false; 5],
            }
        })
        .collect()
}

#[test]
fn supervised_learns_the_answers_and_not_the_prompts() {
    let settings = Settings { budget: Budget::Epochs(8.0), ..settings() };
    let mut objective = Supervised::new(&conversations(300), 16, Seed(1), &settings).unwrap();
    let outcome = train(&mut objective, &settings);
    let score = |weights: &Weights, mask: [bool; 5]| {
        let mut batch = Batch::new();
        for conversation in &conversations(12) {
            batch.push_masked(&conversation.token_ids, &mask);
        }
        nats(weights, &[batch])
    };
    let answer = [false, false, true, true, true];
    let prompt = [false, true, false, false, false];
    assert!(score(&outcome.weights, answer) < 0.5);
    assert!(score(&outcome.weights, prompt) > 0.95 * score(&weights(), prompt));
}

#[test]
fn the_loss_of_packed_conversations_is_that_of_the_same_apart() {
    let settings = Settings { global_batch_tokens: 32, ..settings() };
    let conversations = conversations(12);
    let objective = Supervised::new(&conversations, 16, Seed(1), &settings).unwrap();
    let steps = objective.steps_per_epoch() as u64;
    let packed: Vec<Batch> = (0..steps).flat_map(|step| objective.work(step).unwrap()).collect();
    assert!(packed.iter().any(|row| row.segments.len() > 1));
    let apart: Vec<Batch> = conversations
        .iter()
        .map(|c| {
            let mut batch = Batch::new();
            batch.push_masked(&c.token_ids, &c.loss_mask);
            batch
        })
        .collect();
    let (packed, apart) = (nats(&weights(), &packed), nats(&weights(), &apart));
    assert!((packed - apart).abs() < 1e-9, "{packed} {apart}");
}
