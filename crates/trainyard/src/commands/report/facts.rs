//! What the stages wrote, put together for the page.

use super::figures;
use crate::error::Result;
use crate::recipe::Recipe;
use crate::run::decisions::By;
use crate::run::events::What;
use crate::run::{RunDirectory, stage};
use crate::stages::{self, STAGES, TRAININGS};
use base::Manifest;
use std::collections::BTreeMap;
use yard::facts::{
    Count, Decision, Facts, Input, Interruption, Labelled, Link, Model, Run, Stage, State, Who,
};

/// Everything that is known about a run now.
pub fn gather(run: &RunDirectory) -> Result<Facts> {
    let recipe: Recipe = base::read_json(&run.recipe())?;
    let mut manifests = BTreeMap::new();
    for &name in STAGES {
        if let Some(manifest) = Manifest::read(&run.stage(name))? {
            manifests.insert(name, manifest);
        }
    }
    let known = Known { run, recipe: &recipe, manifests };
    Ok(Facts {
        notice: String::new(),
        run: known.summary()?,
        model: known.model(),
        machine: machine(),
        stages: STAGES.iter().map(|&name| known.stage(name)).collect(),
        decisions: known.decisions()?,
        funnel: figures::funnel(&known)?,
        mixture: figures::mixture(&known)?,
        curves: figures::curves(&known)?,
        samples: figures::samples(&known)?,
        judgements: figures::judgements(&known)?,
        red_team: figures::red_team(&known)?,
        gate: figures::gate(&known)?,
        release: figures::release(&known)?,
        interruptions: known.interruptions()?,
        lineage: STAGES.iter().map(|&name| known.link(name)).collect(),
    })
}

/// A run with the manifests that it has.
pub struct Known<'a> {
    /// The run.
    pub run: &'a RunDirectory,
    /// What was asked for.
    pub recipe: &'a Recipe,
    /// The finished stages.
    pub manifests: BTreeMap<&'static str, Manifest>,
}

impl Known<'_> {
    /// A file of a finished stage; nothing where the stage is not finished.
    pub fn file(&self, stage: &str, file: &str) -> Option<std::path::PathBuf> {
        self.manifests.contains_key(stage).then(|| self.run.stage(stage).join(file))
    }

    /// A JSON file of a finished stage.
    pub fn json<T: serde::de::DeserializeOwned>(
        &self,
        stage: &str,
        file: &str,
    ) -> Result<Option<T>> {
        Ok(self.file(stage, file).map(|path| base::read_json(&path)).transpose()?)
    }

    fn summary(&self) -> Result<Run> {
        let events = self.run.read_events()?;
        let ended = events.last().filter(|event| event.what == What::Done).map(|event| event.when);
        let seconds = STAGES.iter().map(|name| stage::timing(&self.run.stage(name)).seconds).sum();
        let weights = TRAININGS.iter().rev().find_map(|name| self.manifests.get(name));
        Ok(Run {
            name: self.recipe.name.clone(),
            purpose: self.recipe.description.clone(),
            started: events.first().map(|event| event.when),
            ended,
            seconds: Some(seconds),
            seed: Some(self.recipe.seed),
            program: format!("trainyard {}", env!("CARGO_PKG_VERSION")),
            recipe: "recipe.toml".to_owned(),
            recipe_text: String::from_utf8_lossy(&base::read(&self.run.recipe_text())?)
                .into_owned(),
            weights_digest: weights
                .and_then(|manifest| manifest.output(train::WEIGHTS_FILE))
                .map(|artifact| artifact.digest),
            chat_command: format!("trainyard chat --dir {}", self.run.display()),
        })
    }

    fn model(&self) -> Option<Model> {
        let vocab = *self.manifests.get(stages::tokenizer::NAME)?.counts.get("vocab-size")?;
        let config = self.recipe.model.config(vocab as usize);
        let trained = self.manifests.get(stages::pretrain::NAME);
        let heads = format!("{} query, {} key/value", config.num_heads, config.num_kv_heads);
        Some(Model {
            parameters: config.num_parameters() as u64,
            tokens_seen: trained.and_then(|m| m.counts.get("tokens-seen").copied()).unwrap_or(0),
            form: vec![
                Labelled::new("layers", config.num_layers),
                Labelled::new("width", config.d_model),
                Labelled::new("heads", heads),
                Labelled::new("feed-forward width", config.d_ff),
                Labelled::new("vocabulary", config.vocab_size),
                Labelled::new("context, in tokens", config.max_seq_len),
            ],
        })
    }

    fn stage(&self, name: &str) -> Stage {
        let directory = self.run.stage(name);
        let timing = stage::timing(&directory);
        let manifest = self.manifests.get(name);
        let state = match (manifest, timing.attempts) {
            (Some(_), _) => State::Done,
            (None, 0) => State::NotYet,
            (None, _) => State::Unfinished,
        };
        let counts = |incoming: bool| -> Vec<Count> {
            let all = manifest.into_iter().flat_map(|m| &m.counts);
            all.filter(|(what, _)| comes_in(what) == incoming)
                .map(|(what, &number)| Count::new(number, what.replace('-', " ")))
                .collect()
        };
        Stage {
            name: name.to_owned(),
            state,
            seconds: (timing.attempts > 0).then_some(timing.seconds),
            came_in: counts(true),
            went_out: counts(false),
            note: timing.summary,
        }
    }

    fn decisions(&self) -> Result<Vec<Decision>> {
        let of = |decision: crate::run::decisions::Decision| Decision {
            when: Some(decision.when),
            who: match decision.by {
                By::Person => Who::Person,
                By::Rule => Who::Rule,
                By::Gate => Who::Gate,
            },
            name: decision.who,
            what: format!("{}: {}", decision.stage, decision.question),
            options: decision.options,
            chosen: decision.chosen,
            reason: decision.reason,
        };
        Ok(self.run.read_decisions()?.into_iter().map(of).collect())
    }

    fn interruptions(&self) -> Result<Vec<Interruption>> {
        let events = self.run.read_events()?;
        let cut = events.iter().enumerate().filter(|(_, event)| event.what == What::Interrupted);
        let resumed = |at: usize| {
            let next = events[at + 1..].iter().find(|event| event.what == What::Stage);
            next.map_or_else(String::new, |event| event.stage.clone())
        };
        Ok(cut
            .map(|(at, event)| Interruption {
                when: Some(event.when),
                cause: event.cause.clone(),
                stage: event.stage.clone(),
                resumed_from: resumed(at),
                lost_seconds: None,
            })
            .collect())
    }

    fn link(&self, name: &str) -> Link {
        let manifest = self.manifests.get(name);
        let inputs = manifest.into_iter().flat_map(|manifest| &manifest.inputs);
        Link {
            stage: name.to_owned(),
            digest: manifest.map(Manifest::digest),
            inputs: inputs
                .map(|(input, digest)| Input {
                    name: input.clone(),
                    digest: Some(*digest),
                    from: STAGES.contains(&input.as_str()).then(|| input.clone()),
                })
                .collect(),
        }
    }
}

/// Whether a count is of what a stage read.
fn comes_in(what: &str) -> bool {
    let incoming =
        ["documents-read", "bytes-read", "sample-bytes", "candidates", "conversations", "prompts"];
    incoming.contains(&what)
}

fn machine() -> Vec<Labelled> {
    let cores = crate::threads::cores();
    vec![
        Labelled::new("cores", cores),
        Labelled::new("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
    ]
}
