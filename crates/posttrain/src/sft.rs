//! Supervised fine-tuning: items and conversations to token ids, with the loss on the assistant's tokens
//! alone, and the run that learns from them.
//!
//! What does not fit the context is cut or dropped by [`OverLong`], and counted: a cut row keeps its
//! surviving answer tokens in the loss, and a row that has none left is dropped by name.

use crate::encode::Encoder;
use crate::{Error, Result};
use base::{Conversation, Item, Message, Role, Seed, Stop};
use model::{Batch, Engine, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokens::{Cut, Encoded, Part};
use train::{Budget, Context, Measures, Supervised};

/// What becomes of a conversation that is longer than the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverLong {
    /// Its end is cut off; the answer tokens that survive are learned.
    #[default]
    Cut,
    /// It is left out.
    Drop,
}

/// How a model is taught to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// How often each hand-made conversation is repeated, since they are few.
    pub conversation_repeats: usize,
    /// What becomes of conversations longer than the model's context.
    pub over_long: OverLong,
    /// Held-out items whose answers' loss is shown during the training, at most.
    pub evaluate_items: usize,
    /// The training itself.
    pub train: train::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        let train = train::Settings {
            budget: Budget::Epochs(1.0),
            global_batch_tokens: 4096,
            micro_batch_tokens: 2048,
            learning_rate: 2e-3,
            min_learning_rate_share: 0.05,
            weight_decay: 0.05,
            ..train::Settings::default()
        };
        let over_long = OverLong::default();
        Self { conversation_repeats: 8, over_long, evaluate_items: 64, train }
    }
}

/// What became of the conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RowCounts {
    /// Conversations given, with their repeats.
    pub conversations: u64,
    /// Rows to learn from.
    pub rows: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Tokens that are learned.
    pub learned_tokens: u64,
    /// Rows of which the end was cut off.
    pub cut: u64,
    /// Rows left out for their length.
    pub dropped_over_long: u64,
    /// Rows left out since nothing to learn was in them, or left after the cut.
    pub dropped_without_answer: u64,
    /// Ids of some rows that were cut or left out.
    pub examples: Vec<String>,
}

/// How many ids of cut or dropped rows are kept for reading.
const EXAMPLES: usize = 8;

impl RowCounts {
    fn note(&mut self, id: &str) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(id.to_owned());
        }
    }
}

/// An item as a conversation of one question and its right answer.
pub fn conversation_of(item: &Item) -> Conversation {
    answered(&item.id, &item.prompt, &item.answer)
}

/// A conversation of one question and one answer.
pub fn answered(id: &str, prompt: &str, answer: &str) -> Conversation {
    let messages = vec![Message::new(Role::User, prompt), Message::new(Role::Assistant, answer)];
    Conversation { id: id.to_owned(), messages }
}

/// Encodes conversations as rows no longer than the model's context.
///
/// # Errors
/// The template does not fit the conversations, the stop was raised, or no row is left.
pub fn rows<'a>(
    conversations: impl IntoIterator<Item = &'a Conversation>,
    over_long: OverLong,
    encoder: &Encoder<'_>,
    stop: &Stop,
) -> Result<(Vec<Encoded>, RowCounts)> {
    let max_tokens = encoder.max_seq_len;
    let mut counts = RowCounts::default();
    let mut rows = Vec::new();
    for conversation in conversations {
        stop.check()?;
        let encoded =
            encoder.template.encode(encoder.tokenizer, &conversation.messages, Part::Full)?;
        rows.extend(fit(encoded, over_long, max_tokens, &conversation.id, &mut counts));
    }
    if rows.is_empty() {
        let RowCounts { conversations, dropped_over_long, dropped_without_answer, .. } = counts;
        let reason = format!(
            "of {conversations} conversations {dropped_over_long} are longer than {max_tokens} tokens and \
             {dropped_without_answer} have no answer to learn within them"
        );
        return Err(Error::NothingLeft { what: "rows to learn from", reason });
    }
    Ok((rows, counts))
}

