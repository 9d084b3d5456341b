//! The command line: every command, option and its help text.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Raw pages in, an aligned and red-teamed assistant out.
///
/// A recipe says what goes in and how large the model is; `trainyard run` takes it through every
/// stage. Everything of a run lies under one directory (runs/NAME).
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
pub struct Arguments {
    /// Print the result as one JSON object on stdout
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take a recipe through every stage: corpus, tokenizer, mixture, pretraining, SFT, alignment
    /// round, red team, judgement, release, report
    ///
    /// Stages that are already there and right are skipped; one that was cut off goes on where it
    /// stopped. Ctrl-C saves a checkpoint first.
    Run(Run),
    /// Write a commented recipe for your own data into a new directory
    New(New),
    /// Show how far a run is, stage by stage, and the digests of what it made
    Status(At),
    /// Talk to a model of a run
    Chat(Chat),
    /// Answer the held-out questions with a model of a run and grade the answers
    Eval(Eval),
    /// Write the report of a run again, from what is there now
    Report(At),
    /// Add a decision that a person made to a run's log, or list the log
    Decide(Decide),
}

/// Which run is meant.
#[derive(Args, Debug, Clone)]
pub struct At {
    /// The run's directory; by default the only one, or the latest, under runs/
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Run {
    /// A recipe file, or the name of a built-in recipe
    #[arg(default_value = "rust-docs")]
    pub recipe: String,
    /// Where everything of the run goes [default: runs/NAME, with the recipe's name]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Use this seed instead of the recipe's
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads to compute with [default: all cores]; the result is the same for any number
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Stop after this stage, such as `corpus` or `pretrain`
    #[arg(long, value_name = "STAGE")]
    pub until: Option<String>,
}

#[derive(Args, Debug)]
pub struct New {
    /// The directory to make
    pub dir: PathBuf,
}

/// One of a run's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// After pretraining: completes text
    Base,
    /// After supervised fine-tuning: answers
    Sft,
    /// After the alignment round: answers better
    Aligned,
}

#[derive(Args, Debug)]
pub struct Chat {
    #[command(flatten)]
    pub at: At,
    /// Which model [default: the newest]
    #[arg(long)]
    pub model: Option<Which>,
    /// Ask this one question and print the answer alone
    #[arg(long, short, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Instructions for the whole conversation
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// 0 always takes the likeliest token; higher values vary more
    #[arg(long, default_value_t = 0.0)]
    pub temperature: f32,
    /// Most tokens in an answer
    #[arg(long, default_value_t = 96, value_name = "N")]
    pub max_new_tokens: usize,
    /// Seed of the sampling
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Args, Debug)]
pub struct Eval {
    #[command(flatten)]
    pub at: At,
    /// Which model [default: the newest]
    #[arg(long)]
    pub model: Option<Which>,
    /// Threads to compute with [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

#[derive(Args, Debug)]
pub struct Decide {
    #[command(flatten)]
    pub at: At,
    /// What was decided, in a sentence; without it the log is listed
    pub what: Option<String>,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
    /// An option that was considered (repeat it for each)
    #[arg(long = "option", value_name = "TEXT")]
    pub options: Vec<String>,
    /// The stage it is about
    #[arg(long)]
    pub stage: Option<String>,
    /// Who decided [default: the name of the logged-in user]
    #[arg(long)]
    pub by: Option<String>,
}
