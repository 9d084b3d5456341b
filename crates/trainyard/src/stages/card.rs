//! The model card: what the model is, how good it is, and where it comes from.

use super::models::{Models, Speaker};
use super::{Judged, Relay};
use crate::progress::count;
use base::Digest;
use judge::intervals::Interval;
use std::fmt::Write;

/// The card as Markdown, with the front matter that model hubs read.
pub fn card(
    relay: &Relay<'_>,
    models: &Models<'_>,
    judged: &Judged,
    weights: Digest,
    speaker: &Speaker,
) -> String {
    let recipe = relay.recipe;
    let config = speaker.weights.config();
    let verdict = if judged.gate.passed { "released" } else { "refused by its gate: do not use" };
    let mut text = format!(
        "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags: [trainyard]\n---\n\n\
         # {}\n\n{}\n\nThese weights were **{verdict}**.\n\n\
         | | |\n|---|---|\n| parameters | {} |\n| layers, width, heads | {}, {}, {} |\n\
         | context | {} tokens |\n| weights digest | `{weights}` |\n| seed | {} |\n\n",
        recipe.name,
        recipe.description,
        count(config.num_parameters() as u64),
        config.num_layers,
        config.d_model,
        config.num_heads,
        config.max_seq_len,
        recipe.seed
    );
    text.push_str(
        "## Judgements (95% intervals)\n\n| | base | SFT | aligned |\n|---|---|---|---|\n",
    );
    row(&mut text, "held-out bits per byte", judged.bits.iter().map(|b| b.overall.bits_per_byte));
    row(&mut text, "exact answers", judged.answers.iter().map(|e| e.overall.exact));
    row(&mut text, "token F1", judged.answers.iter().map(|e| e.overall.partial));
    let wins = cell(judged.aligned_over_sft.preference.rate);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nOn the same held-out text zstd -19 with the read text as its dictionary needs {:.3} bits \
         per byte, an interpolated 3-gram model of the same tokens {:.3}. A verifier that knows the \
         right answers prefers the aligned model to the SFT model with a rate of {wins}.\n\n\
         ## Gate\n\n",
        judged.zstd.bits_per_byte, judged.trigram.overall.bits_per_byte.estimate
    );
    for check in &judged.gate.checks {
        let mark = if check.passed { "passed" } else { "**failed**" };
        let _ = writeln!(text, "- {mark}: {}", super::release::describe(check));
    }
    text.push_str("\n## Lineage\n\n| stage | manifest | inputs |\n|---|---|---|\n");
    for (name, stage) in models.all() {
        let manifest = &stage.manifest;
        let inputs: Vec<_> = manifest
            .inputs
            .iter()
            .map(|(name, digest)| format!("{name} `{}`", digest.short()))
            .collect();
        let _ = writeln!(
            text,
            "| {name}: {} | `{}` | {} |",
            manifest.stage,
            stage.digest().short(),
            inputs.join(", ")
        );
    }
    text.push_str("\n## Sources\n\n");
    for source in &recipe.corpus.sources {
        let licence = if source.licence.is_empty() { "not stated" } else { &source.licence };
        let _ = writeln!(text, "- {} (licence: {licence})", source.name);
    }
    text
}

fn row(text: &mut String, name: &str, values: impl Iterator<Item = Interval>) {
    let cells: Vec<_> = values.map(cell).collect();
    let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
}

fn cell(interval: Interval) -> String {
    format!("{:.3} ({:.3} to {:.3})", interval.estimate, interval.low, interval.high)
}
