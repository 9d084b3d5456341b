//! Stage 6: the base model learns to answer.

use super::models::Speaker;
use super::{ALGORITHM, Relay};
use crate::error::Result;
use crate::progress::count;
use crate::run::{Finished, Yield};
use base::Item;
use posttrain::round::prompts::divide;
use posttrain::{conversations, derive, sft};
use std::collections::BTreeMap;
use train::{METRICS_FILE, WEIGHTS_FILE};

/// The stage's name.
pub const NAME: &str = "06-sft";

impl Relay<'_> {
    /// Trains on the assistant's tokens alone.
    pub fn sft(
        &self,
        tokenizer: &Finished,
        questions: &Finished,
        base: &Finished,
    ) -> Result<Finished> {
        let settings = &self.recipe.sft;
        let decides = (settings, self.recipe.round.prompts_share);
        self.perform(NAME, ALGORITHM, &decides, &[tokenizer, questions, base], |at, seed| {
            let speaker = Speaker::load(&base.directory, &tokenizer.directory)?;
            let (items, _) = self.divided(questions)?;
            let data = sft::Data {
                conversations: items.iter().map(sft::conversation_of).collect(),
                repeated: &conversations::hand_made()?,
                held_out: &derive::read_items(&questions.path(derive::HELD_OUT_FILE))?,
            };
            let encoder = speaker.encoder();
            let init = speaker.weights.clone();
            let (_, summary) =
                sft::train(settings, &data, &encoder, init, seed, &self.training(at))?;
            base::write_json(&at.join(SUMMARY), &summary)?;
            Ok(tuned(&summary))
        })
    }
}

impl Relay<'_> {
    /// Items for the fine-tuning, and items for the round to ask.
    pub fn divided(&self, questions: &Finished) -> Result<(Vec<Item>, Vec<Item>)> {
        let items = derive::read_items(&questions.path(derive::TRAIN_FILE))?;
        Ok(divide(items, self.recipe.round.prompts_share, self.seed(super::questions::NAME)))
    }
}

/// What a fine-tuning says of itself.
pub const SUMMARY: &str = "summary.json";

/// What a fine-tuning gives.
pub fn tuned(summary: &sft::Summary) -> Yield {
    let rows = &summary.rows;
    let mut measures: BTreeMap<String, f64> = summary.evaluation.clone();
    measures.insert("loss".into(), summary.loss);
    Yield {
        outputs: [WEIGHTS_FILE, METRICS_FILE, SUMMARY].map(str::to_owned).to_vec(),
        counts: BTreeMap::from([
            ("steps".into(), summary.steps),
            ("conversations".into(), rows.conversations),
            ("learned-tokens".into(), rows.learned_tokens),
            ("dropped".into(), rows.dropped_over_long + rows.dropped_without_answer),
        ]),
        measures,
        summary: format!(
            "{} conversations, {} learned tokens, {} steps, loss {:.3}",
            count(rows.conversations),
            count(rows.learned_tokens),
            count(summary.steps),
            summary.loss
        ),
    }
}
