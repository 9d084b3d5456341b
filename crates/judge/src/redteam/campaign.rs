//! Running a campaign: probe by probe, each probe's attempts kept as soon as they are made.

use crate::Error;
use crate::answer::{Ask, Subject, answers};
use crate::redteam::attempt::{Attempt, read_lines, write_lines};
use crate::redteam::finding::{exposure, findings, tests};
use crate::redteam::probe::{Trial, trials};
use crate::redteam::report::{CampaignReport, attacker, report};
use crate::redteam::{Canary, Detector, ProbeName, Settings, Words};
use base::{Digest, FsError, Hasher, Observer, Progress, Seed, Stop};
use std::path::{Path, PathBuf};

/// Everything that one campaign is about.
struct Campaign<'a> {
    settings: &'a Settings,
    words: Words,
    seed: Seed,
    /// The probes with what each one tries.
    planned: Vec<(ProbeName, Vec<Trial>)>,
    /// Where the attempts of finished probes lie while the campaign runs.
    kept: PathBuf,
    observer: &'a dyn Observer,
    stop: &'a Stop,
}

/// Attacks a model and writes `attempts.jsonl`, `findings.json`, `tests.jsonl` (the findings as tests)
/// and, last, `report.json` into `out`. Called again after an interruption, it goes on with the first
/// probe that was not finished, and a finished campaign is not run again; attempts against other weights
/// or under other settings are made anew.
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
    let planned = plan(settings, canaries, seed)?;
    let words = Words::load(&settings.word_lists)?;
    let kept = out.join("attempts");
    let run = Campaign { settings, words, seed, planned, kept, observer, stop };
    let key = run.key(subject, canaries)?;
    let path = out.join("report.json");
    if let Some(report) = finished(&path, key)? {
        run.forget_kept()?;
        return Ok(report);
    }
    let attempts = run.attempts(subject, key)?;

    let model = subject.name().to_owned();
    let findings = findings(&model, &attempts, canaries);
    let tests = tests(&model, &attempts, &settings.sampling, seed);
    let report = report(&model, key, settings, canaries, &attempts, findings)?;
    write_lines(&out.join("attempts.jsonl"), &attempts)?;
    base::write_json(&out.join("findings.json"), &report.findings)?;
    write_lines(&out.join("tests.jsonl"), &tests)?;
    base::write_json(&path, &report)?;
    run.forget_kept()?;
    Ok(report)
}

/// The probes of the settings with their trials.
fn plan(
    settings: &Settings,
    canaries: &[Canary],
    seed: Seed,
) -> Result<Vec<(ProbeName, Vec<Trial>)>, Error> {
    let names = settings.distinct_probes();
    if names.is_empty() {
        let known = ProbeName::ALL.map(ProbeName::name).join(", ");
        return Err(Error::NoProbes { known });
    }
    // Scores do not vary, so a rank is measured once; an answer as often as the settings say.
    let repeat = |trial: Trial| match trial.detector {
        Detector::FirstRank { .. } => vec![trial],
        _ => vec![trial; settings.samples.max(1)],
    };
    let all = |name| trials(name, settings, canaries, seed).into_iter().flat_map(repeat).collect();
    let planned: Vec<(ProbeName, Vec<Trial>)> =
        names.into_iter().map(|name| (name, all(name))).collect();
    match planned.iter().find(|(_, trials)| trials.is_empty()) {
        Some((name, _)) => Err(Error::EmptyProbe { probe: name.name(), reason: name.needs() }),
        None => Ok(planned),
    }
}

/// The report of this very campaign, where it was finished before. A report of another one, also of
/// another form, is none.
fn finished(path: &Path, key: Digest) -> Result<Option<CampaignReport>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    let report: Option<CampaignReport> = serde_json::from_slice(&base::read(path)?).ok();
    Ok(report.filter(|report| report.key == key))
}

impl Campaign<'_> {
    /// Digest of all that decides the attempts: model, trials, settings, words and seed. What was kept
    /// of another model or under other settings is never taken for this campaign's.
    fn key(&self, subject: &dyn Subject, canaries: &[Canary]) -> Result<Digest, Error> {
        let decided = (&self.planned, &self.settings, canaries, self.words.all(), self.seed);
        let json = |source| FsError::Json { path: self.kept.clone(), source };
        let decided = serde_json::to_vec(&decided).map_err(json)?;
        let mut hasher = Hasher::new();
        hasher.field(&subject.digest().0).field(subject.name().as_bytes()).field(&decided);
        Ok(hasher.finish())
    }

    /// The attempts of all probes, in the settings' order.
    fn attempts(&self, subject: &mut dyn Subject, key: Digest) -> Result<Vec<Attempt>, Error> {
        let total = self.planned.iter().map(|(_, trials)| trials.len() as u64).sum();
        let mut out: Vec<Attempt> = Vec::new();
        for (name, trials) in &self.planned {
            self.stop.check()?;
            let path = self.kept.join(format!("{}.{}.jsonl", name.name(), key.short()));
            let attempts = if path.exists() {
                read_lines(&path)?
            } else {
                let attempts = self.probe(*name, trials, subject)?;
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

    /// Removes what was kept probe by probe, once all of it is in the campaign's own files.
    fn forget_kept(&self) -> Result<(), Error> {
        if self.kept.exists() {
            std::fs::remove_dir_all(&self.kept).map_err(FsError::io("remove", &self.kept))?;
        }
        Ok(())
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
