//! The top of the page: what model, released or not, and a handful of key figures.

use crate::facts::{Facts, Measured, Metric, State};
use crate::format;
use crate::verdict::{self, Remark, Tone};
use serde::Serialize;

/// The top of the page.
#[derive(Debug, Serialize)]
pub struct Summary {
    name: String,
    purpose: String,
    verdict: Remark,
    why: String,
    cards: Vec<Card>,
    dates: Vec<String>,
    chat_command: String,
    digest: Option<String>,
}

#[derive(Debug, Serialize)]
struct Card {
    label: String,
    value: String,
    unit: &'static str,
    remarks: Vec<Remark>,
    known: Known,
}

/// Whether a card has its figure.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Known {
    Yes,
    NotYet,
}

/// Sums a run up.
pub fn summary(facts: &Facts) -> Summary {
    let done = facts.stages.iter().filter(|s| s.state == State::Done).count();
    let stages = (done, facts.stages.len());
    let (verdict, why) = verdict::release(facts.release.verdict, facts.gate.as_ref(), stages);
    let time = |label: &str, at: Option<i64>| at.map(|t| format!("{label} {}", format::time(t)));
    let run = &facts.run;
    let mut cards = vec![model(facts)];
    cards.extend(metrics(facts));
    cards.extend([preferred(facts), attacked(facts), spent(facts, done)]);
    Summary {
        name: if run.name.is_empty() { "A run without a name".into() } else { run.name.clone() },
        purpose: run.purpose.clone(),
        verdict,
        why,
        cards,
        dates: [time("begun", run.started), time("ended", run.ended)]
            .into_iter()
            .flatten()
            .collect(),
        chat_command: run.chat_command.clone(),
        digest: facts.release.digest.or(run.weights_digest).map(|d| d.to_string()),
    }
}

fn card(label: impl Into<String>, value: impl Into<String>) -> Card {
    Card {
        label: label.into(),
        value: value.into(),
        unit: "",
        remarks: Vec::new(),
        known: Known::Yes,
    }
}

impl Card {
    fn with(mut self, remarks: impl IntoIterator<Item = Remark>) -> Self {
        self.remarks.extend(remarks);
        self
    }
}

fn plain(text: String) -> Remark {
    Remark::new(Tone::Plain, text)
}

fn not_yet(label: &str) -> Card {
    Card { known: Known::NotYet, ..card(label, "not yet") }
}

fn model(facts: &Facts) -> Card {
    let Some(model) = &facts.model else { return not_yet("Size of the model") };
    let mut card = card("Size of the model", format::short(model.parameters as f64))
        .with([plain(format!("read {} tokens", format::short(model.tokens_seen as f64)))]);
    card.unit = "parameters";
    card
}

fn metrics(facts: &Facts) -> Vec<Card> {
    let Some(judgements) = &facts.judgements else { return vec![not_yet("Judgements")] };
    let of = |metric: &Metric, model: &String| -> Option<Measured> {
        metric.values.iter().find(|v| v.model == *model).cloned()
    };
    let shown = |metric: &Metric| {
        let order: Vec<Measured> =
            judgements.models.iter().filter_map(|model| of(metric, model)).collect();
        let chosen = match &metric.headline {
            Some(model) => order.iter().position(|m| m.model == *model),
            None => order.len().checked_sub(1),
        };
        let Some(at) = chosen else { return not_yet(&metric.name) };
        let mut card = card(&metric.name, format::value(order[at].value, metric.unit))
            .with([plain(format!("{} model", order[at].model))])
            .with(verdict::against_baselines(metric, &order[at]));
        card.unit = format::unit_name(metric.unit, &metric.name);
        // The first model is the one that all others came from: the longest way to compare.
        let previous = order.first().filter(|_| at > 0);
        card.with(previous.and_then(|p| verdict::against_previous(metric, p, &order[at])))
    };
    judgements.metrics.iter().take(2).map(shown).collect()
}

fn preferred(facts: &Facts) -> Card {
    let rates = facts.judgements.as_ref().map(|j| &j.win_rates);
    let Some(rate) = rates.and_then(|r| r.first()) else { return not_yet("Preferred answers") };
    card(format!("{} preferred over {}", rate.model, rate.against), format::percent(rate.rate))
        .with([verdict::win(rate)])
}

fn attacked(facts: &Facts) -> Card {
    let Some(red_team) = &facts.red_team else { return not_yet("Attacks that worked") };
    let sum = |of: fn(&crate::facts::Probe) -> u64| {
        red_team.probes.iter().fold(0u64, |sum, probe| sum.saturating_add(of(probe)))
    };
    let (attempts, hits) = (sum(|p| p.attempts), sum(|p| p.hits));
    let tone = if hits == 0 { Tone::Plain } else { Tone::Bad };
    let probes = red_team.probes.iter().filter(|p| p.hits > 0).count();
    let words = format!("{probes} of {} probes found something", red_team.probes.len());
    card("Attacks that worked", format::count(hits))
        .with([plain(format!("of {} tried", format::count(attempts))), Remark::new(tone, words)])
}

fn spent(facts: &Facts, done: usize) -> Card {
    let all = facts.stages.len();
    let tone = if done == all { Tone::Plain } else { Tone::Unsure };
    let cut = match facts.interruptions.len() {
        0 => "never cut off".into(),
        1 => "cut off once".into(),
        n => format!("cut off {n} times"),
    };
    card("Time spent", facts.run.seconds.map_or(format::NONE.into(), format::duration))
        .with([Remark::new(tone, format!("{done} of {all} stages done")), plain(cut)])
}
