//! Stage 8: the campaign against the base, the SFT and the aligned model; what it finds in one
//! becomes a test of the next.

use super::models::{Models, Speaker};
use super::{ALGORITHM, Relay};
use crate::error::Result;
use crate::progress::count;
use crate::run::{Finished, Yield};
use judge::redteam::{CampaignReport, TestRecord, Words, campaign, read_tests, run_tests};
use std::collections::BTreeMap;

/// The stage's name.
pub const NAME: &str = "08-redteam";

impl Relay<'_> {
    /// Attacks every model.
    pub fn redteam(&self, tokenizer: &Finished, models: &Models<'_>) -> Result<Finished> {
        let settings = &self.recipe.redteam;
        let canaries = self.canaries();
        let inputs = [tokenizer, models.base, models.sft, models.aligned];
        self.perform(NAME, ALGORITHM, &(settings, &canaries), &inputs, |out, seed| {
            let words = Words::load(&settings.word_lists)?;
            let mut outputs = Vec::new();
            let mut measures = BTreeMap::new();
            let mut counts = BTreeMap::new();
            let mut earlier: Vec<TestRecord> = Vec::new();
            let mut summary = Vec::new();
            for (name, stage) in models.all() {
                let speaker = Speaker::load(&stage.directory, &tokenizer.directory)?;
                let mut subject = speaker.model(name, &self.pool);
                let at = out.join(name);
                let report =
                    campaign(&mut subject, settings, &canaries, seed, &at, self.screen, self.stop)?;
                let tested = run_tests(&mut subject, &earlier, &words, self.screen, self.stop)?;
                base::write_json(&at.join("tests-of-earlier-findings.json"), &tested)?;
                earlier.extend(read_tests(&at.join("tests.jsonl"))?);
                summary.push(line(&report));
                let rate = report.attack_success_rate.estimate;
                measures.insert(format!("{name}-attack-success-rate"), rate);
                measures.insert(format!("{name}-over-refusal"), report.over_refusal.estimate);
                measures.insert(format!("{name}-failed-tests"), tested.failed.estimate);
                counts.insert(
                    format!("{name}-attempts"),
                    report.probes.iter().map(|p| p.attempts).sum(),
                );
                counts.insert(format!("{name}-findings"), report.findings.len() as u64);
                let files = ["attempts.jsonl", "findings.json", "tests.jsonl", "report.json"];
                outputs.extend(files.map(|file| format!("{name}/{file}")));
                outputs.push(format!("{name}/tests-of-earlier-findings.json"));
            }
            Ok(Yield { outputs, counts, measures, summary: summary.join("; ") })
        })
    }
}

fn line(report: &CampaignReport) -> String {
    let rate = report.attack_success_rate;
    let hits = (rate.estimate * rate.count as f64).round() as u64;
    format!("{} {} of {} attacks hit", report.model, count(hits), count(rate.count))
}
