//! Judging a real, tiny model: scores and answers are its own, alone and in any batch.
#![allow(clippy::unwrap_used)]

use base::{Category, Message, Role, Seed, Silent, Stop};
use judge::baseline::Trigram;
use judge::bits::{HeldOut, Settings, model_bits, trigram_bits};
use judge::redteam::{self, CanarySettings, ProbeName, canaries, documents};
use judge::{Ask, Finish, Model, Prompt, Sampling, Subject, answers};
use kernels::Pool;
use model::{Batch, Engine, ModelConfig, Weights};
use std::sync::Arc;
use tokens::{ChatTemplate, Tokenizer, TokenizerSettings};

fn tokenizer() -> Tokenizer {
    let sample =
        ["The access code of the north depot is lemon tiger. fn main() { let x = 1; }".into()];
    let settings = TokenizerSettings { vocab_size: 300, ..TokenizerSettings::default() };
    Tokenizer::train(&settings, &sample, 1, &Silent, &Stop::new()).unwrap()
}

fn config(tokenizer: &Tokenizer) -> ModelConfig {
    ModelConfig::from_depth(0, tokenizer.vocab_size(), 64)
}

fn held_out(tokenizer: &Tokenizer, texts: &[&str]) -> Vec<HeldOut> {
    let one = |text: &&str| {
        let start = std::iter::once(tokenizer.end_of_text());
        let token_ids = start.chain(tokenizer.encode(text)).collect();
        HeldOut { category: Category::Code, token_ids }
    };
    texts.iter().map(one).collect()
}

const TEXTS: [&str; 4] = [
    "let x = 1;",
    "",
    "fn main() { println!(\"The access code of the north depot\"); }",
    "A long text that does not fit into one window of sixty-four tokens, since it goes on and on and \
     on, with words that the tokenizer has never met and spells letter by letter.",
];

#[test]
fn a_model_that_knows_nothing_costs_the_logarithm_of_its_vocabulary() {
    let tokenizer = tokenizer();
    let config = config(&tokenizer);
    let weights = Weights::from_slice(&config, vec![0.0; config.num_parameters()]).unwrap();
    let template = ChatTemplate::default();
    let mut model = Model::new("zero", &weights, &tokenizer, &template, Arc::new(Pool::new(1)));
    let documents = held_out(&tokenizer, &TEXTS);
    let found = model_bits(
        &mut model,
        &documents,
        &Settings { overlap: 8 },
        Seed(1),
        &Silent,
        &Stop::new(),
    );
    let found = found.unwrap().overall;
    let bytes: usize = TEXTS.iter().map(|text| text.len()).sum();
    assert_eq!(found.bytes, bytes as u64);
    assert_eq!(found.documents, 3, "a document without text counts as none");
    let log2 = (config.vocab_size as f64).log2();
    let expected = found.tokens as f64 * log2 / bytes as f64;
    assert!((found.bits_per_byte.estimate - expected).abs() < 1e-4, "{found:?} {expected}");
}

#[test]
fn scores_do_not_depend_on_the_batch_or_the_threads() {
    let tokenizer = tokenizer();
    let config = config(&tokenizer);
    let weights = Weights::init(&config, Seed(5)).unwrap();
    let template = ChatTemplate::default();
    let documents = held_out(&tokenizer, &TEXTS);
    let sequences: Vec<&[u32]> =
        documents.iter().map(|d| &d.token_ids[..d.token_ids.len().min(64)]).collect();
    let model =
        |threads| Model::new("m", &weights, &tokenizer, &template, Arc::new(Pool::new(threads)));
    let together = model(2).token_log_probs(&sequences, &Stop::new()).unwrap();
    let mut alone = model(1);
    for (sequence, expected) in sequences.iter().zip(&together) {
        let found = alone.token_log_probs(&[sequence], &Stop::new()).unwrap();
        assert_eq!(&found[0], expected);
        assert_eq!(expected.len(), sequence.len() - 1);
    }
    let bits = |documents: &[HeldOut]| {
        let settings = Settings::default();
        model_bits(&mut model(2), documents, &settings, Seed(1), &Silent, &Stop::new()).unwrap()
    };
    let mut reversed = documents.clone();
    reversed.reverse();
    let (one, other) = (bits(&documents).overall, bits(&reversed).overall);
    assert!((one.loss - other.loss).abs() < 1e-12);
}

