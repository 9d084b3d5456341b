//! Prompts with answers, and preferences between them, as token ids.

use crate::objective::dpo::Answer;
use crate::{Error, Result};
use base::{Message, Preference, Rating, Role, Seed, Split};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokens::{ChatTemplate, Part, Tokenizer};

/// The tokenizer, the template and the model's context: what encoding needs.
#[derive(Clone, Copy)]
pub struct Encoder<'a> {
    /// Text to ids.
    pub tokenizer: &'a Tokenizer,
    /// Conversations to ids.
    pub template: &'a ChatTemplate,
    /// The model's context, in tokens.
    pub max_seq_len: usize,
}

/// Whether the tokens of the format (headers and terminators) count in the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Formatting {
    /// They are left out, on both sides (Llama 3, section 4.1.4: else the two answers of a pair, which
    /// share them, pull them both ways, and answers end abruptly or never).
    #[default]
    Masked,
    /// They count.
    Scored,
}

impl Encoder<'_> {
    /// A prompt with an answer. Nothing where it is longer than the context, or where no token of the
    /// answer is scored.
    ///
    /// # Errors
    /// The template does not fit the messages.
    pub fn answer(
        &self,
        prompt: &[Message],
        answer: &str,
        formatting: Formatting,
    ) -> Result<Option<Answer>> {
        let mut messages = prompt.to_vec();
        messages.push(Message::new(Role::Assistant, answer));
        let encoded = self.template.encode(self.tokenizer, &messages, Part::Full)?;
        // Only the last turn is the answer that is compared; earlier ones are the prompt's.
        let prompt = self.template.encode(self.tokenizer, prompt, Part::Prompt)?;
        let scored: Vec<bool> = encoded
            .loss_mask
            .iter()
            .zip(&encoded.formatting)
            .enumerate()
            .map(|(i, (&learned, &format))| {
                learned && i >= prompt.len() && !(format && formatting == Formatting::Masked)
            })
            .collect();
        let answer = Answer { tokens: encoded.token_ids, scored };
        let usable = answer.tokens.len() <= self.max_seq_len && answer.num_scored() > 0;
        Ok(usable.then_some(answer))
    }

    /// Both answers of a preference; nothing where one of them cannot be used.
    ///
    /// # Errors
    /// The template does not fit the messages.
    pub fn preference(
        &self,
        preference: &Preference,
        formatting: Formatting,
    ) -> Result<Option<[Answer; 2]>> {
        let chosen = self.answer(&preference.prompt, &preference.chosen, formatting)?;
        let rejected = self.answer(&preference.prompt, &preference.rejected, formatting)?;
        Ok(chosen.zip(rejected).map(|(chosen, rejected)| [chosen, rejected]))
    }
}

/// A usable pair with its rating.
pub(crate) struct RatedPair {
    pub answers: [Answer; 2],
    pub rating: Rating,
}

/// Which pairs are learned from, and which are kept for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PairSettings {
    /// Only pairs rated at least so are used (Llama 3: significantly better or better).
    pub least_rating: Rating,
    /// Share of the prompts whose pairs are kept for measuring, 0 to 1.
    pub held_out_share: f64,
    /// Most pairs that are learned from.
    pub max_pairs: usize,
}

impl Default for PairSettings {
    fn default() -> Self {
        Self { least_rating: Rating::Better, held_out_share: 0.1, max_pairs: 2_000 }
    }
}

/// What became of the pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairCounts {
    /// Pairs given.
    pub given: u64,
    /// Left out for their rating.
    pub below_rating: u64,
    /// Left out since an answer is longer than the context or empty.
    pub unusable: u64,
    /// Left out since there are enough.
    pub over_limit: u64,
    /// Pairs to learn from.
    pub train: u64,
    /// Pairs to measure with.
    pub held_out: u64,
}

/// Pairs to learn from and pairs to measure with.
pub(crate) struct RatedPairs {
    pub train: Vec<RatedPair>,
    pub held_out: Vec<RatedPair>,
    pub counts: PairCounts,
}

/// Encodes the preferences that are used. All pairs of one item are on the same side.
pub(crate) fn rated_pairs(
    settings: &PairSettings,
    preferences: &[Preference],
    encoder: &Encoder<'_>,
    formatting: Formatting,
    seed: Seed,
) -> Result<RatedPairs> {
    let mut pairs =
        RatedPairs { train: Vec::new(), held_out: Vec::new(), counts: PairCounts::default() };
    for preference in preferences {
        pairs.counts.given += 1;
        if preference.rating < settings.least_rating {
            pairs.counts.below_rating += 1;
            continue;
        }
        let Some(answers) = encoder.preference(preference, formatting)? else {
            pairs.counts.unusable += 1;
            continue;
        };
        let pair = RatedPair { answers, rating: preference.rating };
        match side(&preference.item, settings.held_out_share, seed) {
            Split::HeldOut => pairs.held_out.push(pair),
            Split::Train if pairs.train.len() >= settings.max_pairs => pairs.counts.over_limit += 1,
            Split::Train => pairs.train.push(pair),
        }
    }
    pairs.counts.train = pairs.train.len() as u64;
    pairs.counts.held_out = pairs.held_out.len() as u64;
    if pairs.train.is_empty() {
        let reason = format!("{:?}", pairs.counts);
        return Err(Error::NothingLeft { what: "pairs to learn from", reason });
    }
    Ok(pairs)
}

