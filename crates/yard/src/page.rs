//! From facts to the finished page.

use crate::chart::lines::{self, Chart};
use crate::facts::{Facts, Labelled, Panel};
use crate::view::{judged, made, summary};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// The page could not be written. The templates are part of the program, so this is a fault of the
/// program and not of the facts.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written")]
pub struct Error(#[from] minijinja::Error);

const TEMPLATES: [(&str, &str); 7] = [
    ("page.html", include_str!("templates/page.html")),
    ("parts.html", include_str!("templates/parts.html")),
    ("chart.html", include_str!("templates/chart.html")),
    ("outcome.html", include_str!("templates/outcome.html")),
    ("red-team.html", include_str!("templates/red-team.html")),
    ("making.html", include_str!("templates/making.html")),
    ("style.css", include_str!("templates/style.css")),
];

#[derive(Serialize)]
struct Page<'a> {
    notice: &'a str,
    summary: summary::Summary,
    samples: Vec<judged::SampleView>,
    judgements: Option<judged::JudgementsView>,
    red_team: Option<judged::RedTeamView>,
    checks: Option<Vec<judged::CheckView>>,
    release: &'a crate::facts::Release,
    stages: Vec<made::StageView>,
    decisions: Vec<made::DecisionView>,
    funnel: Option<made::FunnelView>,
    mixture: Option<made::MixtureView>,
    curves: [Curves; 4],
    interruptions: Vec<made::InterruptionView>,
    lineage: Option<made::LineageView>,
    run: &'a crate::facts::Run,
    model: &'a [Labelled],
    machine: &'a [Labelled],
}

/// The charts of one part of training.
#[derive(Serialize)]
struct Curves {
    title: &'static str,
    charts: Vec<Chart>,
}

/// Writes the report of a run: one HTML file that needs no other file, no script and no network.
///
/// # Errors
/// Only where a template of the program itself is at fault; no content of `facts` leads to one.
pub fn report(facts: &Facts) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(visible(&environment.get_template("page.html")?.render(page(facts))?))
}

fn page(facts: &Facts) -> Page<'_> {
    let curves = |title, panels: &[Panel]| Curves {
        title,
        charts: panels.iter().map(lines::chart).collect(),
    };
    Page {
        notice: &facts.notice,
        summary: summary::summary(facts),
        samples: judged::samples(facts),
        judgements: facts.judgements.as_ref().map(judged::judgements),
        red_team: facts.red_team.as_ref().map(judged::red_team),
        checks: facts.gate.as_ref().map(judged::checks),
        release: &facts.release,
        stages: made::stages(facts),
        decisions: made::decisions(&facts.decisions),
        funnel: facts.funnel.as_ref().map(made::funnel),
        mixture: facts.mixture.as_ref().map(made::mixture),
        curves: [
            curves("Pretraining", &facts.curves.pretraining),
            curves("Supervised fine-tuning", &facts.curves.sft),
            curves("Reward model", &facts.curves.reward),
            curves("Preference optimisation", &facts.curves.dpo),
        ],
        interruptions: made::interruptions(&facts.interruptions),
        lineage: (!facts.lineage.is_empty()).then(|| made::lineage(&facts.lineage)),
        run: &facts.run,
        model: facts.model.as_ref().map_or(&[], |m| &m.form),
        machine: &facts.machine,
    }
}

/// Makes characters visible that would hide or reorder text, or that HTML does not allow. The
/// templates have none of them, so all that are found come from the run.
fn visible(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    for character in page.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' => {
                out.push_str(&format!("⟨U+{:04X}⟩", character as u32));
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        for (text, expected) in [
            ("a\nb\tc é 中", "a\nb\tc é 中"),
            ("\0\x1b[31m\r", "⟨U+0000⟩⟨U+001B⟩[31m⟨U+000D⟩"),
            ("x\u{202e}y", "x⟨U+202E⟩y"),
            ("\u{7f}\u{85}", "⟨U+007F⟩⟨U+0085⟩"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn no_template_switches_escaping_off() {
        for (name, source) in TEMPLATES {
            for forbidden in ["| safe", "|safe", "autoescape", "<script"] {
                assert!(!source.contains(forbidden), "{name} has {forbidden}");
            }
        }
    }
}
