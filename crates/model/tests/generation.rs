//! Answers are the same alone, in any batch and on any number of threads, and their
//! log-probabilities are those that the training engine gives.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Seed, Stop};
use common::{bits, config, pool, sequences, weights};
use model::{
    Batch, Completion, Embeddings, Engine, Error, Finish, Request, Sampling, Weights, generate,
};

fn requests(lengths: &[usize], seed: u64) -> Vec<Request> {
    let prompts = sequences(lengths, 37, seed).into_iter().enumerate();
    prompts.map(|(i, prompt)| Request { prompt, seed: Seed(seed).at(i as u64) }).collect()
}

fn run(
    weights: &Weights,
    threads: usize,
    requests: &[Request],
    sampling: &Sampling,
) -> Vec<Completion> {
    let (pool, stop) = (pool(threads), Stop::new());
    let mut streamed = vec![Vec::new(); requests.len()];
    let mut on_token = |i: usize, token: u32| streamed[i].push(token);
    let answers = generate(weights, &pool, requests, sampling, &mut on_token, &stop).unwrap();
    for (answer, streamed) in answers.iter().zip(&streamed) {
        assert_eq!(&answer.token_ids, streamed);
        assert_eq!(answer.token_ids.len(), answer.log_probs.len());
    }
    answers
}

fn samplings() -> [Sampling; 4] {
    let drawn = Sampling { temperature: 0.8, max_new_tokens: 30, ..Sampling::default() };
    [
        Sampling::greedy(30, vec![]),
        drawn.clone(),
        Sampling { top_k: Some(10), top_p: 0.9, stop: vec![3, 4], ..drawn.clone() },
        Sampling { max_new_tokens: 100, stop: vec![5], ..drawn },
    ]
}

#[test]
fn answers_are_the_same_alone_and_in_any_batch() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 1);
    // More requests than slots, of unequal lengths.
    let lengths: Vec<usize> = (0..41).map(|i| 1 + (i * 7) % 40).collect();
    let requests = requests(&lengths, 2);
    for sampling in samplings() {
        let together = run(&weights, 2, &requests, &sampling);
        assert_eq!(together, run(&weights, 1, &requests, &sampling));
        assert_eq!(together, run(&weights, 3, &requests, &sampling));
        for (i, request) in requests.iter().enumerate() {
            let alone = run(&weights, 1, std::slice::from_ref(request), &sampling);
            assert_eq!(alone[0], together[i], "request {i}");
        }
    }
}

#[test]
fn log_probs_are_those_of_the_engine_bit_for_bit() {
    for embeddings in [Embeddings::Tied, Embeddings::Untied] {
        let config = config(embeddings);
        let weights = weights(&config, 3);
        let requests = requests(&[1, 2, 15, 16, 17, 33, 60], 4);
        let mut engine = Engine::new(&config, 200, pool(2)).unwrap();
        for sampling in samplings() {
            for (request, answer) in requests.iter().zip(run(&weights, 2, &requests, &sampling)) {
                let sequence: Vec<u32> =
                    request.prompt.iter().chain(&answer.token_ids).copied().collect();
                let mask: Vec<bool> =
                    (0..sequence.len()).map(|i| i >= request.prompt.len()).collect();
                let mut batch = Batch::new();
                batch.push_masked(&sequence, &mask);
                let scores = engine.scores(&weights, &batch).unwrap();
                assert_eq!(bits(&scores.log_prob), bits(&answer.log_probs));
            }
        }
    }
}

#[test]
fn answers_end_where_they_should() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 5);
    let requests = requests(&[4, 60, 63], 6);
    let answers =
        run(&weights, 1, &requests, &Sampling { max_new_tokens: 10, ..samplings()[1].clone() });
    let found: Vec<_> = answers.iter().map(|a| (a.token_ids.len(), a.finish)).collect();
    assert_eq!(found, [(10, Finish::Length), (4, Finish::Length), (1, Finish::Length)]);
    let stop = answers[0].token_ids[6];
    let first = answers[0].token_ids.iter().position(|&token| token == stop).unwrap();
    let sampling = Sampling { max_new_tokens: 10, stop: vec![stop], ..samplings()[1].clone() };
    let stopped = &run(&weights, 1, &requests, &sampling)[0];
    assert_eq!(stopped.token_ids, answers[0].token_ids[..=first]);
    assert_eq!(stopped.finish, Finish::Stop);
    let none = Sampling { max_new_tokens: 0, ..Sampling::default() };
    assert!(run(&weights, 1, &requests, &none).iter().all(|answer| answer.token_ids.is_empty()));
    assert!(run(&weights, 1, &[], &none).is_empty());
}

#[test]
fn greedy_answers_are_the_most_likely_tokens() {
    let config = config(Embeddings::Untied);
    let weights = weights(&config, 7);
    let requests = requests(&[5], 8);
    let answer = &run(&weights, 1, &requests, &Sampling::greedy(8, vec![]))[0];
    let mut engine = Engine::new(&config, 64, pool(1)).unwrap();
    let mut sequence = requests[0].prompt.clone();
    for &token in &answer.token_ids {
        // Scores every token of the vocabulary as the next one.
        let mut batch = Batch::new();
        batch.push(&sequence);
        let row = sequence.len() as u32 - 1;
        batch.targets.extend((0..37).map(|token| model::Target { row, token }));
        let scores = engine.scores(&weights, &batch).unwrap().log_prob;
        let best = (0..37).max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)));
        assert_eq!(best, Some(token as usize));
        sequence.push(token);
    }
}

#[test]
fn bad_requests_are_refused_and_stops_are_heard() {
    let config = config(Embeddings::Tied);
    let weights = weights(&config, 9);
    let pool = pool(1);
    let stop = Stop::new();
    let refused = |prompt: Vec<u32>, stop: &Stop| {
        let requests =
            [Request { prompt: vec![1], seed: Seed(1) }, Request { prompt, seed: Seed(2) }];
        generate(&weights, &pool, &requests, &Sampling::default(), &mut |_, _| (), stop)
            .unwrap_err()
    };
    assert!(matches!(refused(vec![], &stop), Error::MalformedBatch { .. }));
    assert!(matches!(refused(vec![1; 64], &stop), Error::SequenceTooLong { sequence: 1, .. }));
    let message = refused(vec![1, 37], &stop).to_string();
    assert!(message.contains("37") && message.contains("request 1"), "{message}");
    stop.raise();
    assert!(matches!(refused(vec![1], &stop), Error::Interrupted(_)));
}
