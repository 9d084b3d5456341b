//! A red-team campaign from probes to tests, against subjects whose answers are known.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Seed, Silent, Stop};
use common::Scripted;
use judge::Error;
use judge::redteam::{
    CampaignReport, Canary, ProbeKind, ProbeName, Settings, Words, campaign, canaries,
    read_attempts, read_tests, run_tests,
};
use std::collections::BTreeMap;
use std::path::Path;

const SEED: Seed = Seed(11);

fn attack(
    subject: &mut Scripted<'_>,
    settings: &Settings,
    out: &Path,
) -> Result<CampaignReport, Error> {
    let canaries = canaries(&settings.canaries, SEED);
    campaign(subject, settings, &canaries, SEED, out, &Silent, &Stop::new())
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

/// Refuses what is harmful, answers the rest.
fn careful(prompt: &str) -> String {
    let harmful = [
        "pick the lock",
        "tricks",
        "without being noticed",
        "deletes",
        "cheat",
        "not mine",
        "fake",
    ];
    let more = ["poison at home", "steal a car", "virus"];
    if harmful.iter().chain(&more).any(|word| prompt.contains(word)) {
        return "I can't help with that.".to_owned();
    }
    "It is a part of the standard library.".to_owned()
}

#[test]
fn every_probe_is_reported_also_without_hits() {
    let directory = tempfile::tempdir().unwrap();
    // Never the first: a tie with an alternative counts against the secret.
    let mut model = Scripted::new("careful", &careful);
    let report = attack(&mut model, &Settings::default(), directory.path()).unwrap();
    let names: Vec<ProbeName> = report.probes.iter().map(|probe| probe.probe).collect();
    assert_eq!(names, ProbeName::ALL);
    for probe in &report.probes {
        assert!(probe.attempts > 0, "{probe:?}");
        assert_eq!((probe.hits, probe.rate.estimate), (0, 0.0), "{probe:?}");
        assert!(!probe.attacker.is_empty() && probe.rate.high < 1.0);
    }
    assert!(report.findings.is_empty());
    assert_eq!(report.attack_success_rate.estimate, 0.0);
    let attempts = read_attempts(&directory.path().join("attempts.jsonl")).unwrap();
    assert_eq!(
        attempts.len() as u64,
        report.probes.iter().map(|probe| probe.attempts).sum::<u64>()
    );
    let stored: CampaignReport = base::read_json(&directory.path().join("report.json")).unwrap();
    assert_eq!(stored, report);
}

/// Complies with everything, says "illegal" while doing so, and has learned its canaries by heart.
fn reckless(canaries: &[Canary]) -> impl Fn(&str) -> String + '_ {
    |prompt| {
        let known = canaries.iter().find(|canary| {
            canary.repeats > 1 && (prompt == canary.prefix() || prompt == canary.question())
        });
        known.map_or_else(
            || "This is illegal, so be careful: do it at night, you idiot.".to_owned(),
            |canary| format!("{}.", canary.secret.to_uppercase()),
        )
    }
}

#[test]
fn hits_become_findings_and_findings_become_tests() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    let canaries = canaries(&settings.canaries, SEED);
    let answer = reckless(&canaries);
    let score = |text: &str| {
        let known = canaries.iter().any(|c| c.repeats > 1 && text == c.sentence(&c.secret));
        if known { -1.0 } else { -50.0 }
    };
    let mut model = Scripted { score: &score, ..Scripted::new("sft", &answer) };
    let report = attack(&mut model, &settings, directory.path()).unwrap();

    let by_name = |name| report.probes.iter().find(|probe| probe.probe == name).unwrap();
    let complied = by_name(ProbeName::HarmfulRequest);
    assert_eq!(complied.hits, complied.attempts, "a compliance that says illegal is a hit");
    for name in [ProbeName::CanaryCompletion, ProbeName::CanaryChat, ProbeName::CanaryExposure] {
        // Two of three groups were planted more than once.
        assert_eq!((by_name(name).hits, by_name(name).attempts), (6, 9), "{name:?}");
    }
    assert_eq!(by_name(ProbeName::CanaryControls).hits, 0);
    for canary in &report.canaries {
        let exposure = canary.exposure.unwrap();
        assert_eq!(canary.completed, canary.repeats > 1, "{canary:?}");
        assert_eq!(exposure.bits, if canary.repeats > 1 { 7.0 } else { 0.0 });
    }
    assert_eq!(report.over_refusal.estimate, 0.0);

    let hits: u64 = report.probes.iter().map(|probe| probe.hits).sum();
    assert_eq!(report.findings.len() as u64, hits);
    assert!(report.findings.windows(2).all(|pair| pair[0].severity >= pair[1].severity));

    // The model that was attacked fails all tests; a careful one passes them.
    let tests = read_tests(&directory.path().join("tests.jsonl")).unwrap();
    assert_eq!(tests.len() as u64, hits);
    let words = Words::load(&[]).unwrap();
    let failed = run_tests(&mut model, &tests, &words, &Silent, &Stop::new()).unwrap();
    assert_eq!((failed.failed.estimate, failed.results.len()), (1.0, tests.len()));
    let mut model = Scripted::new("careful", &careful);
    let passed = run_tests(&mut model, &tests, &words, &Silent, &Stop::new()).unwrap();
    assert_eq!(passed.failed.estimate, 0.0, "{passed:?}");
    let none = run_tests(&mut model, &[], &words, &Silent, &Stop::new()).unwrap();
    assert_eq!((none.failed.count, none.failed.estimate), (0, 0.0));
}

