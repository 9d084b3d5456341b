//! Numbers of the stages as the page's figures.

use super::facts::Known;
use crate::error::Result;
use crate::stages::{self, Judged};
use judge::evaluate::Evaluation;
use judge::intervals::Interval;
use judge::redteam::{CampaignReport, TestReport};
use std::collections::BTreeMap;
use train::Record;
use yard::facts::{
    Answer, Baseline, Better, Bound, Check, Curve, Curves, Dropped, Example, Finding, Funnel, Gate,
    Judgements, Measured, Metric, Mixture, Over, Panel, Probe, RedTeam, Reference, Release, Rule,
    Sample, Share, Unit, Verdict, WinRate,
};

/// Prompts that are shown with their answers.
const SAMPLES: usize = 12;
/// Dropped texts that are shown for each rule.
const EXAMPLES: usize = 2;

/// What cleaning dropped.
pub fn funnel(known: &Known<'_>) -> Result<Option<Funnel>> {
    let Some(ledger) = known.json::<corpus::Ledger>(stages::corpus::NAME, "ledger.json")? else {
        return Ok(None);
    };
    let counts = &known.manifests[stages::corpus::NAME].counts;
    let examples: Vec<corpus::Example> = match known.file(stages::corpus::NAME, "examples.jsonl") {
        Some(path) => crate::run::journal::read(&path)?,
        None => Vec::new(),
    };
    let rules = ledger.rules.iter().map(|rule| Rule {
        stage: rule.stage.clone(),
        rule: rule.rule.clone(),
        documents_before: rule.documents_in,
        documents_after: rule.documents_in - rule.documents_dropped.min(rule.documents_in),
        dropped: Dropped { bytes: rule.bytes_dropped, lines: rule.lines_dropped },
        examples: examples
            .iter()
            .filter(|example| example.rule == rule.rule && example.stage == rule.stage)
            .take(EXAMPLES)
            .map(|example| Example {
                document: format!("{} ({})", example.url, example.reason),
                text: example.text.clone(),
            })
            .collect(),
    });
    Ok(Some(Funnel {
        rules: rules.collect(),
        documents_kept: counts.get("documents").copied().unwrap_or(0),
        bytes_kept: counts.get("bytes").copied().unwrap_or(0),
    }))
}

/// What was wanted and what is read.
pub fn mixture(known: &Known<'_>) -> Result<Option<Mixture>> {
    let summary: Option<tokens::mixture::Summary> =
        known.json(stages::mixture::NAME, "mixture.json")?;
    let share = |(category, c): (&base::Category, &tokens::mixture::CategorySummary)| Share {
        category: category.name().to_owned(),
        wanted: c.wanted_share,
        reached: c.reached_share,
        tokens: c.reached_tokens,
        epochs: c.epochs,
        bytes_per_token: c.bytes_per_token,
    };
    Ok(summary.map(|summary| Mixture {
        budget_tokens: summary.budget_tokens,
        max_epochs: known.recipe.mixture.max_epochs,
        shares: summary.categories.iter().map(share).collect(),
    }))
}

/// The curves of all trainings, those that are still going on included.
pub fn curves(known: &Known<'_>) -> Result<Curves> {
    let references = judged(known)?.map_or_else(Vec::new, |judged| {
        vec![
            Reference { name: "zstd -19".into(), value: judged.zstd.bits_per_byte },
            Reference {
                name: "3-gram".into(),
                value: judged.trigram.overall.bits_per_byte.estimate,
            },
        ]
    });
    let pretrain = records(known, stages::pretrain::NAME);
    let mut held_out = panel(
        "held-out text",
        "bits per byte",
        Over::TokensSeen,
        &pretrain,
        &["held-out-bits-per-byte"],
    );
    held_out.references = references;
    let sft = records(known, stages::sft::NAME);
    let reward = records(known, stages::round::REWARD);
    let dpo = records(known, stages::round::DPO);
    Ok(Curves {
        pretraining: vec![
            panel("loss", "nats per token", Over::TokensSeen, &pretrain, &["loss"]),
            held_out,
        ],
        sft: vec![panel("loss", "nats per learned token", Over::Step, &sft, &["loss"])],
        reward: vec![
            panel("loss", "nats per pair", Over::Step, &reward, &["loss"]),
            panel("held-out accuracy", "", Over::Step, &reward, &["held-out-accuracy"]),
        ],
        dpo: vec![
            panel("loss", "nats per pair", Over::Step, &dpo, &["loss"]),
            panel("held-out margin", "", Over::Step, &dpo, &["held-out-margin"]),
            panel(
                "held-out log-probability of an answer",
                "nats",
                Over::Step,
                &dpo,
                &["held-out-chosen-log-prob", "held-out-rejected-log-prob"],
            ),
        ],
    })
}

fn records(known: &Known<'_>, stage: &str) -> Vec<Record> {
    // A training that has not begun has no curve.
    train::read_metrics(&known.run.stage(stage)).unwrap_or_default()
}

