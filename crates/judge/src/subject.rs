//! A model of ours as a [`Subject`]: weights with the tokenizer and the chat template that they were
//! trained with.

use crate::Error;
use crate::answer::{Answer, Ask, Finish, Prompt, Sampling, Subject};
use base::{Digest, Hasher, Stop};
use kernels::Pool;
use model::{Batch, Engine, Request, Weights, generate};
use std::sync::Arc;
use tokens::{ChatTemplate, Part, Special, Tokenizer};

/// Tokens that are scored at once, where the model's sequences are not longer.
const SCORED_TOKENS: usize = 2048;

/// Weights that can be asked and scored.
pub struct Model<'a> {
    name: String,
    weights: &'a Weights,
    tokenizer: &'a Tokenizer,
    template: &'a ChatTemplate,
    pool: Arc<Pool>,
    /// Made when something is scored: answering does not need its memory.
    engine: Option<Engine>,
    digest: Digest,
}

impl<'a> Model<'a> {
    /// A model under the name that reports give it.
    pub fn new(
        name: impl Into<String>,
        weights: &'a Weights,
        tokenizer: &'a Tokenizer,
        template: &'a ChatTemplate,
        pool: Arc<Pool>,
    ) -> Self {
        let mut hasher = Hasher::new();
        hasher.field(&weights.digest().0).field(template.source().as_bytes());
        let (name, digest) = (name.into(), hasher.finish());
        Self { name, weights, tokenizer, template, pool, engine: None, digest }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.tokenizer
    }

    /// The longest sequence that the model reads, in tokens.
    pub fn max_seq_len(&self) -> usize {
        self.weights.config().max_seq_len
    }

    /// Log-probabilities, in nats, of the tokens of each sequence but the first. A score does not depend
    /// on what else is scored.
    ///
    /// # Errors
    /// A sequence is longer than the model reads or has ids outside its vocabulary, or the work was
    /// stopped.
    pub fn token_log_probs(
        &mut self,
        sequences: &[&[u32]],
        stop: &Stop,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let capacity = SCORED_TOKENS.max(self.max_seq_len());
        let mut out = Vec::with_capacity(sequences.len());
        let mut start = 0;
        while start < sequences.len() {
            stop.check()?;
            let end = start + fitting(&sequences[start..], capacity);
            out.extend(self.score(&sequences[start..end])?);
            start = end;
        }
        Ok(out)
    }

    /// Scores sequences that fit the engine together.
    fn score(&mut self, sequences: &[&[u32]]) -> Result<Vec<Vec<f64>>, Error> {
        let batch = Batch::from_sequences(sequences);
        if batch.targets.is_empty() {
            return Ok(vec![Vec::new(); sequences.len()]);
        }
        let (weights, name) = (self.weights, &self.name);
        let failed = |source| subject_error(name, "score", source);
        if self.engine.is_none() {
            let capacity = SCORED_TOKENS.max(weights.config().max_seq_len);
            let engine = Engine::for_scoring(weights.config(), capacity, Arc::clone(&self.pool));
            self.engine = Some(engine.map_err(failed)?);
        }
        let Some(engine) = self.engine.as_mut() else { return Ok(Vec::new()) };
        let scores = engine.scores(weights, &batch).map_err(failed)?;
        let mut rest = scores.log_prob.iter().map(|&log_prob| f64::from(log_prob));
        let of = |sequence: &&[u32]| rest.by_ref().take(sequence.len().saturating_sub(1)).collect();
        Ok(sequences.iter().map(of).collect())
    }

    /// The prompt's token ids, the first being the one that starts a document.
    fn prompt_ids(&self, prompt: &Prompt) -> Result<Vec<u32>, Error> {
        match prompt {
            Prompt::Text { text } => Ok(self.document_ids(text)),
            Prompt::Chat { messages } => {
                let encoded = self.template.encode(self.tokenizer, messages, Part::Prompt);
                let failed = |source| subject_error(&self.name, "read the prompt", source);
                encoded.map(|encoded| encoded.token_ids).map_err(failed)
            }
        }
    }

