//! Fine-tuning on the chosen answers, mixed with questions whose right answers are known.

use super::reject::Winner;
use crate::Result;
use crate::encode::Encoder;
use crate::sft::{self, answered, conversation_of};
use base::{Conversation, Item, Seed};
use model::Weights;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use train::{Budget, Context};

/// How the model is tuned on the chosen answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Items of the fine-tuning data for every chosen answer, with their right answers.
    pub items_per_winner: f64,
    /// The fine-tuning.
    pub sft: sft::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        let sft = sft::Settings::default();
        let train = train::Settings {
            budget: Budget::Epochs(1.0),
            learning_rate: 5e-4,
            ..sft.train.clone()
        };
        let sft = sft::Settings { conversation_repeats: 2, train, ..sft };
        Self { items_per_winner: 1.0, sft }
    }
}

/// What the model is tuned on.
#[derive(Clone, Copy)]
pub struct Data<'a> {
    /// The chosen answers.
    pub winners: &'a [Winner],
    /// The fine-tuning's items, of which some are drawn.
    pub items: &'a [Item],
    /// Hand-made conversations, repeated as the settings say.
    pub repeated: &'a [Conversation],
    /// Items to measure with.
    pub held_out: &'a [Item],
}

/// Fine-tunes on winners and items in the context's directory; called again it goes on there.
///
/// # Errors
/// As [`sft::train`].
pub fn train(
    settings: &Settings,
    data: &Data<'_>,
    encoder: &Encoder<'_>,
    init: Weights,
    seed: Seed,
    context: &Context<'_>,
) -> Result<(Weights, sft::Summary)> {
    let conversations = mix(settings.items_per_winner, data.winners, data.items, seed);
    let data = sft::Data { conversations, repeated: data.repeated, held_out: data.held_out };
    sft::train(&settings.sft, &data, encoder, init, seed, context)
}

/// The winners, and items drawn by their digests under the seed.
fn mix(items_per_winner: f64, winners: &[Winner], items: &[Item], seed: Seed) -> Vec<Conversation> {
    let count = (winners.len() as f64 * items_per_winner.max(0.0)).round() as usize;
    let mut keyed: Vec<(u64, &Item)> =
        items.iter().map(|item| (seed.derive("mix").derive(&item.id).0, item)).collect();
    keyed.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
    let drawn = keyed.into_iter().take(count).map(|(_, item)| conversation_of(item));
    winners.iter().map(|w| answered(&w.item, &w.prompt, &w.answer)).chain(drawn).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rollouts::tests::item;
    use super::*;

    #[test]
    fn winners_are_mixed_with_their_share_of_items() {
        let winner = |n: usize| Winner {
            item: format!("w{n}"),
            prompt: "p".into(),
            answer: "a".into(),
            reward: 0.0,
            grade: 1.0,
        };
        let winners: Vec<Winner> = (0..4).map(winner).collect();
        let mut items: Vec<Item> = (0..10).map(|i| item(&format!("i{i}"), "right")).collect();
        let mixed = mix(0.5, &winners, &items, Seed(1));
        assert_eq!(mixed.len(), 6);
        assert_eq!(mixed.iter().filter(|c| c.messages[1].content == "right").count(), 2);
        items.reverse();
        assert_eq!(mix(0.5, &winners, &items, Seed(1)), mixed);
        assert_eq!(mix(100.0, &winners, &items, Seed(1)).len(), 14);
    }
}