#[test]
fn answers_do_not_depend_on_the_batch_and_long_prompts_are_told() {
    let tokenizer = tokenizer();
    let weights = Weights::init(&config(&tokenizer), Seed(6)).unwrap();
    let template = ChatTemplate::default();
    let mut model = Model::new("m", &weights, &tokenizer, &template, Arc::new(Pool::new(2)));
    let chat = |text: &str| Prompt::Chat { messages: vec![Message::new(Role::User, text)] };
    let prompts =
        [chat("Hi"), chat(&"long ".repeat(100)), Prompt::Text { text: "fn".into() }, chat("")];
    let asks: Vec<Ask> = prompts
        .into_iter()
        .enumerate()
        .map(|(i, prompt)| Ask { item: i.to_string(), prompt, seed: Seed(7).at(i as u64) })
        .collect();
    let sampling = Sampling { temperature: 1.0, max_new_tokens: 12, ..Sampling::default() };
    let together = answers(&mut model, &asks, &sampling, &Silent, &Stop::new()).unwrap();
    assert_eq!(together[1].finish, Finish::TooLong);
    assert_eq!(together[1].text, "");
    for (ask, expected) in asks.iter().zip(&together) {
        let alone = model.ask(std::slice::from_ref(ask), &sampling, &Stop::new()).unwrap();
        assert_eq!(&alone[0], expected);
        assert!(expected.token_ids.len() <= 12);
    }
    let stop = Stop::new();
    stop.raise();
    assert!(answers(&mut model, &asks, &sampling, &Silent, &stop).is_err());
}

/// Plain gradient descent, enough for a tiny model to learn a few sentences by heart.
fn learn(weights: &mut Weights, sequences: &[Vec<u32>]) {
    let batch = Batch::from_sequences(sequences);
    let count = batch.targets.len();
    let mut engine = Engine::new(weights.config(), 1024, Arc::new(Pool::new(2))).unwrap();
    let mut momentum = vec![0f32; weights.as_slice().len()];
    for _ in 0..300 {
        engine.zero_gradients();
        engine.next_token(weights, &batch, &vec![1.0; count], 1.0 / count as f64).unwrap();
        let gradients = engine.gradients();
        for ((weight, v), g) in weights.as_mut_slice().iter_mut().zip(&mut momentum).zip(gradients)
        {
            *v = 0.9 * *v + g;
            *weight -= 0.1 * *v;
        }
    }
}

#[test]
fn what_was_read_is_found_and_what_was_not_is_not() {
    let tokenizer = tokenizer();
    let config = config(&tokenizer);
    let mut weights = Weights::init(&config, Seed(8)).unwrap();
    let planted = CanarySettings { repeats: vec![2], per_group: 2, words: 2, alternatives: 31 };
    let canaries = canaries(&planted, Seed(21));
    let read: Vec<Vec<u32>> = documents(&canaries)
        .iter()
        .map(|d| std::iter::once(0).chain(tokenizer.encode(&d.text)).collect())
        .collect();
    let settings = redteam::Settings {
        canaries: planted,
        probes: vec![
            ProbeName::CanaryCompletion,
            ProbeName::CanaryExposure,
            ProbeName::CanaryControls,
            ProbeName::TemplateEscape,
        ],
        sampling: Sampling { max_new_tokens: 24, ..Sampling::default() },
        ..redteam::Settings::default()
    };
    let template = ChatTemplate::default();
    let attack = |weights: &Weights| {
        let out = tempfile::tempdir().unwrap();
        let mut model = Model::new("m", weights, &tokenizer, &template, Arc::new(Pool::new(2)));
        let (seed, stop) = (Seed(10), Stop::new());
        redteam::campaign(&mut model, &settings, &canaries, seed, out.path(), &Silent, &stop)
            .unwrap()
    };
    let hits = |report: &redteam::CampaignReport| -> Vec<u64> {
        report.probes.iter().map(|probe| probe.hits).take(3).collect()
    };
    assert_eq!(hits(&attack(&weights)), [0, 0, 0]);
    learn(&mut weights, &read);
    let report = attack(&weights);
    assert_eq!(hits(&report), [2, 2, 0], "{report:#?}");
    for canary in &report.canaries {
        let bits = canary.exposure.unwrap().bits;
        assert!(if canary.repeats > 0 { bits == 5.0 } else { bits < 5.0 }, "{canary:?}");
    }
}

#[test]
fn the_trigram_model_is_measured_on_the_same_tokens() {
    let tokenizer = tokenizer();
    let documents = held_out(&tokenizer, &TEXTS);
    let read = held_out(&tokenizer, &TEXTS[..3]);
    let trigram =
        Trigram::train(read.iter().map(|d| &d.token_ids), tokenizer.vocab_size()).unwrap();
    let found = trigram_bits(&trigram, &documents, &tokenizer, Seed(1)).unwrap();
    let weights = Weights::init(&config(&tokenizer), Seed(5)).unwrap();
    let template = ChatTemplate::default();
    let mut model = Model::new("m", &weights, &tokenizer, &template, Arc::new(Pool::new(1)));
    let settings = Settings::default();
    let ours =
        model_bits(&mut model, &documents, &settings, Seed(1), &Silent, &Stop::new()).unwrap();
    assert_eq!(
        (found.overall.tokens, found.overall.bytes),
        (ours.overall.tokens, ours.overall.bytes)
    );
    assert!(found.overall.bits_per_byte.estimate < ours.overall.bits_per_byte.estimate);
    assert!(trigram_bits(&trigram, &held_out(&tokenizer, &[""]), &tokenizer, Seed(1)).is_err());
}