    fn document_ids(&self, text: &str) -> Vec<u32> {
        let start = std::iter::once(self.tokenizer.end_of_text());
        start.chain(self.tokenizer.encode(text)).collect()
    }

    fn answer(&self, ask: &Ask, mut token_ids: Vec<u32>, finish: Finish) -> Answer {
        if finish == Finish::Stop {
            token_ids.pop();
        }
        let special = |id: &u32| Special::ALL.get(*id as usize).map(|s| s.text().to_owned());
        Answer {
            item: ask.item.clone(),
            text: self.tokenizer.decode(&token_ids).trim().to_owned(),
            specials: token_ids.iter().filter_map(special).collect(),
            token_ids,
            finish,
        }
    }
}

impl Subject for Model<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn ask(
        &mut self,
        asks: &[Ask],
        sampling: &Sampling,
        stop: &Stop,
    ) -> Result<Vec<Answer>, Error> {
        let prompts =
            asks.iter().map(|ask| self.prompt_ids(&ask.prompt)).collect::<Result<Vec<_>, _>>()?;
        let fits = |prompt: &Vec<u32>| !prompt.is_empty() && prompt.len() < self.max_seq_len();
        let requests: Vec<Request> = asks
            .iter()
            .zip(&prompts)
            .filter(|(_, prompt)| fits(prompt))
            .map(|(ask, prompt)| Request { prompt: prompt.clone(), seed: ask.seed })
            .collect();
        let sampling = model::Sampling {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            max_new_tokens: sampling.max_new_tokens,
            stop: vec![self.tokenizer.end_of_turn(), self.tokenizer.end_of_text()],
        };
        let mut completions =
            generate(self.weights, &self.pool, &requests, &sampling, &mut |_, _| {}, stop)
                .map_err(|source| subject_error(&self.name, "answer", source))?
                .into_iter();
        let answer = |(ask, prompt): (&Ask, &Vec<u32>)| {
            let completion = if fits(prompt) { completions.next() } else { None };
            match completion {
                Some(completion) => {
                    let finish = match completion.finish {
                        model::Finish::Stop => Finish::Stop,
                        model::Finish::Length => Finish::Length,
                    };
                    self.answer(ask, completion.token_ids, finish)
                }
                None => self.answer(ask, Vec::new(), Finish::TooLong),
            }
        };
        Ok(asks.iter().zip(&prompts).map(answer).collect())
    }

    /// Texts longer than the model reads are scored by their beginning.
    fn log_probs(&mut self, texts: &[String], stop: &Stop) -> Result<Vec<f64>, Error> {
        let mut sequences: Vec<Vec<u32>> =
            texts.iter().map(|text| self.document_ids(text)).collect();
        sequences.iter_mut().for_each(|ids| ids.truncate(self.max_seq_len()));
        let sequences: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
        let scores = self.token_log_probs(&sequences, stop)?;
        Ok(scores.iter().map(|scores| scores.iter().sum()).collect())
    }
}

/// How many of the sequences, from the first on, fit into a batch; at least one.
fn fitting(sequences: &[&[u32]], capacity: usize) -> usize {
    let mut tokens = 0;
    let fits = |sequence: &&&[u32]| {
        tokens += sequence.len();
        tokens <= capacity
    };
    sequences.iter().take_while(fits).count().max(1)
}

/// The error of a model that was asked; a stop stays a stop.
fn subject_error<E>(model: &str, operation: &'static str, source: E) -> Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    let source: Box<dyn std::error::Error + Send + Sync> = Box::new(source);
    match source.downcast::<model::Error>() {
        Ok(error) => match *error {
            model::Error::Interrupted(interrupted) => interrupted.into(),
            error => Error::Subject { model: model.to_owned(), operation, source: error.into() },
        },
        Err(source) => Error::Subject { model: model.to_owned(), operation, source },
    }
}
