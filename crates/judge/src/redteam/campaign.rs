//! Running a campaign: probe by probe, each probe's attempts kept as soon as they are made.

use crate::Error;
use crate::answer::{Ask, Subject, answers};
use crate::redteam::attempt::{Attempt, read_lines, write_lines};
use crate::redteam::finding::{exposure, findings, tests};
use crate::redteam::probe::{Trial, trials};
use crate::redteam::report::{CampaignReport, attacker, report};
use crate::redteam::{Canary, Detector, ProbeName, Settings, Words};
use base::{FsError, Hasher, Observer, Progress, Seed, Stop};
use std::path::{Path, PathBuf};

/// Everything that one campaign is about.
struct Campaign<'a> {
    settings: &'a Settings,
    canaries: &'a [Canary],
    words: Words,
    seed: Seed,
    /// Where the attempts of finished probes lie while the campaign runs.
    kept: PathBuf,
    observer: &'a dyn Observer,
    stop: &'a Stop,
}

/// Attacks a model and writes `attempts.jsonl`, `findings.json`, `tests.jsonl` (the findings as tests)
/// and `report.json` into `out`. Called again after an interruption, it goes on with the first probe
/// that was not finished; attempts against other weights or under other settings are made anew.
///
/// # Errors
/// The settings name no probe, or one that has nothing to try; a word list is of no use; the model
/// cannot answer; a file cannot be written; or the work was stopped.
pub fn campaign(
    subject: &mut dyn Subject,
    settings: &Settings,
    canaries: &[Canary],
    seed: Seed,
    out: &Path,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<CampaignReport, Error> {
    if settings.probes.is_empty() {
        let known = ProbeName::ALL.map(ProbeName::name).join(", ");
        return Err(Error::NoProbes { known });
    }
    let words = Words::load(&settings.word_lists)?;
    let kept = out.join("attempts");
    let run = Campaign { settings, canaries, words, seed, kept, observer, stop };
    let attempts = run.attempts(subject)?;

    let model = subject.name().to_owned();
    let findings = findings(&model, &attempts, canaries);
    let tests = tests(&model, &attempts, &settings.sampling, seed);
    let report = report(&model, settings, canaries, &attempts, findings)?;
    write_lines(&out.join("attempts.jsonl"), &attempts)?;
    base::write_json(&out.join("findings.json"), &report.findings)?;
    write_lines(&out.join("tests.jsonl"), &tests)?;
    base::write_json(&out.join("report.json"), &report)?;
    // All is in one file now; what was kept probe by probe has served.
    std::fs::remove_dir_all(&run.kept).map_err(FsError::io("remove", &run.kept))?;
    Ok(report)
}

impl Campaign<'_> {
    /// The attempts of all probes, in the settings' order.
    fn attempts(&self, subject: &mut dyn Subject) -> Result<Vec<Attempt>, Error> {
        let names = self.settings.distinct_probes().into_iter();
        let planned: Vec<(ProbeName, Vec<Trial>)> =
            names.map(|name| (name, self.trials(name))).collect();
        if let Some((name, _)) = planned.iter().find(|(_, trials)| trials.is_empty()) {
            return Err(Error::EmptyProbe { probe: name.name(), reason: name.needs() });
        }
        let total = planned.iter().map(|(_, trials)| trials.len() as u64).sum();
        let mut out: Vec<Attempt> = Vec::new();
        for (name, trials) in planned {
            self.stop.check()?;
            let path = self.path_of(name, &trials, subject)?;
            let attempts = if path.exists() {
                read_lines(&path)?
            } else {
                let attempts = self.probe(name, &trials, subject)?;
                write_lines(&path, &attempts)?;
                attempts
            };
            out.extend(attempts);
            self.observer.progress(Progress {
                done: out.len() as u64,
                total: Some(total),
                unit: "attempts",
                detail: format!("{} {}", subject.name(), name.name()),
            });
        }
        Ok(out)
    }

    /// A probe's trials, each as often as the settings say (scores do not vary, so once).
    fn trials(&self, name: ProbeName) -> Vec<Trial> {
        let once = trials(name, self.settings, self.canaries, self.seed);
        let repeat = |trial: Trial| match trial.detector {
            Detector::FirstRank { .. } => vec![trial],
            _ => vec![trial; self.settings.samples.max(1)],
        };
        once.into_iter().flat_map(repeat).collect()
    }

    /// The file of a probe's attempts. Its name holds the digest of all that decides them, so attempts
    /// of another model or other settings are never taken for these.
    fn path_of(
        &self,
        name: ProbeName,
        trials: &[Trial],
        subject: &dyn Subject,
    ) -> Result<PathBuf, Error> {
        let unnamed = self.kept.join(name.name());
        let json = |source| FsError::Json { path: unnamed.clone(), source };
        let decided = serde_json::to_vec(&(trials, &self.settings, self.seed)).map_err(json)?;
        let mut hasher = Hasher::new();
        hasher.field(&subject.digest().0).field(subject.name().as_bytes()).field(&decided);
        Ok(self.kept.join(format!("{}.{}.jsonl", name.name(), hasher.finish().short())))
    }

    fn probe(
        &self,
        name: ProbeName,
        trials: &[Trial],
        subject: &mut dyn Subject,
    ) -> Result<Vec<Attempt>, Error> {
        let seed = self.seed.derive(name.name());
        let mut attempts = Vec::with_capacity(trials.len());
        let mut asks = Vec::new();
        for (number, trial) in trials.iter().enumerate() {
            let id = format!("{}-{:02}", name.name(), number + 1);
            if matches!(trial.detector, Detector::FirstRank { .. }) {
                self.stop.check()?;
            } else {
                let prompt = trial.prompt.clone();
                asks.push(Ask { item: id.clone(), prompt, seed: seed.at(number as u64) });
            }
            let exposure = exposure(subject, &trial.detector, self.stop)?;
            attempts.push(Attempt {
                id,
                probe: name,
                attacker: attacker(self.settings, name),
                prompt: trial.prompt.clone(),
                answer: String::new(),
                finish: None,
                detector: trial.detector.clone(),
                hit: exposure.is_some_and(|exposure| exposure.rank == 1),
                canary: trial.canary.clone(),
                exposure,
            });
        }
        let sampling = &self.settings.sampling;
        let answers = answers(subject, &asks, sampling, &base::Silent, self.stop)?;
        let asked = attempts
            .iter_mut()
            .filter(|attempt| !matches!(attempt.detector, Detector::FirstRank { .. }));
        for (attempt, answer) in asked.zip(answers) {
            attempt.hit = attempt.detector.is_hit(&answer, &self.words);
            attempt.finish = Some(answer.finish);
            attempt.answer = answer.text;
        }
        Ok(attempts)
    }
}
