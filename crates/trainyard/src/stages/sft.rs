//! Stage 6: the base model learns to answer.

use super::models::Speaker;
use super::{ALGORITHM, Relay};
use crate::error::Result;
use crate::progress::count;
use crate::run::{Finished, Yield};
use posttrain::{conversations, derive, sft};
use std::collections::BTreeMap;
use train::{METRICS_FILE, WEIGHTS_FILE};

/// The stage's name.
pub const NAME: &str = "06-sft";

impl Relay<'_> {
    /// Trains on the assistant's tokens alone.
    pub fn sft(&self, tokenizer: &Finished, questions: &Finished, base: &Finished) -> Result<Finished> {
        let settings = &self.recipe.sft;
        self.perform(NAME, ALGORITHM, settings, &[tokenizer, questions, base], |at, seed| {
            let speaker = Speaker::load(&base.directory, &tokenizer.directory)?;
            let items = derive::read_items(&questions.path(derive::TRAIN_FILE))?;
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
