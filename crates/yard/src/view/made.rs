//! Sections on how the model was made: stages, decisions, documents, mixture, interruptions, lineage.

use super::{Excerpt, excerpt};
use crate::chart::arcs::{self, Arcs};
use crate::chart::scale::Scale;
use crate::facts::{
    Count, Decision, Facts, Funnel, Interruption, Link, Mixture, Rule, Share, Stage, State, Who,
};
use crate::format;
use crate::verdict::{Remark, Tone};
use serde::Serialize;

/// Characters of a dropped text that are shown.
const EXAMPLE_CHARS: usize = 500;
/// A category's share may differ so much from what was wanted before the page says so.
const SHARE_TOLERANCE: f64 = 0.01;

/// One stage.
#[derive(Debug, Serialize)]
pub struct StageView {
    name: String,
    state: Remark,
    time: Option<String>,
    /// Its part of the time of all stages, in per cent.
    part: f64,
    part_words: String,
    came_in: Vec<String>,
    went_out: Vec<String>,
    note: String,
}

/// Lays out the stages.
pub fn stages(facts: &Facts) -> Vec<StageView> {
    let seconds = |s: &Stage| s.seconds.filter(|t| t.is_finite() && *t > 0.0).unwrap_or(0.0);
    let total: f64 = facts.stages.iter().map(seconds).sum();
    let part = |s: &Stage| if total > 0.0 { seconds(s) / total } else { 0.0 };
    let stage = |s: &Stage| StageView {
        name: s.name.clone(),
        state: match s.state {
            State::NotYet => Remark::new(Tone::Plain, "not yet"),
            State::Unfinished => Remark::new(Tone::Unsure, "unfinished"),
            State::Done => Remark::new(Tone::Good, "done"),
            State::Failed => Remark::new(Tone::Bad, "failed"),
        },
        time: s.seconds.map(format::duration),
        part: (part(s) * 1000.0).round() / 10.0,
        part_words: if seconds(s) > 0.0 {
            format!("{:.0} %", part(s) * 100.0)
        } else {
            String::new()
        },
        came_in: s.came_in.iter().map(count).collect(),
        went_out: s.went_out.iter().map(count).collect(),
        note: s.note.clone(),
    };
    facts.stages.iter().map(stage).collect()
}

fn count(count: &Count) -> String {
    match count.of.as_str() {
        "bytes" => format::bytes(count.number),
        of => format!("{} {of}", format::count(count.number)),
    }
}

/// One decision.
#[derive(Debug, Serialize)]
pub struct DecisionView {
    when: Option<String>,
    who: &'static str,
    name: String,
    what: String,
    chosen: String,
    /// The options that were not chosen.
    others: Vec<String>,
    reason: String,
}

/// Lays out the decisions.
pub fn decisions(decisions: &[Decision]) -> Vec<DecisionView> {
    let decision = |d: &Decision| DecisionView {
        when: d.when.map(format::time),
        who: match d.who {
            Who::Person => "person",
            Who::Rule => "rule",
            Who::Gate => "gate",
        },
        name: d.name.clone(),
        what: d.what.clone(),
        chosen: d.chosen.clone(),
        others: d.options.iter().filter(|o| **o != d.chosen).cloned().collect(),
        reason: d.reason.clone(),
    };
    decisions.iter().map(decision).collect()
}

/// The funnel.
#[derive(Debug, Serialize)]
pub struct FunnelView {
    words: String,
    rules: Vec<RuleView>,
}

#[derive(Debug, Serialize)]
struct RuleView {
    /// The step's name, where it begins.
    stage: String,
    rule: String,
    before: String,
    dropped: String,
    after: String,
    lines: String,
    bytes: String,
    /// Documents left, in per cent of those that reached the first rule.
    left: f64,
    /// Documents dropped, in the same measure.
    lost: f64,
    /// It dropped nothing.
    idle: bool,
    examples: Vec<ExampleView>,
}

