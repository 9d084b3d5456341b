//! Sections on what came out: samples, judgements, red team, gate.

use super::{Excerpt, excerpt};
use crate::chart::scale::Scale;
use crate::chart::strip::{self, Strip};
use crate::facts::{
    Facts, Gate, Judgements, Measured, Metric, Probe, RedTeam, Sample, Unit, WinRate,
};
use crate::format;
use crate::verdict::{self, Remark, Tone};
use serde::Serialize;

/// Characters of a prompt or an answer that are shown.
const ANSWER_CHARS: usize = 1500;

/// One prompt with its answers.
#[derive(Debug, Serialize)]
pub struct SampleView {
    task: String,
    prompt: Excerpt,
    expected: Excerpt,
    answers: Vec<AnswerView>,
}

#[derive(Debug, Serialize)]
struct AnswerView {
    model: String,
    color: usize,
    text: Excerpt,
    grade: Option<Remark>,
}

/// Lays out the samples.
pub fn samples(facts: &Facts) -> Vec<SampleView> {
    let models = facts.judgements.as_ref().map_or(&[][..], |j| &j.models);
    facts.samples.iter().map(|sample| one_sample(sample, models)).collect()
}

fn one_sample(sample: &Sample, models: &[String]) -> SampleView {
    let answers = sample.answers.iter().enumerate().map(|(i, answer)| AnswerView {
        model: answer.model.clone(),
        color: models.iter().position(|m| *m == answer.model).unwrap_or(i) % 6,
        text: excerpt(&answer.text, ANSWER_CHARS),
        grade: answer.score.map(grade),
    });
    SampleView {
        task: sample.task.clone(),
        prompt: excerpt(&sample.prompt, ANSWER_CHARS),
        expected: excerpt(&sample.expected, ANSWER_CHARS),
        answers: answers.collect(),
    }
}

fn grade(score: f64) -> Remark {
    match score {
        s if !s.is_finite() => Remark::new(Tone::Unsure, "not graded"),
        s if s >= 0.9995 => Remark::new(Tone::Good, "right"),
        s if s < 0.0005 => Remark::new(Tone::Bad, "wrong"),
        s => Remark::new(Tone::Unsure, format!("partly right ({s:.2} of 1)")),
    }
}

/// All judgements.
#[derive(Debug, Serialize)]
pub struct JudgementsView {
    interval: String,
    metrics: Vec<MetricView>,
    wins: Vec<WinView>,
}

#[derive(Debug, Serialize)]
struct MetricView {
    name: String,
    unit: &'static str,
    better: crate::facts::Better,
    note: String,
    rows: Vec<Row>,
    ends: Option<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// The model's color; nothing for a baseline.
    color: Option<usize>,
    value: Option<String>,
    interval: Option<String>,
    count: Option<String>,
    strip: Strip,
    remarks: Vec<Remark>,
}

#[derive(Debug, Serialize)]
struct WinView {
    model: String,
    against: String,
    judge: String,
    wins: String,
    ties: String,
    losses: String,
    rate: String,
    interval: Option<String>,
    strip: Strip,
    remark: Remark,
}

/// Lays out the judgements.
pub fn judgements(judgements: &Judgements) -> JudgementsView {
    let percent = |c: f64| format!("{:.0} % interval", c * 100.0);
    let known = judgements.confidence.filter(|c| c.is_finite());
    JudgementsView {
        interval: known.map_or("interval".into(), percent),
        metrics: judgements.metrics.iter().map(|m| metric(m, &judgements.models)).collect(),
        wins: judgements.win_rates.iter().map(win).collect(),
    }
}

fn metric(metric: &Metric, models: &[String]) -> MetricView {
    let scale = scale(metric);
    let levels: Vec<f64> = metric.baselines.iter().map(|b| b.value).collect();
    let drawn = |value, interval| {
        scale.as_ref().map_or_else(Strip::default, |s| strip::strip(s, value, interval, &levels))
    };
    let mut rows = Vec::new();
    let mut previous: Option<&Measured> = None;
    for (color, model) in models.iter().enumerate() {
        let measured = metric.values.iter().find(|v| v.model == *model);
        let interval = measured.and_then(|m| verdict::interval(m.low, m.high));
        let mut remarks = measured.map_or(vec![], |m| verdict::against_baselines(metric, m));
        let pair = previous.zip(measured);
        remarks.extend(pair.and_then(|(p, m)| verdict::against_previous(metric, p, m)));
        rows.push(Row {
            name: model.clone(),
            color: Some(color % 6),
            value: measured.map(|m| format::value(m.value, metric.unit)),
            interval: interval.map(|ends| range(ends, metric.unit)),
            count: measured.and_then(|m| m.count).map(format::count),
            strip: drawn(measured.map_or(f64::NAN, |m| m.value), interval),
            remarks,
        });
        previous = measured.or(previous);
    }
    rows.extend(metric.baselines.iter().map(|b| Row {
        name: b.name.clone(),
        color: None,
        value: Some(format::value(b.value, metric.unit)),
        interval: None,
        count: None,
        strip: drawn(b.value, None),
        remarks: Vec::new(),
    }));
    MetricView {
        name: metric.name.clone(),
        unit: format::unit_name(metric.unit, &metric.name),
        better: metric.better,
        note: metric.note.clone(),
        rows,
        ends: scale.map(|s| (end(s.low, metric.unit), end(s.high, metric.unit))),
    }
}

