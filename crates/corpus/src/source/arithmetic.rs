//! Arithmetic in words, generated: small numbers, few templates, and steps that count: `11 + 1 = 12`,
//! `11 + 2 = 13`, `11 + 3 = 14`. Every step of a problem is a step of longer ones too, so a tiny model
//! can answer problems that it has not read.
//!
//! [`problem`] gives one question with its steps and answer, for documents here and for question and
//! answer items elsewhere. Its `key` names what has to be computed (`12 + 7`), whoever the names and
//! things are; all problems of one key stand on one side of the split ([`crate::split::side`]).

use super::Raw;
use crate::split;
use base::{Category, Rng, Seed};

/// A question in words with its worked answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is to be computed, such as `12 + 7`; the same for all wordings.
    pub key: String,
    /// The question, one line.
    pub question: String,
    /// The steps, one a line.
    pub steps: Vec<String>,
    /// The answer: a number, or a name where things are compared.
    pub answer: String,
}

impl Problem {
    /// Steps and answer as text: the steps, then `The answer is …`.
    pub fn solution(&self) -> String {
        let mut lines = self.steps.clone();
        lines.push(format!("The answer is {}.", self.answer));
        lines.join("\n")
    }
}

const NAMES: &[&str] =
    &["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gil", "Hana", "Ida", "Jon", "Kim", "Leo"];
const THINGS: &[&str] =
    &["apples", "books", "coins", "pens", "eggs", "stamps", "cups", "keys", "shells", "cards"];
const BOXES: &[&str] = &["bags", "boxes", "rows", "shelves", "trays"];

/// A random problem: a sum, a difference, a product, sharing into equal parts, or a comparison.
pub fn problem(rng: &mut Rng) -> Problem {
    match rng.below(5) {
        0 => sum(rng),
        1 => difference(rng),
        2 => product(rng),
        3 => sharing(rng),
        _ => comparison(rng),
    }
}

