//! Conversations to tokens, with a mask of what is learned.
//!
//! The template is Jinja, as Hugging Face's tokenizers carry it, and is the only description of the
//! format: token ids are made from what it renders, with marks in the place of the messages. So the text
//! of the template becomes special tokens where it spells them, and the text of a message never does;
//! and no merge crosses the boundary between the two.
//!
//! Where special tokens stand around each content, as in the default template, the ids are those that
//! Hugging Face's tokenizers give for the rendered text.
//!
//! A conversation is `<|endoftext|>`, and for each turn `<|user|>` (or system, assistant), the content and
//! `<|end|>`, with nothing between: context is dear in a small model.

use crate::Error;
use crate::special::Special;
use crate::tokenizer::Tokenizer;
use base::{Message, Role};
use minijinja::{Environment, ErrorKind, context};

/// The template of this program's own models.
pub const DEFAULT_TEMPLATE: &str = "{{ bos_token }}{% for message in messages %}\
{% if message['role'] not in ['system', 'user', 'assistant'] %}\
{{ raise_exception('unknown role: ' + message['role']) }}{% endif %}\
{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

/// How much of a conversation is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All given messages, and then the header of the answer to come.
    Prompt,
    /// All given messages, the last being the answer.
    Full,
}

/// A conversation as token ids. The three lists have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The ids.
    pub token_ids: Vec<u32>,
    /// True on what the model learns to write: the assistant's tokens, with the `<|end|>` that closes
    /// each turn.
    pub loss_mask: Vec<bool>,
    /// True on the tokens of the format: headers and terminators. Llama 3 masks them in DPO.
    pub formatting: Vec<bool>,
}

/// What cutting a conversation to a length has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It fitted whole.
    Whole,
    /// It was cut; what is left of the assistant's text is still learned.
    Shortened,
    /// It was cut, and nothing to learn is left: the row must be dropped and counted.
    NothingLearned,
}

impl Encoded {
    /// Tokens in the conversation.
    pub fn len(&self) -> usize {
        self.token_ids.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.token_ids.is_empty()
    }

    /// Tokens that are learned.
    pub fn num_learned(&self) -> usize {
        self.loss_mask.iter().filter(|&&learned| learned).count()
    }

    /// Keeps the first `capacity` tokens.
    pub fn truncate(&mut self, capacity: usize) -> Cut {
        if self.len() <= capacity {
            return Cut::Whole;
        }
        self.token_ids.truncate(capacity);
        self.loss_mask.truncate(capacity);
        self.formatting.truncate(capacity);
        if self.num_learned() > 0 { Cut::Shortened } else { Cut::NothingLearned }
    }

    fn push(&mut self, ids: &[u32], learned: bool, formatting: bool) {
        self.token_ids.extend_from_slice(ids);
        self.loss_mask.resize(self.token_ids.len(), learned);
        self.formatting.resize(self.token_ids.len(), formatting);
    }
}

/// A chat template.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    source: String,
    environment: Environment<'static>,
}

