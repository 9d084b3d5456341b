//! What a campaign comes to: every probe with its rate, whether it hit or not.

use crate::Error;
use crate::intervals::{Interval, wilson};
use crate::redteam::attempt::{Attempt, Exposure};
use crate::redteam::{Access, Attacker, Canary, Finding, Policy, ProbeKind, ProbeName, Settings};
use base::Digest;
use serde::{Deserialize, Serialize};

/// One probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The probe.
    pub probe: ProbeName,
    /// What it tries.
    pub goal: String,
    /// The policy that a hit breaks.
    pub policy: Policy,
    /// How its hits count.
    pub kind: ProbeKind,
    /// Who ran it.
    pub attacker: String,
    /// Attempts.
    pub attempts: u64,
    /// Attempts that hit.
    pub hits: u64,
    /// Share of attempts that hit, with Wilson's interval.
    pub rate: Interval,
}

/// What the model remembers of one canary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CanaryResult {
    /// The canary.
    pub canary: String,
    /// How often it was planted; 0 for a control.
    pub repeats: u64,
    /// Whether its sentence was completed.
    pub completed: bool,
    /// Whether it was told in a conversation.
    pub told: bool,
    /// Its exposure, where it was measured.
    pub exposure: Option<Exposure>,
}

/// The report of one campaign against one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignReport {
    /// The model.
    pub model: String,
    /// Digest of all that decides the campaign: model, trials, settings, words and seed.
    pub key: Digest,
    /// Who attacked.
    pub cohort: Vec<Attacker>,
    /// With what access.
    pub access: Access,
    /// Every probe of the settings, in their order.
    pub probes: Vec<ProbeResult>,
    /// Share of the attempts of attacking probes that hit.
    pub attack_success_rate: Interval,
    /// Share of harmless questions that were refused.
    pub over_refusal: Interval,
    /// What the model remembers of each canary.
    pub canaries: Vec<CanaryResult>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

/// Who runs a probe.
pub(crate) fn attacker(settings: &Settings, probe: ProbeName) -> String {
    let claims = |attacker: &&Attacker| attacker.probes.contains(&probe);
    settings.cohort.iter().find(claims).map_or("program", |attacker| &attacker.name).to_owned()
}

/// Sums up the attempts.
///
/// # Errors
/// A probe of the settings has no attempts: it would look clean.
pub(crate) fn report(
    model: &str,
    key: Digest,
    settings: &Settings,
    canaries: &[Canary],
    attempts: &[Attempt],
    findings: Vec<Finding>,
) -> Result<CampaignReport, Error> {
    let probes = settings
        .distinct_probes()
        .into_iter()
        .map(|probe| probe_result(probe, settings, attempts))
        .collect::<Result<Vec<_>, _>>()?;
    let rate = |kind: ProbeKind| {
        let of_kind = probes.iter().filter(|probe| probe.kind == kind);
        let (hits, all) =
            of_kind.fold((0, 0), |(hits, all), probe| (hits + probe.hits, all + probe.attempts));
        wilson(hits, all)
    };
    Ok(CampaignReport {
        model: model.to_owned(),
        key,
        cohort: settings.cohort.clone(),
        access: settings.access.clone(),
        attack_success_rate: rate(ProbeKind::Attack),
        over_refusal: rate(ProbeKind::OverRefusal),
        canaries: canaries.iter().map(|canary| canary_result(canary, attempts)).collect(),
        probes,
        findings,
    })
}

fn probe_result(
    probe: ProbeName,
    settings: &Settings,
    attempts: &[Attempt],
) -> Result<ProbeResult, Error> {
    let own = attempts.iter().filter(|attempt| attempt.probe == probe);
    let (hits, all) = own.fold((0, 0), |(hits, all), a| (hits + u64::from(a.hit), all + 1));
    if all == 0 {
        return Err(Error::EmptyProbe { probe: probe.name(), reason: probe.needs() });
    }
    Ok(ProbeResult {
        probe,
        goal: probe.goal().to_owned(),
        policy: probe.policy(),
        kind: probe.kind(),
        attacker: attacker(settings, probe),
        attempts: all,
        hits,
        rate: wilson(hits, all),
    })
}

fn canary_result(canary: &Canary, attempts: &[Attempt]) -> CanaryResult {
    let own = || attempts.iter().filter(|attempt| attempt.canary.as_ref() == Some(&canary.id));
    let hit = |probe: ProbeName| own().any(|attempt| attempt.probe == probe && attempt.hit);
    CanaryResult {
        canary: canary.id.clone(),
        repeats: canary.repeats as u64,
        completed: hit(ProbeName::CanaryCompletion),
        told: hit(ProbeName::CanaryChat),
        exposure: own().find_map(|attempt| attempt.exposure),
    }
}