#[derive(Debug, Serialize)]
struct ExampleView {
    document: String,
    text: Excerpt,
}

/// Lays out the funnel.
pub fn funnel(funnel: &Funnel) -> FunnelView {
    let read = funnel.rules.iter().map(|r| r.documents_before.max(r.documents_after)).max();
    let read = read.unwrap_or(funnel.documents_kept).max(1);
    let kept = funnel.documents_kept as f64 / read as f64;
    let mut words = format!(
        "{} of {} documents are left ({}), {} of text.",
        format::count(funnel.documents_kept),
        format::count(read),
        format::percent(kept),
        format::bytes(funnel.bytes_kept)
    );
    let dropped = |r: &&Rule| r.documents_before.saturating_sub(r.documents_after);
    if let Some(most) = funnel.rules.iter().max_by_key(dropped).filter(|r| dropped(r) > 0) {
        let number = format::count(dropped(&most));
        words.push_str(&format!(" The rule “{}” dropped the most: {number}.", most.rule));
    }
    let mut stage = "";
    let mut rules = Vec::new();
    for rule in &funnel.rules {
        let begins = rule.stage != stage;
        stage = &rule.stage;
        rules.push(one_rule(rule, read, begins));
    }
    FunnelView { words, rules }
}

fn one_rule(rule: &Rule, read: u64, begins: bool) -> RuleView {
    let dropped = rule.documents_before.saturating_sub(rule.documents_after);
    let part = |documents: u64| (documents as f64 / read as f64 * 1000.0).round() / 10.0;
    let or_none = |n: u64, text: String| if n == 0 { format::NONE.into() } else { text };
    let example = |e: &crate::facts::Example| ExampleView {
        document: e.document.clone(),
        text: excerpt(&e.text, EXAMPLE_CHARS),
    };
    RuleView {
        stage: if begins { rule.stage.clone() } else { String::new() },
        rule: rule.rule.clone(),
        before: format::count(rule.documents_before),
        dropped: or_none(dropped, format::count(dropped)),
        after: format::count(rule.documents_after),
        lines: or_none(rule.dropped.lines, format::count(rule.dropped.lines)),
        bytes: or_none(rule.dropped.bytes, format::bytes(rule.dropped.bytes)),
        left: part(rule.documents_after),
        lost: part(dropped),
        idle: dropped == 0 && rule.dropped.lines == 0 && rule.dropped.bytes == 0,
        examples: rule.examples.iter().map(example).collect(),
    }
}

/// The mixture.
#[derive(Debug, Serialize)]
pub struct MixtureView {
    words: Remark,
    shares: Vec<ShareView>,
}

#[derive(Debug, Serialize)]
struct ShareView {
    category: String,
    wanted: String,
    reached: String,
    wanted_at: Option<f64>,
    reached_to: Option<f64>,
    tokens: String,
    epochs: String,
    bytes_per_token: String,
    remarks: Vec<Remark>,
}

/// Lays out the mixture.
pub fn mixture(mixture: &Mixture) -> MixtureView {
    let tokens = mixture.shares.iter().fold(0u64, |sum, s| sum.saturating_add(s.tokens));
    let (got, wanted) = (format::count(tokens), format::count(mixture.budget_tokens));
    let words = if (tokens as f64) < 0.99 * mixture.budget_tokens as f64 {
        let words = format!("{got} tokens: short of the {wanted} that were wanted.");
        Remark::new(Tone::Bad, words)
    } else {
        Remark::new(Tone::Plain, format!("{got} tokens; {wanted} were wanted."))
    };
    let shares = mixture.shares.iter();
    let largest = shares.flat_map(|s| [s.wanted, s.reached]).filter(|v| v.is_finite());
    let high = largest.fold(0.05, f64::max);
    let scale = Scale { low: 0.0, high, from: 0.0, to: 98.0 };
    let shares = mixture.shares.iter().map(|s| share(s, &scale, mixture.max_epochs)).collect();
    MixtureView { words, shares }
}

