//! The page as a reader gets it. The pages are also written to cargo's directory for test files, to be
//! looked at in a browser.

#![allow(clippy::unwrap_used)]

mod demo;

use std::path::Path;
use yard::facts::*;
use yard::report;

fn page(name: &str, facts: &Facts) -> String {
    let page = report(facts).unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}.html"));
    std::fs::write(path, &page).unwrap();
    page
}

/// The page's text between two section ids.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let start = page.find(&format!("<section id=\"{id}\">")).unwrap();
    let end = page[start..].find("</section>").unwrap();
    &page[start..start + end]
}

/// Every tag that opens is closed in its order.
fn check_balanced(page: &str) {
    const VOID: [&str; 7] = ["meta", "br", "!doctype", "line", "rect", "circle", "path"];
    let mut open = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').unwrap() + start;
        let tag = &rest[start + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(
                open.pop(),
                Some(name),
                "near {}",
                &rest[start..(start + 80).min(rest.len())]
            );
        } else if !VOID.contains(&name) {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_stands_alone() {
    let page = page("whole", &demo::facts());
    assert!(page.starts_with("<!doctype html>"));
    for forbidden in
        ["<script", "<link", "<img", "<iframe", "http://", "https://", "@import", "url("]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    check_balanced(&page);
}

#[test]
fn hostile_text_stays_text() {
    let page = page("whole", &demo::facts());
    for escaped in [
        "&lt;&#x2f;script&gt;",
        "&lt;img src",
        "{{ 7 * 7 }}",
        "⟨U+202E⟩",
        "⟨U+001B⟩[31m",
        "⟨U+0000⟩",
    ] {
        assert!(page.contains(escaped), "{escaped}");
    }
}

/// Puts the same hostile text in every string of the tree.
fn poison(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(list) => list.iter_mut().for_each(poison),
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let closed =
                    ["state", "who", "over", "unit", "better", "bound", "verdict", "digest"];
                if key != "weights_digest"
                    && (!closed.contains(&key.as_str()) || !value.is_string())
                {
                    poison(value);
                }
            }
        }
        serde_json::Value::String(text) => *text = "\"'><x-bad y=\"</svg></style>\u{0}&amp;".into(),
        _ => {}
    }
}

#[test]
fn no_field_can_break_the_page() {
    let mut tree = serde_json::to_value(demo::facts()).unwrap();
    poison(&mut tree);
    let poisoned: Facts = serde_json::from_value(tree).unwrap();
    let page = page("poisoned", &poisoned);
    assert!(!page.contains("<x-bad"));
    check_balanced(&page);
}

#[test]
fn a_run_that_has_not_begun_says_so_everywhere() {
    let page = page("empty", &Facts::default());
    check_balanced(&page);
    for id in [
        "samples",
        "judgements",
        "red-team",
        "gate",
        "stages",
        "decisions",
        "documents",
        "mixture",
        "training",
        "lineage",
    ] {
        assert!(section(&page, id).contains("Not yet"), "{id}");
    }
    assert!(page.contains("Not yet decided"));
}

#[test]
fn a_half_done_run_shows_what_is_there() {
    let page = page("half", &demo::half_done());
    check_balanced(&page);
    assert!(page.contains("3 of 9 stages are done."));
    assert!(section(&page, "training").contains("1.420"));
    assert!(section(&page, "judgements").contains("Not yet"));
}

#[test]
fn falling_short_is_said_next_to_the_number() {
    let mut facts = demo::facts();
    let judgements = facts.judgements.as_mut().unwrap();
    judgements.metrics[0].values[0].value = 1.6;
    judgements.metrics[0].values[0].low = Some(1.58);
    judgements.metrics[0].values[0].high = Some(1.62);
    judgements.win_rates[0].low = Some(0.49);
    let check = &mut facts.gate.as_mut().unwrap().checks[0];
    (check.measured, check.passed) = (1.6, false);
    facts.release.verdict = Verdict::Refused;
    let page = page("refused", &facts);
    assert!(section(&page, "judgements").contains("worse than zstd -19"));
    assert!(section(&page, "judgements").contains("the interval includes a half"));
    assert!(section(&page, "mixture").contains("3.3 points short"));
    let top = &page[..page.find("<nav").unwrap()];
    for words in ["Refused", "is 1.600, must be at most 1.420", "worse than zstd -19"] {
        assert!(top.contains(words), "{words}");
    }
}

#[test]
fn figures_that_are_none_break_nothing() {
    let mut facts = demo::facts();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308] {
        for panel in &mut facts.curves.pretraining {
            panel.curves[0].points[3].1 = bad;
            panel.curves[0].points[5].0 = bad;
            panel.references.push(Reference { name: "bad".into(), value: bad });
        }
        let judgements = facts.judgements.as_mut().unwrap();
        judgements.metrics[0].values[1].value = bad;
        judgements.metrics[1].values[1].high = Some(bad);
        judgements.win_rates[0].rate = bad;
        let share = &mut facts.mixture.as_mut().unwrap().shares[0];
        (share.reached, share.epochs) = (bad, bad);
        facts.run.seconds = Some(bad);
        facts.stages[0].seconds = Some(bad);
        facts.gate.as_mut().unwrap().checks[0].measured = bad;
        facts.samples[0].answers[0].score = Some(bad);
        let page = page("not-finite", &facts);
        check_balanced(&page);
        let words = page.split(|c: char| !c.is_ascii_alphabetic());
        for word in words {
            assert!(!["NaN", "inf", "Infinity"].contains(&word), "{bad}: {word}");
        }
        let digits = page.split(|c: char| !c.is_ascii_digit());
        assert!(digits.map(str::len).max() < Some(40), "{bad} is written out");
        assert!(page.contains("not finite, the first at"));
    }
}

#[test]
fn facts_survive_json() {
    let facts = demo::facts();
    let text = serde_json::to_string(&facts).unwrap();
    let read: Facts = serde_json::from_str(&text).unwrap();
    assert_eq!(read, facts);
    assert_eq!(report(&read).unwrap(), report(&facts).unwrap());
    let mut broken = facts;
    broken.curves.pretraining[0].curves[0].points[0].1 = f64::NAN;
    broken.judgements.as_mut().unwrap().win_rates[0].rate = f64::INFINITY;
    let text = serde_json::to_string(&broken).unwrap();
    let read: Facts = serde_json::from_str(&text).unwrap();
    assert!(read.judgements.unwrap().win_rates[0].rate.is_nan());
    assert!(read.curves.pretraining[0].curves[0].points[0].1.is_nan());
}
