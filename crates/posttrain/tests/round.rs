//! A whole round on a model of two thin layers: every step after the other, in its own directory, as the
//! program runs them.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Digest, Item, Seed, Split, Stop};
use common::{World, context};
use judge::Model;
use model::Weights;
use posttrain::PairSettings;
use posttrain::round::{dpo, reject, reward, rollouts, tune, verify};
use posttrain::{Error, conversations, sft};
use std::path::Path;
use std::sync::Arc;
use train::Budget;

fn training(steps: u64, learning_rate: f64) -> train::Settings {
    train::Settings {
        budget: Budget::Steps(steps),
        global_batch_tokens: 512,
        micro_batch_tokens: 256,
        learning_rate,
        checkpoint_every: 5,
        ..train::Settings::default()
    }
}

struct Round {
    sft: sft::Summary,
    judge: verify::Summary,
    reward: reward::Summary,
    reject: reject::Summary,
    dpo: dpo::Summary,
    weights: Digest,
}

fn sft_settings(steps: u64) -> sft::Settings {
    let train = training(steps, 1e-2);
    sft::Settings { conversation_repeats: 1, train, ..sft::Settings::default() }
}

fn fine_tune(
    world: &World,
    root: &Path,
    threads: usize,
    stop: &Stop,
) -> Result<(Weights, sft::Summary), Error> {
    let items = world.items(64, Split::Train);
    let repeated = conversations::hand_made().unwrap();
    let held_out = world.items(8, Split::HeldOut);
    let data = sft::Data {
        conversations: items.iter().map(sft::conversation_of).collect(),
        repeated: &repeated[..4],
        held_out: &held_out,
    };
    let directory = root.join("sft");
    let context = context(&directory, threads, stop);
    sft::train(&sft_settings(30), &data, &world.encoder(), world.weights(), Seed(1), &context)
}

fn round(world: &World, root: &Path, threads: usize) -> Round {
    let stop = Stop::new();
    let (start, sft) = fine_tune(world, root, threads, &stop).unwrap();
    let items: Vec<Item> = world.items(64, Split::Train);
    let settings = rollouts::Settings {
        prompts: 24,
        samples_per_prompt: 4,
        chunk_prompts: 8,
        sampling: judge::Sampling { temperature: 1.0, max_new_tokens: 8, ..Default::default() },
    };
    let pool = Arc::new(kernels::Pool::new(threads));
    let mut subject = Model::new("sft", &start, &world.tokenizer, &world.template, pool);
    let path = root.join("rollouts");
    rollouts::sample(&settings, &items, &mut subject, Seed(2), &path, &base::Silent, &stop)
        .unwrap();
    let sampled = rollouts::read(&path).unwrap();
    let (preferences, judge) = verify::judge(
        &verify::Settings { edits: verify::Edits::WhenNoneIsRight, ..Default::default() },
        &sampled,
    );

    let encoder = world.encoder();
    let path = root.join("reward");
    let settings = reward::Settings { train: training(20, 3e-3), ..Default::default() };
    let (reward_model, reward) = reward::train(
        &settings,
        &preferences,
        &encoder,
        &start,
        Seed(3),
        &context(&path, threads, &stop),
    )
    .unwrap();
    let path = root.join("reject");
    let reject = reject::choose(
        &reject::Settings::default(),
        &sampled,
        &encoder,
        &reward_model,
        &context(&path, threads, &stop),
    )
    .unwrap();
    let winners = reject::read(&path).unwrap();
    let path = root.join("tune");
    let settings = tune::Settings { items_per_winner: 0.5, sft: sft_settings(4) };
    let data = tune::Data { winners: &winners, items: &items, repeated: &[], held_out: &[] };
    let (tuned, _) =
        tune::train(&settings, &data, &encoder, start, Seed(4), &context(&path, threads, &stop))
            .unwrap();
    let path = root.join("dpo");
    // A third of the prompts, since there are few.
    let pairs = PairSettings { held_out_share: 0.3, ..PairSettings::default() };
    let settings = dpo::Settings { pairs, train: training(8, 1e-3), ..Default::default() };
    let (aligned, dpo) = dpo::train(
        &settings,
        &preferences,
        &encoder,
        tuned,
        Seed(5),
        &context(&path, threads, &stop),
    )
    .unwrap();
    Round { sft, judge, reward, reject, dpo, weights: aligned.digest() }
}

#[test]
fn a_round_learns_and_gives_the_same_weights_with_other_threads() {
    let world = World::new();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = round(&world, one.path(), 1);
    assert!(first.sft.evaluation["held-out-loss"] < 3.0, "{:?}", first.sft);
    assert!(first.judge.pairs > 0, "{:?}", first.judge);
    assert!(first.reward.loss < std::f64::consts::LN_2, "{:?}", first.reward);
    assert!(first.reject.agreement >= first.reject.chance_agreement, "{:?}", first.reject);
    assert!(first.dpo.held_out_after.margin > 0.0, "{:?}", first.dpo);
    assert!(first.dpo.held_out_before.chosen_log_prob < 0.0, "{:?}", first.dpo);
    assert_eq!(round(&world, two.path(), 2).weights, first.weights);
    // All of it is there already: nothing is trained again, and the result is the same.
    assert_eq!(round(&world, one.path(), 2).weights, first.weights);
}

#[test]
fn a_stopped_fine_tuning_is_an_interruption_and_goes_on_to_the_same_weights() {
    let world = World::new();
    let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = fine_tune(&world, whole.path(), 1, &Stop::new()).unwrap().0.digest();
    let stop = Stop::new();
    stop.raise();
    let error = fine_tune(&world, cut.path(), 1, &stop).unwrap_err();
    assert!(matches!(error, Error::Interrupted(_)), "{error}");
    assert_eq!(fine_tune(&world, cut.path(), 1, &Stop::new()).unwrap().0.digest(), expected);
}

#[test]
fn a_damaged_reference_file_is_computed_again() {
    let world = World::new();
    let directory = tempfile::tempdir().unwrap();
    let preference = |i: usize| base::Preference {
        id: format!("{i}"),
        item: format!("item {i}"),
        prompt: vec![base::Message::new(base::Role::User, "which colour is it")],
        chosen: common::WORDS[i % 8].into(),
        rejected: common::WORDS[(i + 3) % 8].into(),
        rating: base::Rating::Better,
        judge: "test".into(),
    };
    let preferences: Vec<base::Preference> = (0..16).map(preference).collect();
    let settings = dpo::Settings { train: training(3, 1e-3), ..Default::default() };
    let stop = Stop::new();
    let train = |path: &Path| {
        let context = context(path, 1, &stop);
        let encoder = world.encoder();
        dpo::train(&settings, &preferences, &encoder, world.weights(), Seed(5), &context).unwrap()
    };
    let (weights, summary) = train(directory.path());
    let path = directory.path().join(dpo::REFERENCE_FILE);
    let reference = std::fs::read(&path).unwrap();
    std::fs::write(&path, &reference[..reference.len() / 2]).unwrap();
    let (again, summary_again) = train(directory.path());
    assert_eq!((again.digest(), summary_again), (weights.digest(), summary));
    assert_eq!(std::fs::read(&path).unwrap(), reference);
}