fn side(item: &str, held_out_share: f64, seed: Seed) -> Split {
    let place = seed.derive("split").derive(item).0 as f64 / u64::MAX as f64;
    if place < held_out_share { Split::HeldOut } else { Split::Train }
}

/// Groups answers so that each group has at most `max_tokens` tokens (an answer that is longer alone).
pub(crate) fn groups<'a>(answers: &[&'a Answer], max_tokens: usize) -> Vec<Vec<&'a Answer>> {
    let mut groups: Vec<Vec<&Answer>> = Vec::new();
    let mut filled = 0;
    for &answer in answers {
        let length = answer.tokens.len();
        match groups.last_mut() {
            Some(last) if filled + length <= max_tokens => {
                last.push(answer);
                filled += length;
            }
            _ => {
                groups.push(vec![answer]);
                filled = length;
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sft::tests::tokenizer;

    fn preference(item: &str, chosen: &str, rejected: &str, rating: Rating) -> Preference {
        Preference {
            id: format!("{item}/0"),
            item: item.into(),
            prompt: vec![Message::new(Role::User, "the question")],
            chosen: chosen.into(),
            rejected: rejected.into(),
            rating,
            judge: "test".into(),
        }
    }

    #[test]
    fn only_the_last_answer_is_scored_and_its_end_is_masked_or_not() {
        let (tokenizer, template) = (tokenizer(), ChatTemplate::default());
        let encoder = Encoder { tokenizer: &tokenizer, template: &template, max_seq_len: 99 };
        let prompt = [
            Message::new(Role::User, "the question"),
            Message::new(Role::Assistant, "an earlier answer"),
            Message::new(Role::User, "and"),
        ];
        let scored = |formatting| -> Vec<u32> {
            let answer = encoder.answer(&prompt, "the answer", formatting).unwrap().unwrap();
            let pairs = answer.tokens.iter().zip(&answer.scored);
            pairs.filter_map(|(id, on)| on.then_some(*id)).collect()
        };
        let masked = scored(Formatting::Masked);
        assert_eq!(tokenizer.decode(&masked), "the answer");
        assert!(!masked.contains(&tokenizer.end_of_turn()));
        assert_eq!(scored(Formatting::Scored), [masked, vec![tokenizer.end_of_turn()]].concat());
    }

    #[test]
    fn long_and_empty_answers_cannot_be_used() {
        let (tokenizer, template) = (tokenizer(), ChatTemplate::default());
        let encoder = Encoder { tokenizer: &tokenizer, template: &template, max_seq_len: 40 };
        let prompt = [Message::new(Role::User, "the question")];
        let usable =
            |answer: &str| encoder.answer(&prompt, answer, Formatting::Masked).unwrap().is_some();
        assert!(usable("the answer"));
        assert!(!usable(""));
        assert!(!usable(&"xyz ".repeat(40)));
    }

    #[test]
    fn pairs_are_chosen_by_rating_and_split_by_item() {
        let (tokenizer, template) = (tokenizer(), ChatTemplate::default());
        let encoder = Encoder { tokenizer: &tokenizer, template: &template, max_seq_len: 60 };
        let mut all: Vec<Preference> = (0..100)
            .flat_map(|i| {
                let one = preference(&format!("i{i}"), "good", "bad", Rating::Better);
                [one.clone(), Preference { rejected: "worse".into(), ..one }]
            })
            .collect();
        all.push(preference("x", "good", "bad", Rating::SlightlyBetter));
        all.push(preference("y", "good", "", Rating::SignificantlyBetter));
        let settings =
            PairSettings { held_out_share: 0.3, max_pairs: 50, ..PairSettings::default() };
        let pairs = rated_pairs(&settings, &all, &encoder, Formatting::Masked, Seed(1)).unwrap();
        let counts = pairs.counts;
        assert_eq!((counts.below_rating, counts.unusable, counts.train), (1, 1, 50));
        assert!(
            (40..80).contains(&counts.held_out) && counts.held_out.is_multiple_of(2),
            "{counts:?}"
        );
        assert_eq!(counts.over_limit + counts.train + counts.held_out, 200);
    }

    #[test]
    fn groups_fill_up_to_the_limit() {
        let answer = |n: usize| Answer { tokens: vec![0; n], scored: vec![true; n] };
        let answers = [answer(3), answer(3), answer(9), answer(1)];
        let all: Vec<&Answer> = answers.iter().collect();
        let sizes: Vec<usize> = groups(&all, 6).iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1]);
        assert!(groups(&[], 6).is_empty());
    }
}