fn fit(
    mut encoded: Encoded,
    over_long: OverLong,
    max_tokens: usize,
    id: &str,
    counts: &mut RowCounts,
) -> Option<Encoded> {
    counts.conversations += 1;
    if encoded.len() > max_tokens && over_long == OverLong::Drop {
        counts.dropped_over_long += 1;
        counts.note(id);
        return None;
    }
    let cut = encoded.truncate(max_tokens);
    if encoded.num_learned() == 0 {
        counts.dropped_without_answer += 1;
        counts.note(id);
        return None;
    }
    if cut == Cut::Shortened {
        counts.cut += 1;
        counts.note(id);
    }
    counts.rows += 1;
    counts.tokens += encoded.len() as u64;
    counts.learned_tokens += encoded.num_learned() as u64;
    Some(encoded)
}

/// What a fine-tuning gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// What became of the conversations.
    pub rows: RowCounts,
    /// Steps taken.
    pub steps: u64,
    /// Loss of the last step, in nats per learned token.
    pub loss: f64,
    /// Measures of the last evaluation.
    pub evaluation: Measures,
}

/// What a fine-tuning learns from.
pub struct Data<'a> {
    /// Questions with their answers.
    pub conversations: Vec<Conversation>,
    /// Few conversations that are repeated.
    pub repeated: &'a [Conversation],
    /// Items to measure with.
    pub held_out: &'a [Item],
}

/// Fine-tunes `init` on the conversations in the context's directory; called again it goes on there.
///
/// # Errors
/// No row is left, or the training fails or is stopped.
pub fn train(
    settings: &Settings,
    data: &Data<'_>,
    encoder: &Encoder<'_>,
    init: Weights,
    seed: Seed,
    context: &Context<'_>,
) -> Result<(Weights, Summary)> {
    let repeated = (0..settings.conversation_repeats).flat_map(|_| data.repeated);
    let all = data.conversations.iter().chain(repeated);
    // Longer than a micro-batch is longer than any row can be.
    let max_seq_len = encoder.max_seq_len.min(settings.train.micro_batch_tokens);
    let encoder = &Encoder { max_seq_len, ..*encoder };
    let (rows, counts) = rows(all, settings.over_long, encoder, context.stop)?;
    let held_out = held_out_batches(settings, data.held_out, encoder, context.stop)?;
    let mut objective = Supervised::new(&rows, max_seq_len, seed, &settings.train)?;
    let mut evaluate = |engine: &mut Engine, weights: &Weights, _: u64| {
        let loss = train::held_out_loss(engine, weights, &held_out, context.stop)?;
        Ok(Measures::from([("held-out-loss".to_owned(), loss.nats_per_token())]))
    };
    let evaluate: Option<&mut train::Evaluate<'_>> =
        if held_out.is_empty() { None } else { Some(&mut evaluate) };
    let outcome = train::run(&mut objective, &settings.train, init, context, evaluate)?;
    let summary = Summary {
        rows: counts,
        steps: outcome.steps,
        loss: outcome.last.loss,
        evaluation: outcome.last.evaluation,
    };
    Ok((outcome.weights, summary))
}