/// A part of a rendered conversation.
enum Piece<'a> {
    Template(&'a str),
    Content(&'a Message),
}

impl Default for ChatTemplate {
    fn default() -> Self {
        let mut environment = environment();
        // The constant parses: a test renders it.
        environment.add_template("chat", DEFAULT_TEMPLATE).ok();
        Self { source: DEFAULT_TEMPLATE.to_owned(), environment }
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // As `transformers` sets up Jinja.
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_function(
        "raise_exception",
        |message: String| -> Result<String, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        },
    );
    environment
}

impl ChatTemplate {
    /// A template of one's own. It must write each message's content as it is, and `<|end|>` after it.
    ///
    /// # Errors
    /// It does not parse or render, alters contents, or does not close the assistant's turn.
    pub fn new(source: &str) -> Result<Self, Error> {
        let mut environment = environment();
        environment.add_template_owned("chat", source.to_owned())?;
        let template = Self { source: source.to_owned(), environment };
        let probe = [Message::new(Role::User, " a \n"), Message::new(Role::Assistant, " b \n")];
        template.with_pieces(&probe, Part::Full, |pieces| template.check_pieces(pieces))??;
        Ok(template)
    }

    /// The Jinja source, as it goes into `tokenizer_config.json`.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The conversation as text, as `transformers` renders it: for reading and for other programs. Text
    /// that spells special tokens cannot be told apart here; [`ChatTemplate::encode`] can.
    ///
    /// # Errors
    /// The template does not render.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<String, Error> {
        let template = self.environment.get_template("chat")?;
        Ok(template.render(context! {
            messages => messages,
            add_generation_prompt => add_generation_prompt,
            bos_token => Special::EndOfText.text(),
            eos_token => Special::EndOfTurn.text(),
        })?)
    }

    /// The conversation as ids with its masks.
    ///
    /// # Errors
    /// The template does not render, alters contents, or does not close the assistant's turn.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        part: Part,
    ) -> Result<Encoded, Error> {
        self.with_pieces(messages, part, |pieces| {
            self.check_pieces(pieces)?;
            let mut encoded = Encoded::default();
            let mut closes_answer = false;
            for piece in pieces {
                match piece {
                    Piece::Content(message) => {
                        let is_answer = message.role == Role::Assistant;
                        encoded.push(&tokenizer.encode(&message.content), is_answer, false);
                        closes_answer = is_answer;
                    }
                    Piece::Template(text) => {
                        let ids = tokenizer.encode_with_special(text);
                        let closing = usize::from(closes_answer).min(ids.len());
                        encoded.push(&ids[..closing], true, true);
                        encoded.push(&ids[closing..], false, true);
                        closes_answer = false;
                    }
                }
            }
            Ok(encoded)
        })?
    }

    /// Renders with a mark in the place of each content, and cuts at the marks. The marks are characters
    /// for private use; contents are not in the rendered text, so they cannot be taken for marks.
    fn with_pieces<R>(
        &self,
        messages: &[Message],
        part: Part,
        f: impl FnOnce(&[Piece<'_>]) -> R,
    ) -> Result<R, Error> {
        let mark = |index: usize| format!("\u{10fffd}{index}\u{10fffc}");
        let marked: Vec<Message> =
            messages.iter().enumerate().map(|(i, m)| Message::new(m.role, mark(i))).collect();
        let rendered = self.render(&marked, part == Part::Prompt)?;
        let mut pieces = Vec::new();
        let mut rest = rendered.as_str();
        for (index, message) in messages.iter().enumerate() {
            let Some((before, after)) = rest.split_once(&mark(index)) else {
                return Err(self.unusable("does not write every message in order"));
            };
            pieces.extend([Piece::Template(before), Piece::Content(message)]);
            rest = after;
        }
        pieces.push(Piece::Template(rest));
        if pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Template(text) if text.contains('\u{10fffd}')))
        {
            return Err(self.unusable("writes a message more than once"));
        }
        let whole: String = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Template(text) => text,
                Piece::Content(message) => message.content.as_str(),
            })
            .collect();
        if whole != self.render(messages, part == Part::Prompt)? {
            return Err(self.unusable("alters the text of messages"));
        }
        Ok(f(&pieces))
    }

    /// The text after each of the assistant's contents must start with the token that ends a turn, or
    /// there would be nothing to learn to stop at.
    fn check_pieces(&self, pieces: &[Piece<'_>]) -> Result<(), Error> {
        let closed = pieces.windows(2).all(|pair| match pair {
            [Piece::Content(message), Piece::Template(text)] if message.role == Role::Assistant => {
                Special::at_start(text) == Some(Special::EndOfTurn)
            }
            _ => true,
        });
        if closed {
            Ok(())
        } else {
            Err(self.unusable("does not close the assistant's turn with <|end|>"))
        }
    }

    fn unusable(&self, problem: &'static str) -> Error {
        Error::TemplateUnusable { problem, template: self.source.clone() }
    }
}