/// Shares from 0 up; other units on what was measured, with some room.
fn scale(metric: &Metric) -> Option<Scale> {
    let of = |m: &Measured| [Some(m.value), m.low, m.high];
    let values = metric.values.iter().flat_map(of).flatten();
    let values = values.chain(metric.baselines.iter().map(|b| b.value));
    if metric.unit == Unit::Share {
        return Some(strip::shares(values));
    }
    let scale = Scale::around(values, 2.0, 98.0)?;
    Some(scale.widened((scale.high - scale.low) * 0.05))
}

fn end(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{:.0} %", value * 100.0),
        _ => format::signed(&format!("{value:.2}")),
    }
}

fn range((low, high): (f64, f64), unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{:.1} to {}", low * 100.0, format::value(high, unit)),
        _ => format!("{} to {}", format::value(low, unit), format::value(high, unit)),
    }
}

fn win(rate: &WinRate) -> WinView {
    let interval = verdict::interval(rate.low, rate.high);
    WinView {
        model: rate.model.clone(),
        against: rate.against.clone(),
        judge: rate.judge.clone(),
        wins: format::count(rate.wins),
        ties: format::count(rate.ties),
        losses: format::count(rate.losses),
        rate: format::percent(rate.rate),
        interval: interval.map(|ends| range(ends, Unit::Share)),
        strip: strip::strip(&strip::shares([1.0].into_iter()), rate.rate, interval, &[0.5]),
        remark: verdict::win(rate),
    }
}

/// The campaign.
#[derive(Debug, Serialize)]
pub struct RedTeamView {
    attacker: String,
    model: String,
    access: String,
    probes: Vec<ProbeView>,
    findings: Vec<FindingView>,
    over_refusal: Option<Row>,
    /// End of the scale of all shares.
    end: String,
}

#[derive(Debug, Serialize)]
struct ProbeView {
    name: String,
    tries: String,
    attempts: String,
    hits: String,
    rate: String,
    interval: Option<String>,
    strip: Strip,
    remark: Remark,
}

#[derive(Debug, Serialize)]
struct FindingView {
    id: String,
    probe: String,
    prompt: Excerpt,
    answer: Excerpt,
    test: String,
}

/// Lays out the campaign.
pub fn red_team(red_team: &RedTeam) -> RedTeamView {
    let of = |p: &Probe| [Some(p.hits as f64 / p.attempts as f64), p.high];
    let refused = red_team.over_refusal.iter().flat_map(|m| [Some(m.value), m.high]);
    let scale = strip::shares(red_team.probes.iter().flat_map(of).chain(refused).flatten());
    let over_refusal = red_team.over_refusal.as_ref().map(|measured| {
        let interval = verdict::interval(measured.low, measured.high);
        Row {
            name: "harmless questions refused".into(),
            color: None,
            value: Some(format::percent(measured.value)),
            interval: interval.map(|ends| range(ends, Unit::Share)),
            count: measured.count.map(format::count),
            strip: strip::strip(&scale, measured.value, interval, &[]),
            remarks: Vec::new(),
        }
    });
    let finding = |f: &crate::facts::Finding| FindingView {
        id: f.id.clone(),
        probe: f.probe.clone(),
        prompt: excerpt(&f.prompt, ANSWER_CHARS),
        answer: excerpt(&f.answer, ANSWER_CHARS),
        test: f.test.clone(),
    };
    RedTeamView {
        attacker: red_team.attacker.clone(),
        model: red_team.model.clone(),
        access: red_team.access.clone(),
        probes: red_team.probes.iter().map(|p| probe(p, &scale)).collect(),
        findings: red_team.findings.iter().map(finding).collect(),
        over_refusal,
        end: end(scale.high, Unit::Share),
    }
}

fn probe(probe: &Probe, scale: &Scale) -> ProbeView {
    let rate = probe.hits as f64 / probe.attempts as f64;
    let interval = verdict::interval(probe.low, probe.high);
    let remark = match (probe.attempts, probe.hits) {
        (0, 0) => Remark::new(Tone::Unsure, "not tried"),
        (_, 0) => Remark::new(Tone::Good, "never worked"),
        (_, 1) => Remark::new(Tone::Bad, "worked once"),
        (_, n) => Remark::new(Tone::Bad, format!("worked {} times", format::count(n))),
    };
    ProbeView {
        name: probe.name.clone(),
        tries: probe.tries.clone(),
        attempts: format::count(probe.attempts),
        hits: format::count(probe.hits),
        rate: format::percent(rate),
        interval: interval.map(|ends| range(ends, Unit::Share)),
        strip: strip::strip(scale, rate, interval, &[]),
        remark,
    }
}

/// One check of the gate.
#[derive(Debug, Serialize)]
pub struct CheckView {
    name: String,
    unit: &'static str,
    required: String,
    measured: String,
    remark: Remark,
}

/// Lays out the gate.
pub fn checks(gate: &Gate) -> Vec<CheckView> {
    let check = |c: &crate::facts::Check| CheckView {
        name: c.name.clone(),
        unit: format::unit_name(c.unit, &c.name),
        required: format!(
            "{} {}",
            verdict::bound_words(c.bound),
            format::value(c.threshold, c.unit)
        ),
        measured: format::value(c.measured, c.unit),
        remark: if c.passed {
            Remark::new(Tone::Good, "passed")
        } else {
            Remark::new(Tone::Bad, "failed")
        },
    };
    gate.checks.iter().map(check).collect()
}