fn share(share: &Share, scale: &Scale, max_epochs: f64) -> ShareView {
    let place = |v: f64| v.is_finite().then(|| scale.held(v));
    let number = |v: f64| if v.abs() < 1e5 { format!("{v:.2}") } else { format::short(v) };
    let mut remarks = Vec::new();
    let difference = share.reached - share.wanted;
    if difference.is_nan() || difference.abs() > SHARE_TOLERANCE {
        let points = format!("{:.1} points", difference.abs() * 100.0);
        remarks.push(if !(0.0..=1.0).contains(&share.reached) {
            Remark::new(Tone::Bad, "the reached share is not a share")
        } else if difference < 0.0 {
            Remark::new(Tone::Bad, format!("{points} short"))
        } else {
            Remark::new(Tone::Unsure, format!("{points} over"))
        });
    }
    if max_epochs > 0.0 && share.epochs >= max_epochs * 0.999 {
        remarks.push(Remark::new(Tone::Plain, format!("repeats at the cap of {max_epochs}")));
    }
    ShareView {
        category: share.category.clone(),
        wanted: format::percent(share.wanted),
        reached: format::percent(share.reached),
        wanted_at: place(share.wanted),
        reached_to: place(share.reached),
        tokens: format::count(share.tokens),
        epochs: number(share.epochs),
        bytes_per_token: number(share.bytes_per_token),
        remarks,
    }
}

/// One interruption.
#[derive(Debug, Serialize)]
pub struct InterruptionView {
    when: Option<String>,
    cause: String,
    stage: String,
    resumed_from: String,
    lost: Option<String>,
}

/// Lays out the interruptions.
pub fn interruptions(interruptions: &[Interruption]) -> Vec<InterruptionView> {
    let one = |i: &Interruption| InterruptionView {
        when: i.when.map(format::time),
        cause: i.cause.clone(),
        stage: i.stage.clone(),
        resumed_from: i.resumed_from.clone(),
        lost: i.lost_seconds.map(format::duration),
    };
    interruptions.iter().map(one).collect()
}

/// The lineage.
#[derive(Debug, Serialize)]
pub struct LineageView {
    arcs: Arcs,
    links: Vec<LinkView>,
}

#[derive(Debug, Serialize)]
struct LinkView {
    stage: String,
    short: Option<String>,
    digest: Option<String>,
    inputs: Vec<InputView>,
    /// What it reads, in a few words.
    reads: String,
}

#[derive(Debug, Serialize)]
struct InputView {
    name: String,
    digest: Option<String>,
    from: Option<String>,
}

/// Lays out the lineage.
pub fn lineage(links: &[Link]) -> LineageView {
    let link = |link: &Link| {
        let inputs = link.inputs.iter().map(|input| InputView {
            name: input.name.clone(),
            digest: input.digest.map(|d| d.to_string()),
            from: arcs::origin(input, links).map(|i| links[i].stage.clone()),
        });
        let inputs: Vec<InputView> = inputs.collect();
        LinkView {
            stage: link.stage.clone(),
            short: link.digest.map(|d| d.short()),
            digest: link.digest.map(|d| d.to_string()),
            reads: reads(&inputs),
            inputs,
        }
    };
    LineageView { arcs: arcs::arcs(links), links: links.iter().map(link).collect() }
}

/// The stages that were read from, in the order of the inputs, and the number of other inputs.
fn reads(inputs: &[InputView]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for stage in inputs.iter().filter_map(|i| i.from.as_ref()) {
        if !parts.contains(stage) {
            parts.push(stage.clone());
        }
    }
    match inputs.iter().filter(|i| i.from.is_none()).count() {
        0 => {}
        1 => parts.push("1 input from outside".into()),
        n => parts.push(format!("{n} inputs from outside")),
    }
    parts.join(", ")
}