fn panel(title: &str, unit: &str, over: Over, records: &[Record], names: &[&str]) -> Panel {
    let value = |record: &Record, name: &str| match name {
        "loss" => Some(record.loss),
        _ => record.evaluation.get(name).or_else(|| record.measures.get(name)).copied(),
    };
    let x = |record: &Record| match over {
        Over::TokensSeen => record.tokens_seen as f64,
        Over::Step => record.step as f64,
    };
    let curve = |name: &&str| Curve {
        name: name.replace('-', " "),
        points: records.iter().filter_map(|r| Some((x(r), value(r, name)?))).collect(),
    };
    Panel {
        title: title.to_owned(),
        unit: unit.to_owned(),
        over,
        curves: names.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect(),
        references: Vec::new(),
    }
}

fn judged(known: &Known<'_>) -> Result<Option<Judged>> {
    known.json(stages::judge::NAME, stages::judge::FILE)
}

/// A few prompts of every task, spread over the items.
pub fn samples(known: &Known<'_>) -> Result<Vec<Sample>> {
    let (Some(judged), Some(file)) =
        (judged(known)?, known.file(stages::questions::NAME, posttrain::derive::HELD_OUT_FILE))
    else {
        return Ok(Vec::new());
    };
    let items = posttrain::derive::read_items(&file)?;
    let mut by_task: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        by_task.entry(&item.task).or_default().push(index);
    }
    let each = SAMPLES.div_ceil(by_task.len().max(1));
    let spread = |indices: &Vec<usize>| -> Vec<usize> {
        let step = (indices.len() / each).max(1);
        indices.iter().step_by(step).take(each).copied().collect()
    };
    let answer = |evaluation: &Evaluation, index: usize| Answer {
        model: evaluation.model.clone(),
        text: evaluation.results[index].prediction.clone(),
        score: Some(evaluation.results[index].partial),
    };
    Ok(by_task
        .values()
        .flat_map(spread)
        .map(|index| Sample {
            task: items[index].task.clone(),
            prompt: items[index].prompt.clone(),
            expected: items[index].answer.clone(),
            answers: judged.answers.iter().map(|evaluation| answer(evaluation, index)).collect(),
        })
        .collect())
}

fn measured(model: &str, interval: &Interval) -> Measured {
    Measured {
        model: model.to_owned(),
        value: interval.estimate,
        low: Some(interval.low),
        high: Some(interval.high),
        count: Some(interval.count),
    }
}

/// The models side by side.
pub fn judgements(known: &Known<'_>) -> Result<Option<Judgements>> {
    let Some(judged) = judged(known)? else { return Ok(None) };
    let mut metrics = vec![bits_metric(&judged)];
    let answers = |name: &str, note: &str, of: &dyn Fn(&Evaluation) -> Interval| Metric {
        name: name.to_owned(),
        unit: Unit::Share,
        better: Better::Higher,
        values: judged.answers.iter().map(|e| measured(&e.model, &of(e))).collect(),
        note: note.to_owned(),
        ..Metric::default()
    };
    metrics.push(answers(
        "exact answers to held-out questions",
        "greedy answers, compared after normalisation",
        &|e| e.overall.exact,
    ));
    metrics.push(answers("token F1 of those answers", "", &|e| e.overall.partial));
    let tasks = judged.answers.first().map(|e| e.tasks.keys().cloned().collect::<Vec<_>>());
    for task in tasks.unwrap_or_default() {
        metrics.push(answers(&format!("exact answers: {task}"), "", &|e| e.tasks[&task].exact));
    }
    metrics.extend(red_team_metrics(known)?);
    let models = judged.answers.iter().map(|e| &e.model);
    let accuracies = models.zip(&judged.preference_accuracy);
    metrics.push(Metric {
        name: "preference accuracy on held-out pairs".into(),
        unit: Unit::Share,
        values: accuracies.map(|(model, interval)| measured(model, interval)).collect(),
        baselines: reward_model(known),
        note:
            "whether the better answer is the more probable one per token; for the reward model, \
               whether it has the greater reward"
                .into(),
        ..Metric::default()
    });
    let preference = &judged.aligned_over_sft.preference;
    Ok(Some(Judgements {
        models: judged.answers.iter().map(|e| e.model.clone()).collect(),
        confidence: Some(0.95),
        metrics,
        win_rates: vec![WinRate {
            model: judged.aligned_over_sft.first.clone(),
            against: judged.aligned_over_sft.second.clone(),
            judge: posttrain::round::verify::JUDGE.into(),
            wins: preference.wins,
            ties: preference.ties,
            losses: preference.losses,
            rate: preference.rate.estimate,
            low: Some(preference.rate.low),
            high: Some(preference.rate.high),
        }],
    }))
}

/// The reward model's accuracy, beside that of the policies.
fn reward_model(known: &Known<'_>) -> Vec<Baseline> {
    let reward = known.manifests.get(stages::round::REWARD);
    let accuracy = reward.and_then(|manifest| manifest.measures.get("held-out-accuracy"));
    accuracy.map(|&value| Baseline { name: "reward model".into(), value }).into_iter().collect()
}