/// The answers of some held-out items as targets, in batches that fit a micro-batch.
fn held_out_batches(
    settings: &Settings,
    items: &[Item],
    encoder: &Encoder<'_>,
    stop: &Stop,
) -> Result<Vec<Batch>> {
    let conversations: Vec<Conversation> =
        items.iter().take(settings.evaluate_items).map(conversation_of).collect();
    let mut batches: Vec<Batch> = Vec::new();
    if conversations.is_empty() {
        return Ok(batches);
    }
    for row in rows(&conversations, settings.over_long, encoder, stop)?.0 {
        match batches.last_mut() {
            Some(last) if last.tokens.len() + row.len() <= settings.train.micro_batch_tokens => {
                last.push_masked(&row.token_ids, &row.loss_mask);
            }
            _ => {
                let mut batch = Batch::new();
                batch.push_masked(&row.token_ids, &row.loss_mask);
                batches.push(batch);
            }
        }
    }
    Ok(batches)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::Silent;
    use tokens::{ChatTemplate, Tokenizer, TokenizerSettings};

    /// A tokenizer of bytes and a few merges.
    pub(crate) fn tokenizer() -> Tokenizer {
        let settings = TokenizerSettings { vocab_size: 300, ..TokenizerSettings::default() };
        let sample = ["the question and the answer of the thing ".repeat(20)];
        Tokenizer::train(&settings, &sample, 1, &Silent, &Stop::new()).unwrap()
    }

    fn check(
        prompt: &str,
        answer: &str,
        max_tokens: usize,
        over_long: OverLong,
    ) -> (Vec<Encoded>, RowCounts) {
        let given =
            [answered("first", "the question", "the answer"), answered("row", prompt, answer)];
        encode(&given, over_long, max_tokens).unwrap()
    }

    fn encode(
        given: &[Conversation],
        over_long: OverLong,
        max_seq_len: usize,
    ) -> Result<(Vec<Encoded>, RowCounts)> {
        let (tokenizer, template) = (&tokenizer(), &ChatTemplate::default());
        let encoder = Encoder { tokenizer, template, max_seq_len };
        rows(given, over_long, &encoder, &Stop::new())
    }

    #[test]
    fn the_end_token_is_learned_though_nothing_is_padded() {
        let (rows, counts) = check("the question", "the answer", 100, OverLong::Cut);
        let tokenizer = tokenizer();
        for row in &rows {
            let (last, learned) = (row.token_ids.last(), row.loss_mask.last());
            assert_eq!((last, learned), (Some(&tokenizer.end_of_turn()), Some(&true)));
        }
        assert_eq!((counts.rows, counts.cut), (2, 0));
    }

    #[test]
    fn a_cut_answer_keeps_its_surviving_tokens_in_the_loss_and_is_counted() {
        let (rows, counts) = check("the question", &"xyz ".repeat(40), 30, OverLong::Cut);
        assert_eq!(rows[1].len(), 30);
        assert!(rows[1].num_learned() > 10);
        assert_eq!((counts.cut, &counts.examples[..]), (1, &["row".to_owned()][..]));
    }

    #[test]
    fn an_answer_that_is_cut_away_whole_is_a_counted_drop() {
        let (rows, counts) = check(&"xyz ".repeat(40), "the answer", 30, OverLong::Cut);
        assert_eq!((rows.len(), counts.dropped_without_answer), (1, 1));
        assert_eq!(counts.examples, ["row"]);
    }

    #[test]
    fn long_rows_are_dropped_where_that_is_the_rule() {
        let (rows, counts) = check("the question", &"xyz ".repeat(40), 30, OverLong::Drop);
        assert_eq!((rows.len(), counts.dropped_over_long), (1, 1));
    }

    #[test]
    fn no_row_left_is_an_error_with_counts() {
        let given = [answered("a", &"xyz ".repeat(40), "b")];
        let error = encode(&given, OverLong::Cut, 20).unwrap_err().to_string();
        assert!(error.contains("1 have no answer to learn"), "{error}");
    }

    #[test]
    fn the_boundary_of_prompt_and_answer_is_exact() {
        // "th" + "e" would merge into one token if the boundary were not kept.
        let conversation = answered("a", "th", "e answer");
        let (rows, _) = encode(&[conversation], OverLong::Cut, 99).unwrap();
        let learned: Vec<u32> = rows[0]
            .token_ids
            .iter()
            .zip(&rows[0].loss_mask)
            .filter_map(|(id, on)| on.then_some(*id))
            .collect();
        assert_eq!(tokenizer().decode(&learned), "e answer");
    }
}