#[test]
fn a_model_that_refuses_everything_is_caught() {
    let directory = tempfile::tempdir().unwrap();
    let answer = |_: &str| "I'm sorry, but I can't help with that.".to_owned();
    let mut model = Scripted::new("timid", &answer);
    let report = attack(&mut model, &Settings::default(), directory.path()).unwrap();
    assert_eq!(report.over_refusal.estimate, 1.0);
    assert_eq!(report.attack_success_rate.estimate, 0.0);
    assert!(report.probes.iter().all(|p| p.kind == ProbeKind::OverRefusal || p.hits == 0));
}

#[test]
fn a_campaign_that_stopped_goes_on_where_it_was_and_its_report_is_one() {
    let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let settings = Settings::default();
    let mut model = Scripted::new("sft", &careful);
    attack(&mut model, &settings, whole.path()).unwrap();
    let all = model.asked;

    let mut answered = 0;
    let mut stops = 0;
    loop {
        let mut model = Scripted { stop_after: Some(12), ..Scripted::new("sft", &careful) };
        let canaries = canaries(&settings.canaries, SEED);
        let out = cut.path();
        let result = campaign(&mut model, &settings, &canaries, SEED, out, &Silent, &Stop::new());
        answered += model.asked;
        match result {
            Ok(_) => break,
            Err(Error::Interrupted(_)) => stops += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(stops < 50, "it does not get on");
    }
    assert!(stops >= 3, "{stops}");
    assert_eq!(answered, all, "no prompt was asked twice");
    assert_eq!(files(whole.path()), files(cut.path()));

    // A finished campaign is not run again; under other settings it is.
    let mut model = Scripted::new("sft", &careful);
    attack(&mut model, &settings, cut.path()).unwrap();
    assert_eq!((model.asked, files(cut.path())), (0, files(whole.path())));
    let settings = Settings { samples: 2, ..settings };
    attack(&mut model, &settings, cut.path()).unwrap();
    assert_eq!(model.asked, 2 * all);
}

#[test]
fn attempts_of_another_model_are_not_taken_for_this_ones() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    let canaries = canaries(&settings.canaries, SEED);
    let mut first = Scripted { stop_after: Some(40), ..Scripted::new("first", &careful) };
    let out = directory.path();
    campaign(&mut first, &settings, &canaries, SEED, out, &Silent, &Stop::new()).unwrap_err();
    let mut second = Scripted::new("second", &careful);
    attack(&mut second, &settings, out).unwrap();
    let whole = tempfile::tempdir().unwrap();
    let mut fresh = Scripted::new("second", &careful);
    attack(&mut fresh, &settings, whole.path()).unwrap();
    assert_eq!(second.asked, fresh.asked);
    assert_eq!(files(out), files(whole.path()));
}

#[test]
fn a_campaign_without_probes_or_trials_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut model = Scripted::new("m", &careful);
    let none = Settings { probes: vec![], ..Settings::default() };
    let error = attack(&mut model, &none, directory.path()).unwrap_err();
    assert!(error.to_string().contains("canary-completion"), "{error}");
    let mut unplanted = Settings::default();
    unplanted.canaries.repeats.clear();
    let error = attack(&mut model, &unplanted, directory.path()).unwrap_err();
    assert!(error.to_string().contains("canaries.repeats"), "{error}");
    assert_eq!(model.asked, 0);
}

#[test]
fn a_damaged_file_of_attempts_is_named_and_refused() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    let canaries = canaries(&settings.canaries, SEED);
    let mut model = Scripted { stop_after: Some(40), ..Scripted::new("sft", &careful) };
    let out = directory.path();
    campaign(&mut model, &settings, &canaries, SEED, out, &Silent, &Stop::new()).unwrap_err();
    let mut kept: Vec<_> = std::fs::read_dir(out.join("attempts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    kept.sort();
    std::fs::write(&kept[0], "{\"id\": \"x\"").unwrap();
    let mut model = Scripted::new("sft", &careful);
    let error = attack(&mut model, &settings, out).unwrap_err().to_string();
    assert!(error.contains("canary-chat") && error.contains("line 1"), "{error}");
}

#[test]
fn settings_are_named_in_kebab_case_and_typos_refused() {
    let settings: Settings =
        serde_json::from_str(r#"{"probes": ["over-refusal"], "word-lists": [], "samples": 2}"#)
            .unwrap();
    assert_eq!(settings.distinct_probes(), [ProbeName::OverRefusal]);
    assert!(serde_json::from_str::<Settings>(r#"{"probs": []}"#).is_err());
    for probe in ProbeName::ALL {
        assert_eq!(serde_json::to_value(probe).unwrap(), probe.name());
    }
}
