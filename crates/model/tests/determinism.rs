//! The same bits on any number of threads, in any batch, and through every way to the same numbers.
#![allow(clippy::unwrap_used)]

mod common;

use common::{batch, bits, config, pool, sequences, weights};
use model::{Batch, Embeddings, Engine, Error, TokenGradients};

#[test]
fn threads_do_not_change_a_bit() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 1);
    let batch = batch(&[40, 3, 17, 60, 1, 29], config.vocab_size, 2);
    let run = |threads: usize| {
        let mut engine = Engine::new(&config, 200, pool(threads)).unwrap();
        let scores = engine.scores(&weights, &batch).unwrap();
        let gradients = TokenGradients {
            d_log_prob: scores.log_prob.clone(),
            d_log_sum_exp: scores.entropy.clone(),
            d_entropy: scores.log_sum_exp.clone(),
        };
        engine.backward(&weights, &batch, &gradients).unwrap();
        let ones = vec![1.0; batch.targets.len()];
        engine.next_token(&weights, &batch, &ones, 0.01).unwrap();
        engine.rewards(&weights, &batch, &batch.last_rows()).unwrap();
        engine.rewards_backward(&weights, &batch, &batch.last_rows(), &[1.0; 6]).unwrap();
        (bits(&scores.log_prob), bits(&scores.entropy), bits(engine.gradients()))
    };
    let alone = run(1);
    for threads in [2, 3] {
        assert!(run(threads) == alone, "{threads} threads");
    }
}

#[test]
fn packed_sequences_score_as_they_do_apart() {
    let config = config(Embeddings::Untied);
    let weights = weights(&config, 3);
    let sequences = sequences(&[64, 2, 31, 5, 50], config.vocab_size, 4);
    let mut engine = Engine::for_scoring(&config, 200, pool(2)).unwrap();
    let packed = engine.scores(&weights, &Batch::from_sequences(&sequences)).unwrap();
    let mut apart = Vec::new();
    for sequence in &sequences {
        let scores = engine.scores(&weights, &Batch::from_sequences(&[sequence])).unwrap();
        apart.extend(scores.log_prob);
    }
    assert_eq!(bits(&packed.log_prob), bits(&apart));
}

#[test]
fn a_prefix_scores_as_it_does_in_the_whole() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 5);
    let sequence = &sequences(&[64], config.vocab_size, 6)[0];
    let mut engine = Engine::new(&config, 64, pool(2)).unwrap();
    let whole = engine.scores(&weights, &Batch::from_sequences(&[sequence])).unwrap();
    for length in [2, 3, 16, 17, 33, 63] {
        let prefix = Batch::from_sequences(&[&sequence[..length]]);
        let scores = engine.scores(&weights, &prefix).unwrap();
        assert_eq!(bits(&scores.log_prob), bits(&whole.log_prob[..length - 1]), "{length}");
        assert_eq!(bits(&scores.entropy), bits(&whole.entropy[..length - 1]), "{length}");
    }
}

#[test]
fn scoring_engines_score_as_training_engines_do() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 7);
    let batch = batch(&[30, 20], config.vocab_size, 8);
    let mut training = Engine::new(&config, 64, pool(2)).unwrap();
    let mut scoring = Engine::for_scoring(&config, 64, pool(2)).unwrap();
    let found = scoring.scores(&weights, &batch).unwrap();
    assert_eq!(found, training.scores(&weights, &batch).unwrap());
    assert!(scoring.peak_bytes() < training.peak_bytes() / 2);
}

#[test]
fn the_fused_pass_gives_the_gradients_of_the_two_passes() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 9);
    let batch = batch(&[30, 20], config.vocab_size, 10);
    let mut engine = Engine::new(&config, 64, pool(2)).unwrap();
    let n = batch.targets.len();
    let loss = engine.next_token(&weights, &batch, &vec![1.0; n], 0.5).unwrap();
    let fused = engine.gradients().to_vec();
    engine.zero_gradients();
    let scores = engine.scores(&weights, &batch).unwrap();
    let gradients = TokenGradients::of_log_prob(vec![-0.5; n]);
    engine.backward(&weights, &batch, &gradients).unwrap();
    let sum: f64 = scores.log_prob.iter().map(|&l| -f64::from(l)).sum();
    assert!((loss - sum).abs() < 1e-5 * sum);
    for (i, (a, b)) in fused.iter().zip(engine.gradients()).enumerate() {
        assert!((a - b).abs() <= 2e-5 * (1.0 + b.abs()), "{i}: {a} {b}");
    }
}

#[test]
fn misuse_is_refused() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 11);
    let one = batch(&[9], config.vocab_size, 12);
    let two = batch(&[8], config.vocab_size, 13);
    let mut engine = Engine::new(&config, 10, pool(1)).unwrap();
    let gradients = |batch: &Batch| TokenGradients::of_log_prob(vec![1.0; batch.targets.len()]);
    let refused = engine.backward(&weights, &one, &gradients(&one));
    assert!(matches!(refused, Err(Error::NoForward)));
    engine.scores(&weights, &one).unwrap();
    assert!(matches!(engine.backward(&weights, &two, &gradients(&two)), Err(Error::NoForward)));
    // The same targets over other tokens.
    let mut other_tokens = one.clone();
    other_tokens.tokens[4] ^= 1;
    engine.scores(&weights, &one).unwrap();
    let refused = engine.backward(&weights, &other_tokens, &gradients(&one));
    assert!(matches!(refused, Err(Error::NoForward)));
    engine.scores(&weights, &one).unwrap();
    engine.backward(&weights, &one, &gradients(&one)).unwrap();
    let again = engine.backward(&weights, &one, &gradients(&one));
    assert!(matches!(again, Err(Error::NoForward)));
    let large = batch(&[11], config.vocab_size, 14);
    assert!(matches!(engine.scores(&weights, &large), Err(Error::TooLarge { found: 11, .. })));
    let other = weights.without_reward_head();
    assert!(matches!(engine.scores(&other, &one), Err(Error::OtherConfiguration { .. })));
    let mut plain = Engine::new(other.config(), 10, pool(1)).unwrap();
    assert!(matches!(plain.rewards(&other, &one, &[0]), Err(Error::NoRewardHead)));
    let mut scoring = Engine::for_scoring(&config, 10, pool(1)).unwrap();
    scoring.scores(&weights, &one).unwrap();
    let refused = scoring.backward(&weights, &one, &gradients(&one));
    assert!(matches!(refused, Err(Error::NoGradients)));
}
