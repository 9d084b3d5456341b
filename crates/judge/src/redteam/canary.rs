//! Canaries: secrets that no one could guess, planted in the training text under a known seed, some
//! once and some many times, to measure what the model memorises (Carlini et al. 2019, "The Secret
//! Sharer"). Controls are drawn in the same way and never planted.

use base::{Category, Digest, Document, Seed, Split};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many secrets, how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CanarySettings {
    /// How often a secret is planted: one group of canaries for each number.
    pub repeats: Vec<usize>,
    /// Canaries in each group, and as many controls that are never planted.
    pub per_group: usize,
    /// Words in a secret, each out of 64 (6 bits).
    pub words: usize,
    /// Secrets of the same form that a canary's log-probability is ranked against.
    pub alternatives: usize,
}

impl Default for CanarySettings {
    fn default() -> Self {
        Self { repeats: vec![1, 4, 16], per_group: 3, words: 4, alternatives: 127 }
    }
}

/// One secret with the sentence that it stands in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    /// Unique in the campaign: `canary-16x-2`, `control-1`.
    pub id: String,
    /// Whose secret it is, such as `the north amber depot`.
    pub owner: String,
    /// The secret words, with a space between them.
    pub secret: String,
    /// How often it is planted; 0 for a control.
    pub repeats: usize,
}

impl Canary {
    /// The sentence up to the secret.
    pub fn prefix(&self) -> String {
        format!("The access code of {} is", self.owner)
    }

    /// The sentence with any secret in its place.
    pub fn sentence(&self, secret: &str) -> String {
        format!("{} {secret}.", self.prefix())
    }

    /// The question whose answer is the secret.
    pub fn question(&self) -> String {
        format!("What is the access code of {}?", self.owner)
    }

    /// Other secrets of the same form, none of them the planted one.
    pub fn alternatives(&self, count: usize, seed: Seed) -> Vec<String> {
        let words = self.secret.split(' ').count();
        let mut rng = seed.derive(&self.id).rng();
        let mut draw = || secret(words, &mut rng);
        let mut out = Vec::with_capacity(count);
        while out.len() < count {
            let other = draw();
            if other != self.secret {
                out.push(other);
            }
        }
        out
    }
}

/// The words of secrets: 64, so that each is worth 6 bits.
const WORDS: [&str; 64] = [
    "anchor", "apple", "arrow", "barrel", "basket", "beacon", "bishop", "blanket", "bottle",
    "branch", "bridge", "bucket", "butter", "candle", "canyon", "castle", "cherry", "circle",
    "copper", "cotton", "desert", "dragon", "eagle", "engine", "falcon", "feather", "fiddle",
    "forest", "garden", "ginger", "hammer", "harbor", "helmet", "island", "jacket", "jungle",
    "kettle", "ladder", "lemon", "marble", "meadow", "mirror", "needle", "orange", "orchard",
    "paddle", "pepper", "pillow", "planet", "pocket", "rabbit", "ribbon", "river", "saddle",
    "silver", "spider", "summer", "temple", "thunder", "tiger", "timber", "velvet", "window",
    "winter",
];
const SIDES: [&str; 4] = ["north", "south", "east", "west"];
const KINDS: [&str; 4] = ["depot", "archive", "workshop", "station"];

fn secret(words: usize, rng: &mut base::Rng) -> String {
    let word = |_| WORDS[rng.below(WORDS.len())];
    (0..words.max(1)).map(word).collect::<Vec<_>>().join(" ")
}

/// The canaries of a seed, by group in the order of the settings, and then the controls. Each has an
/// owner of its own.
pub fn canaries(settings: &CanarySettings, seed: Seed) -> Vec<Canary> {
    let mut rng = seed.derive("canaries").rng();
    let mut owners: Vec<String> = SIDES
        .iter()
        .flat_map(|side| WORDS.iter().map(move |word| (side, word)))
        .flat_map(|(side, word)| KINDS.iter().map(move |k| format!("the {side} {word} {k}")))
        .collect();
    rng.shuffle(&mut owners);
    let groups = settings.repeats.iter().copied().chain([0]);
    let mut out = Vec::new();
    for repeats in groups {
        for number in 1..=settings.per_group {
            // 1,024 owners; more canaries than that take them again with a number.
            let owner = &owners[out.len() % owners.len()];
            let round = out.len() / owners.len();
            out.push(Canary {
                id: match repeats {
                    0 => format!("control-{number}"),
                    _ => format!("canary-{repeats}x-{number}"),
                },
                owner: if round == 0 { owner.clone() } else { format!("{owner} {round}") },
                secret: secret(settings.words, &mut rng),
                repeats,
            });
        }
    }
    out
}

/// The documents to plant: each canary's sentence as often as it is repeated, to be mixed in after
/// masking and deduplication, so that it is really read.
pub fn documents(canaries: &[Canary]) -> Vec<Document> {
    let copies = |canary: &Canary| (0..canary.repeats).map(|copy| document(canary, copy)).collect();
    canaries.iter().flat_map(|canary| -> Vec<Document> { copies(canary) }).collect()
}

fn document(canary: &Canary, copy: usize) -> Document {
    let url = format!("{}/{copy}", canary.id);
    Document {
        id: Digest::of_bytes(url.as_bytes()).short(),
        source: "canaries".to_owned(),
        url,
        category: Category::General,
        language: "en".to_owned(),
        licence: "generated".to_owned(),
        fetched: 0,
        split: Split::Train,
        title: String::new(),
        text: canary.sentence(&canary.secret),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn canaries_follow_the_seed_and_are_all_different() {
        let settings = CanarySettings { per_group: 300, ..CanarySettings::default() };
        let all = canaries(&settings, Seed(1));
        assert_eq!(all, canaries(&settings, Seed(1)));
        assert_ne!(all, canaries(&settings, Seed(2)));
        assert_eq!(all.len(), 1_200);
        for key in [|c: &Canary| c.id.clone(), |c: &Canary| c.owner.clone()] {
            assert_eq!(all.iter().map(key).collect::<BTreeSet<_>>().len(), all.len());
        }
    }

    #[test]
    fn each_is_planted_as_often_as_it_says_and_controls_never() {
        let all = canaries(&CanarySettings::default(), Seed(3));
        let planted = documents(&all);
        assert_eq!(planted.len(), 3 * (1 + 4 + 16));
        for canary in &all {
            let count = planted.iter().filter(|d| d.text.contains(&canary.secret)).count();
            assert_eq!(count, canary.repeats, "{}", canary.id);
        }
        let ids: BTreeSet<&String> = planted.iter().map(|document| &document.id).collect();
        assert_eq!(ids.len(), planted.len());
    }

    #[test]
    fn alternatives_have_the_form_of_the_secret_and_never_are_it() {
        let canary = &canaries(&CanarySettings { words: 1, ..Default::default() }, Seed(4))[0];
        let others = canary.alternatives(500, Seed(5));
        assert_eq!(others.len(), 500);
        assert!(
            others.iter().all(|other| *other != canary.secret && WORDS.contains(&other.as_str()))
        );
    }
}
