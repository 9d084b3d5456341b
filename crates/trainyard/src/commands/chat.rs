//! `trainyard chat`: talk to a model of a run.

use crate::args;
use crate::error::{Failure, Kind, Result};
use crate::output::{Output, complain};
use crate::run::RunDirectory;
use crate::stages::models::{self, Speaker};
use crate::threads;
use base::{Message, Role, Seed, Stop};
use kernels::Pool;
use model::{Finish, Request, Sampling, generate};
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};
use tokens::{Part, StreamDecoder};

/// Answers one question, or one after the other until the input ends.
pub fn chat(args: &args::Chat, output: Output, stop: &Stop) -> Result<()> {
    let run = RunDirectory::find(args.at.dir.as_deref())?;
    if !args.temperature.is_finite() || args.temperature < 0.0 {
        let message = format!("--temperature is {}, expected a number from 0", args.temperature);
        return Err(Failure::new(Kind::Usage, message));
    }
    let (name, speaker) = models::of_run(&run, args.model)?;
    let pool = threads::pool(None)?;
    let mut talk = Talk { args, speaker: &speaker, pool: &pool, output, turns: Vec::new(), stop };
    if let Some(system) = &args.system {
        talk.turns.push(Message::new(Role::System, system));
    }
    if let Some(prompt) = &args.prompt {
        let answer = talk.answer(prompt)?;
        return output.json(&json!({ "model": name, "prompt": prompt, "answer": answer }));
    }
    if std::io::stdin().is_terminal() {
        let run = run.display();
        complain(format!("the {name} model of {run}; an empty line forgets, Ctrl-D ends"));
    }
    talk.listen(name)
}

/// A conversation under way.
struct Talk<'a> {
    args: &'a args::Chat,
    speaker: &'a Speaker,
    pool: &'a Pool,
    output: Output,
    turns: Vec<Message>,
    stop: &'a Stop,
}

impl Talk<'_> {
    fn listen(&mut self, name: &str) -> Result<()> {
        let opening = self.turns.clone();
        loop {
            if std::io::stdin().is_terminal() {
                write!(std::io::stderr(), "> ").ok();
            }
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            if read.map_err(base::FsError::io("read", std::path::Path::new("stdin")))? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                self.turns.clone_from(&opening);
                continue;
            }
            let answer = self.answer(line.trim_end_matches(['\n', '\r']))?;
            self.output
                .json(&json!({ "model": name, "prompt": line.trim_end(), "answer": answer }))?;
        }
    }

    /// Streams the answer to stdout and remembers it.
    fn answer(&mut self, prompt: &str) -> Result<String> {
        self.turns.push(Message::new(Role::User, prompt));
        let ids = self.fit()?;
        let sampling = Sampling {
            temperature: self.args.temperature,
            max_new_tokens: self.args.max_new_tokens,
            stop: vec![self.speaker.tokenizer.end_of_turn(), self.speaker.tokenizer.end_of_text()],
            ..Sampling::default()
        };
        let seed = Seed(self.args.seed).at(self.turns.len() as u64);
        let request = Request { prompt: ids, seed };
        let mut decoder = StreamDecoder::new(&self.speaker.tokenizer);
        let mut text = String::new();
        let mut show = |piece: &str| {
            if self.output == Output::Lines {
                let mut out = std::io::stdout().lock();
                out.write_all(piece.as_bytes()).and_then(|()| out.flush()).ok();
            }
            text.push_str(piece);
        };
        let mut on_token = |_: usize, token: u32| show(&decoder.push(token));
        let made = generate(
            &self.speaker.weights,
            self.pool,
            &[request],
            &sampling,
            &mut on_token,
            self.stop,
        );
        let made = made.map_err(|error| Failure::from(error).answering(self.stop))?;
        show(&decoder.finish());
        let cut = made.first().is_some_and(|completion| completion.finish == Finish::Length);
        self.output.line(if cut { " […]" } else { "" });
        self.turns.push(Message::new(Role::Assistant, text.clone()));
        Ok(text)
    }

    /// The prompt's ids; the oldest exchanges are forgotten where the context is too short for all.
    fn fit(&mut self) -> Result<Vec<u32>> {
        let limit = self.speaker.weights.config().max_seq_len;
        loop {
            let encoded =
                self.speaker.template.encode(&self.speaker.tokenizer, &self.turns, Part::Prompt)?;
            if encoded.len() < limit {
                return Ok(encoded.token_ids);
            }
            let first = self.turns.iter().position(|turn| turn.role == Role::User).unwrap_or(0);
            if self.turns.len() <= first + 1 {
                let message = format!(
                    "the question has {} tokens, the model reads {limit} with its answer",
                    encoded.len()
                );
                self.turns.pop();
                return Err(Failure::new(Kind::Usage, message).hint("ask something shorter"));
            }
            self.turns.drain(first..(first + 2).min(self.turns.len() - 1));
        }
    }
}