fn pick<'a>(rng: &mut Rng, words: &'a [&'a str]) -> &'a str {
    words[rng.below(words.len())]
}

fn two_names(rng: &mut Rng) -> (&'static str, &'static str) {
    let first = rng.below(NAMES.len());
    let second = (first + 1 + rng.below(NAMES.len() - 1)) % NAMES.len();
    (NAMES[first], NAMES[second])
}

/// Number and noun, `1 apple` or `2 apples`.
fn count(n: usize, things: &str) -> String {
    let singular = match things {
        "boxes" => "box",
        "shelves" => "shelf",
        other => other.strip_suffix('s').unwrap_or(other),
    };
    format!("{n} {}", if n == 1 { singular } else { things })
}

/// Most steps of a problem.
const MOST_STEPS: usize = 6;

/// From 1 up to `last`, one step for each number.
fn counted(last: usize, step: impl Fn(usize) -> String) -> Vec<String> {
    (1..=last).map(step).collect()
}

fn sum(rng: &mut Rng) -> Problem {
    let (a, b) = (1 + rng.below(20), 1 + rng.below(MOST_STEPS));
    let ((name, other), things) = (two_names(rng), pick(rng, THINGS));
    let (has_a, has_b) = (count(a, things), count(b, things));
    let question = match rng.below(3) {
        0 => {
            format!("{name} has {has_a} and gets {b} more. How many {things} does {name} have now?")
        }
        1 => format!(
            "{name} has {has_a} and {other} has {has_b}. How many {things} do they have together?"
        ),
        _ => format!(
            "There are {has_a} on the table and {has_b} in the box. How many {things} are there in all?"
        ),
    };
    let steps = counted(b, |n| format!("{a} + {n} = {}", a + n));
    Problem { key: format!("{a} + {b}"), question, steps, answer: (a + b).to_string() }
}

fn difference(rng: &mut Rng) -> Problem {
    let b = 1 + rng.below(MOST_STEPS);
    let a = b + 1 + rng.below(20 - b);
    let ((name, other), things) = (two_names(rng), pick(rng, THINGS));
    let has = count(a, things);
    let question = match rng.below(3) {
        0 => format!(
            "{name} has {has} and gives {b} to {other}. How many {things} does {name} have left?"
        ),
        1 => format!(
            "There were {has} in the box. {name} took {b} out. How many {things} are left in the box?"
        ),
        _ => format!("{name} needs {has} and already has {b}. How many {things} are missing?"),
    };
    Problem {
        key: format!("{a} - {b}"),
        question,
        steps: less_each_time(a, b),
        answer: (a - b).to_string(),
    }
}

fn less_each_time(a: usize, b: usize) -> Vec<String> {
    counted(b, |n| format!("{a} - {n} = {}", a - n))
}

fn multiples(of: usize, last: usize) -> Vec<String> {
    counted(last, |n| format!("{n} times {of} = {}", n * of))
}

fn product(rng: &mut Rng) -> Problem {
    let (a, b) = (2 + rng.below(MOST_STEPS - 1), 2 + rng.below(9));
    let (name, things, boxes) = (pick(rng, NAMES), pick(rng, THINGS), pick(rng, BOXES));
    let (groups, each) = (count(a, boxes), count(b, things));
    let question = match rng.below(2) {
        0 => {
            format!("{name} has {groups} with {each} in each. How many {things} are there in all?")
        }
        _ => format!("One of the {boxes} holds {each}. How many {things} do {groups} hold?"),
    };
    let steps = multiples(b, a);
    Problem { key: format!("{a} * {b}"), question, steps, answer: (a * b).to_string() }
}

fn sharing(rng: &mut Rng) -> Problem {
    let (parts, each) = (2 + rng.below(9), 1 + rng.below(MOST_STEPS));
    let whole = parts * each;
    let (name, things, boxes) = (pick(rng, NAMES), pick(rng, THINGS), pick(rng, BOXES));
    let has = count(whole, things);
    let question = match rng.below(2) {
        0 => format!(
            "{name} shares {has} equally among {parts} friends. How many {things} does each friend get?"
        ),
        _ => {
            let groups = count(parts, boxes);
            format!(
                "{name} puts {has} into {groups}, the same number in each. How many {things} are in each?"
            )
        }
    };
    let steps = multiples(parts, each);
    Problem { key: format!("{whole} / {parts}"), question, steps, answer: each.to_string() }
}

fn comparison(rng: &mut Rng) -> Problem {
    let low = 1 + rng.below(14);
    let high = low + 1 + rng.below(MOST_STEPS);
    let (a, b) = if rng.below(2) == 0 { (low, high) } else { (high, low) };
    let ((name, other), things) = (two_names(rng), pick(rng, THINGS));
    let (has_a, has_b) = (count(a, things), count(b, things));
    let (less, more) = if a < b { (name, other) } else { (other, name) };
    let given = format!("{name} has {has_a} and {other} has {has_b}.");
    let first = format!("{high} is more than {low}");
    match rng.below(3) {
        0 => Problem {
            key: format!("{low} < {high}"),
            question: format!("{given} Who has more {things}?"),
            steps: vec![first],
            answer: more.to_owned(),
        },
        1 => Problem {
            key: format!("{low} < {high}"),
            question: format!("{given} Who has fewer {things}?"),
            steps: vec![first],
            answer: less.to_owned(),
        },
        _ => Problem {
            key: format!("{high} - {low}"),
            question: format!("{given} How many more {things} does {more} have than {less}?"),
            steps: counted(high - low, |n| format!("{low} + {n} = {}", low + n)),
            answer: (high - low).to_string(),
        },
    }
}

const PROBLEMS_IN_A_DOCUMENT: usize = 8;

/// The document of a number: problems of one side of the split, each with its solution.
pub(crate) fn document(seed: Seed, held_out_share: f64, number: u64) -> Raw {
    let mut rng = seed.derive("arithmetic").at(number).rng();
    // The first problem decides the side, so that there is at least one problem for it.
    let first = problem(&mut rng);
    let side_of = |problem: &Problem| split::side(seed, held_out_share, &problem.key);
    let side = side_of(&first);
    let mut problems = vec![first];
    while problems.len() < PROBLEMS_IN_A_DOCUMENT {
        let next = problem(&mut rng);
        if side_of(&next) == side {
            problems.push(next);
        }
    }
    let text =
        |problem: &Problem| format!("Question: {}\n{}", problem.question, problem.solution());
    let parts: Vec<String> = problems.iter().map(text).collect();
    Raw {
        url: format!("arithmetic/{number}"),
        place: number.to_string(),
        text: parts.join("\n\n"),
        title: "Arithmetic in words".into(),
        category: Some(Category::Math),
        split: Some(side),
        ..Raw::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// An independent check: evaluates the key.
    fn evaluate(key: &str) -> Option<usize> {
        let mut parts = key.split(' ');
        let (a, op, b) = (parts.next()?, parts.next()?, parts.next()?);
        let (a, b): (usize, usize) = (a.parse().ok()?, b.parse().ok()?);
        match op {
            "+" => Some(a + b),
            "-" => a.checked_sub(b),
            "*" => Some(a * b),
            "/" => (a % b == 0).then(|| a / b),
            _ => None,
        }
    }

    #[test]
    fn answers_are_right_and_every_number_is_small() {
        let mut rng = Seed(1).rng();
        for _ in 0..5_000 {
            let p = problem(&mut rng);
            if p.key.contains('<') {
                let asked_more = p.question.contains("more");
                let words: Vec<&str> = p.question.split(' ').collect();
                let (a, b): (usize, usize) = (words[2].parse().unwrap(), words[7].parse().unwrap());
                let (name, other) = (words[0], words[5]);
                let expected = if (a > b) == asked_more { name } else { other };
                assert_eq!((p.answer.as_str(), a != b), (expected, true), "{p:?}");
            } else {
                assert_eq!(p.answer, evaluate(&p.key).unwrap().to_string(), "{p:?}");
                assert!(p.answer.parse::<usize>().unwrap() <= 60, "{p:?}");
            }
            assert!((1..=MOST_STEPS).contains(&p.steps.len()), "{p:?}");
            for step in p.steps.iter().filter(|step| step.contains('=')) {
                let (left, right) = step.split_once(" = ").unwrap();
                let left = evaluate(&left.replace("times", "*"));
                assert_eq!(left, Some(right.parse().unwrap()), "{p:?}");
            }
        }
    }

    /// What makes problems that were not read answerable: the steps on the way always stand in
    /// other problems too, and the last one does wherever a longer problem exists.
    #[test]
    fn the_steps_of_a_problem_are_steps_of_others() {
        let mut rng = Seed(1).rng();
        let mut keys_of_steps: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let problems: Vec<Problem> = (0..20_000).map(|_| problem(&mut rng)).collect();
        for p in &problems {
            for step in &p.steps {
                keys_of_steps.entry(step.clone()).or_default().insert(p.key.clone());
            }
        }
        let shared = |step: &String| keys_of_steps[step].len() > 1;
        let mut last_shared = 0;
        for p in &problems {
            let (last, on_the_way) = p.steps.split_last().unwrap();
            assert!(on_the_way.iter().all(shared), "{p:?}");
            last_shared += usize::from(shared(last));
        }
        let share = last_shared as f64 / problems.len() as f64;
        assert!(share > 0.6, "the last step stands in other problems in {share} of them");
    }

    #[test]
    fn documents_repeat_by_seed_and_keep_the_keys_apart() {
        assert_eq!(document(Seed(1), 0.1, 5), document(Seed(1), 0.1, 5));
        assert_ne!(document(Seed(1), 0.1, 5).text, document(Seed(2), 0.1, 5).text);
        assert_ne!(document(Seed(1), 0.1, 5).text, document(Seed(1), 0.1, 6).text);
    }
}
