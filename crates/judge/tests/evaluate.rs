//! Grading one model on items, and comparing two on the same items.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Item, Seed, Silent, Split, Stop};
use common::Scripted;
use judge::evaluate::{Settings, compare, evaluate};
use judge::{Error, Grader};
use std::collections::BTreeMap;

fn items(count: usize) -> Vec<Item> {
    let item = |i: usize| Item {
        id: format!("item-{i:03}"),
        task: if i.is_multiple_of(2) { "returns" } else { "sum" }.to_owned(),
        subject: format!("subject {i}"),
        split: Split::HeldOut,
        prompt: format!("Question {i}"),
        answer: format!("It returns {i}."),
    };
    (0..count).map(item).collect()
}

fn number(prompt: &str) -> usize {
    prompt.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn shares_and_means_are_by_task_and_overall() {
    // Right on the first task, half of the words right on the second.
    let answer = |prompt: &str| match number(prompt) {
        i if i.is_multiple_of(2) => format!("it returns `{i}`"),
        i => format!("perhaps {i}"),
    };
    let mut model = Scripted::new("sft", &answer);
    let settings = Settings::default();
    let found =
        evaluate(&mut model, &items(100), &settings, Seed(1), &Silent, &Stop::new()).unwrap();
    assert_eq!(model.asked, 100);
    assert_eq!((found.overall.items, found.overall.exact.estimate), (100, 0.5));
    assert_eq!(found.tasks["returns"].exact.estimate, 1.0);
    assert_eq!(found.tasks["returns"].partial.estimate, 1.0);
    assert_eq!(found.tasks["sum"].exact.estimate, 0.0);
    // "perhaps 1" against "it returns 1": precision 1/2, recall 1/3.
    assert!((found.tasks["sum"].partial.estimate - 0.4).abs() < 1e-9);
    assert!(found.overall.exact.low > 0.4 && found.overall.exact.high < 0.6);
    assert_eq!(found.overall.ended_share, 1.0);

    let graders = BTreeMap::from([("sum".to_owned(), Grader::FinalNumber)]);
    let settings = Settings { task_graders: graders, ..settings };
    let found =
        evaluate(&mut model, &items(100), &settings, Seed(1), &Silent, &Stop::new()).unwrap();
    assert_eq!(found.tasks["sum"].exact.estimate, 1.0);
}

#[test]
fn the_better_model_is_preferred_with_an_interval() {
    let good = |prompt: &str| match number(prompt) {
        i if i.is_multiple_of(5) => "no".to_owned(),
        i => format!("It returns {i}."),
    };
    let bad = |prompt: &str| match number(prompt) {
        i if i.is_multiple_of(10) => "It returns.".to_owned(),
        i if i.is_multiple_of(5) => "no".to_owned(),
        i if i.is_multiple_of(3) => format!("It returns {i}."),
        i => format!("It {i}."),
    };
    let settings = Settings::default();
    let run = |name, answer| {
        let mut model = Scripted::new(name, answer);
        evaluate(&mut model, &items(200), &settings, Seed(1), &Silent, &Stop::new()).unwrap()
    };
    let (good, bad) = (run("aligned", &good), run("sft", &bad));
    let found = compare(&good, &bad, 0.0, Seed(2)).unwrap();
    let preference = found.preference;
    // 20 multiples of 10 lost; 20 other multiples of 5 and 53 multiples of 3 alone tied; 107 won.
    assert_eq!((preference.losses, preference.ties, preference.wins), (20, 73, 107));
    assert!(preference.excludes_half(), "{preference:?}");
    assert!(found.exact_difference.above(0.4), "{found:?}");

    let mirrored = compare(&bad, &good, 0.0, Seed(2)).unwrap().preference;
    assert_eq!((mirrored.wins, mirrored.losses), (20, 107));
    assert!((mirrored.rate.estimate + preference.rate.estimate - 1.0).abs() < 1e-12);
    assert!(!compare(&good, &good, 0.0, Seed(2)).unwrap().preference.excludes_half());
}

#[test]
fn evaluations_on_other_items_are_not_compared() {
    let answer = |_: &str| "yes".to_owned();
    let settings = Settings::default();
    let run = |count| {
        let mut model = Scripted::new("m", &answer);
        evaluate(&mut model, &items(count), &settings, Seed(1), &Silent, &Stop::new())
    };
    let error = compare(&run(5).unwrap(), &run(6).unwrap(), 0.0, Seed(1)).unwrap_err();
    assert!(error.to_string().contains("item-005"), "{error}");
    assert!(matches!(run(0), Err(Error::NothingToJudge { .. })));
}

#[test]
fn several_answers_to_an_item_are_averaged() {
    let count = std::cell::Cell::new(0);
    let answer = |prompt: &str| {
        count.set(count.get() + 1);
        if count.get() % 2 == 0 {
            "no".to_owned()
        } else {
            format!("It returns {}.", number(prompt))
        }
    };
    let mut model = Scripted::new("m", &answer);
    let settings = Settings { samples: 4, ..Settings::default() };
    let found =
        evaluate(&mut model, &items(10), &settings, Seed(1), &Silent, &Stop::new()).unwrap();
    assert_eq!(model.asked, 40);
    assert!(found.results.iter().all(|result| result.exact == 0.5 && result.partial == 0.5));
}

#[test]
fn a_stop_ends_the_asking() {
    let answer = |_: &str| String::new();
    let mut model = Scripted { stop_after: Some(1), ..Scripted::new("m", &answer) };
    let settings = Settings::default();
    let result = evaluate(&mut model, &items(500), &settings, Seed(1), &Silent, &Stop::new());
    assert!(matches!(result, Err(Error::Interrupted(_))));
    assert!(model.asked < 500);
}