fn bits_metric(judged: &Judged) -> Metric {
    Metric {
        name: "held-out bits per byte".into(),
        unit: Unit::BitsPerByte,
        better: Better::Lower,
        values: judged.bits.iter().map(|b| measured(&b.model, &b.overall.bits_per_byte)).collect(),
        baselines: vec![
            Baseline { name: "zstd -19".into(), value: judged.zstd.bits_per_byte },
            Baseline {
                name: "3-gram".into(),
                value: judged.trigram.overall.bits_per_byte.estimate,
            },
        ],
        headline: Some("base".into()),
        note: "zstd has exactly the text that the model read as its dictionary; the 3-gram model \
               (interpolated, Kneser-Ney) read the same tokens"
            .into(),
    }
}

fn campaigns(known: &Known<'_>) -> Result<Vec<CampaignReport>> {
    let read =
        |name| known.json::<CampaignReport>(stages::redteam::NAME, &format!("{name}/report.json"));
    let all = ["base", "sft", "aligned"].into_iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(all.into_iter().flatten().collect())
}

fn red_team_metrics(known: &Known<'_>) -> Result<Vec<Metric>> {
    let campaigns = campaigns(known)?;
    let metric = |name: &str, of: fn(&CampaignReport) -> Interval| Metric {
        name: name.to_owned(),
        unit: Unit::Share,
        better: Better::Lower,
        values: campaigns.iter().map(|c| measured(&c.model, &of(c))).collect(),
        ..Metric::default()
    };
    Ok(match campaigns.is_empty() {
        true => Vec::new(),
        false => vec![
            metric("attack success rate", |c| c.attack_success_rate),
            metric("over-refusal", |c| c.over_refusal),
        ],
    })
}

/// The campaign against the aligned model.
pub fn red_team(known: &Known<'_>) -> Result<Option<RedTeam>> {
    let Some(report) = campaigns(known)?.pop() else { return Ok(None) };
    let tests: Option<TestReport> =
        known.json(stages::redteam::NAME, "aligned/tests-of-earlier-findings.json")?;
    let tested = tests.map_or_else(String::new, |tests| {
        let failed = tests.results.iter().filter(|result| !result.passed).count();
        format!(
            " It failed {failed} of the {} tests made of earlier findings.",
            tests.results.len()
        )
    });
    let cohort = report.cohort.iter().map(|a| format!("{} ({})", a.name, a.expertise));
    Ok(Some(RedTeam {
        attacker: cohort.collect::<Vec<_>>().join("; "),
        model: report.model.clone(),
        access: format!("{}{tested}", report.access.description),
        probes: report
            .probes
            .iter()
            .map(|probe| Probe {
                name: probe.probe.name().to_owned(),
                tries: probe.goal.clone(),
                attempts: probe.attempts,
                hits: probe.hits,
                low: Some(probe.rate.low),
                high: Some(probe.rate.high),
            })
            .collect(),
        findings: report
            .findings
            .iter()
            .map(|finding| Finding {
                id: finding.id.clone(),
                probe: finding.probe.name().to_owned(),
                prompt: prompt(&finding.prompt),
                answer: finding.answer.clone(),
                test: format!("{} ({:?})", finding.summary, finding.severity).to_lowercase(),
            })
            .collect(),
        over_refusal: Some(measured(&report.model, &report.over_refusal)),
    }))
}

fn prompt(prompt: &judge::Prompt) -> String {
    match prompt {
        judge::Prompt::Text { text } => text.clone(),
        judge::Prompt::Chat { messages } => {
            let turns = messages.iter().map(|m| format!("{}: {}", m.role.name(), m.content));
            turns.collect::<Vec<_>>().join("\n")
        }
    }
}

/// The thresholds.
pub fn gate(known: &Known<'_>) -> Result<Option<Gate>> {
    let check = |check: &judge::gate::Check| Check {
        name: check.name.replace('-', " "),
        unit: if check.name.starts_with("bits") { Unit::BitsPerByte } else { Unit::Share },
        bound: match check.bound {
            judge::gate::Bound::AtLeast => Bound::AtLeast,
            judge::gate::Bound::AtMost => Bound::AtMost,
        },
        threshold: check.threshold,
        measured: check.measured.unwrap_or(f64::NAN),
        passed: check.passed,
    };
    Ok(judged(known)?.map(|judged| Gate { checks: judged.gate.checks.iter().map(check).collect() }))
}

/// What became of the weights.
pub fn release(known: &Known<'_>) -> Result<Release> {
    let Some(release) = crate::stages::release::read(known.run)? else {
        return Ok(Release::default());
    };
    Ok(Release {
        verdict: if release.gate.passed { Verdict::Released } else { Verdict::Refused },
        digest: Some(release.weights),
        directory: release.directory.clone(),
        files: release.files,
    })
}
