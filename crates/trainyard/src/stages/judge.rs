//! Stage 9: the base, the SFT and the aligned model measured side by side, with two baselines.

use super::models::{Models, Speaker};
use super::relay::Made;
use super::round::Round;
use super::{ALGORITHM, Relay};
use crate::error::Result;
use crate::run::decisions::By;
use crate::run::{Finished, Yield};
use base::{Item, Seed};
use judge::baseline::{Compressed, Trigram, zstd_bits};
use judge::bits::{self, BitsReport, HeldOut, model_bits, trigram_bits};
use judge::evaluate::{self, Comparison, Evaluation, compare, evaluate};
use judge::gate::{self, GateReport, Measured};
use judge::intervals::{Interval, wilson};
use posttrain::derive;
use posttrain::round::dpo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tokens::Tokenizer;
use tokens::mixture::{read_rows, read_text};

/// The stage's name.
pub const NAME: &str = "09-judge";
/// All that was measured.
pub const FILE: &str = "judged.json";

/// How the models are measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct JudgeSettings {
    /// How held-out questions are asked and graded: the figures of exact and partial match.
    pub answers: evaluate::Settings,
    /// How the aligned model is compared with the SFT model on held-out prompts.
    pub preference: evaluate::Settings,
    /// How held-out text is scored.
    pub bits: bits::Settings,
}

/// All that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// Bits per byte of held-out text, for each model.
    pub bits: Vec<BitsReport>,
    /// The same for the 3-gram model.
    pub trigram: BitsReport,
    /// The same for the compressor.
    pub zstd: Compressed,
    /// Answers to held-out questions, for each model.
    pub answers: Vec<Evaluation>,
    /// The SFT model against the base model on those answers.
    pub sft_over_base: Comparison,
    /// Each model's answers as drawn for the preference.
    pub drawn: Vec<Evaluation>,
    /// The aligned model against the SFT model, as the verifier prefers.
    pub aligned_over_sft: Comparison,
    /// Share of held-out preferences whose better answer each model finds more probable.
    pub preference_accuracy: Vec<Interval>,
    /// What the gate looked at.
    pub measured: Measured,
    /// What the gate says.
    pub gate: GateReport,
}

impl Relay<'_> {
    /// Measures, and lets the gate decide.
    #[allow(clippy::too_many_arguments)] // one for each stage that is read
    pub fn judge(
        &self,
        tokenizer: &Finished,
        mixture: &Finished,
        questions: &Finished,
        models: &Models<'_>,
        round: &Round,
        redteam: &Finished,
    ) -> Result<Finished> {
        let settings = (&self.recipe.judge, &self.recipe.gate);
        let inputs = [
            tokenizer,
            mixture,
            questions,
            models.base,
            models.sft,
            models.aligned,
            &round.preferences,
            &round.reward,
            redteam,
        ];
        let done = self.perform(NAME, ALGORITHM, &settings, &inputs, |out, seed| {
            let items = derive::read_items(&questions.path(derive::HELD_OUT_FILE))?;
            let ids = Tokenizer::load(&tokenizer.path(super::tokenizer::FILE))?;
            let held_out = held_out(mixture)?;
            let (trigram, zstd) = self.baselines(mixture, &ids, &held_out, seed)?;
            let mut asked = Asked::default();
            for (name, stage) in models.all() {
                let speaker = Speaker::load(&stage.directory, &tokenizer.directory)?;
                self.ask(name, &speaker, &items, &held_out, seed, &mut asked)?;
                asked.preference_accuracy.push(self.preference_accuracy(&speaker, round, out)?);
            }
            let judged = self.sum_up(asked, trigram, zstd, round, redteam, seed)?;
            base::write_json(&out.join(FILE), &judged)?;
            Ok(made(&judged))
        })?;
        let judged: Judged = base::read_json(&done.path(FILE))?;
        let failed: Vec<_> = judged.gate.failed().map(|check| check.name.clone()).collect();
        self.decided(
            By::Gate,
            "release gate",
            &done,
            Made {
                question: "may the aligned weights be released".into(),
                options: vec!["release".into(), "refuse".into()],
                chosen: if judged.gate.passed { "release" } else { "refuse" }.into(),
                reason: match failed.is_empty() {
                    true => {
                        format!("all {} thresholds of the recipe are met", judged.gate.checks.len())
                    }
                    false => format!("not met: {}", failed.join(", ")),
                },
            },
        )?;
        Ok(done)
    }

    /// What two simple methods reach on the same held-out text, after the same reading.
    fn baselines(
        &self,
        mixture: &Finished,
        tokenizer: &Tokenizer,
        held_out: &[HeldOut],
        seed: Seed,
    ) -> Result<(BitsReport, Compressed)> {
        let at = &mixture.directory;
        let sequences = tokens::shards::open_all(at, "train")?;
        let mut read = Vec::new();
        for shard in &sequences {
            for index in 0..shard.num_sequences() {
                read.push(shard.sequence(index)?);
            }
        }
        self.stop.check()?;
        let trigram = Trigram::train(&read, tokenizer.vocab_size())?;
        let trigram = trigram_bits(&trigram, held_out, tokenizer, seed.derive("trigram"))?;
        drop(read);
        self.stop.check()?;
        let dictionary = joined(read_text(at, "train", tokenizer)?)?;
        let text = joined(read_text(at, "held-out", tokenizer)?)?;
        Ok((trigram, zstd_bits(dictionary.as_bytes(), text.as_bytes())?))
    }

    /// Everything that is asked of one model.
    fn ask(
        &self,
        name: &str,
        speaker: &Speaker,
        items: &[Item],
        held_out: &[HeldOut],
        seed: Seed,
        asked: &mut Asked,
    ) -> Result<()> {
        let settings = &self.recipe.judge;
        let mut subject = speaker.model(name, &self.pool);
        let (screen, stop) = (self.screen, self.stop);
        let bits =
            model_bits(&mut subject, held_out, &settings.bits, seed.derive("bits"), screen, stop)?;
        asked.bits.push(bits);
        let questions = seed.derive("answers");
        let answers = evaluate(&mut subject, items, &settings.answers, questions, screen, stop)?;
        asked.answers.push(answers);
        if name != "base" {
            let draws = seed.derive("preference");
            let drawn = evaluate(&mut subject, items, &settings.preference, draws, screen, stop)?;
            asked.drawn.push(drawn);
        }
        Ok(())
    }

    /// How often a model finds the better answer of a held-out pair more probable.
    fn preference_accuracy(
        &self,
        speaker: &Speaker,
        round: &Round,
        out: &Path,
    ) -> Result<Interval> {
        let pairs = super::round::read_preferences(&round.preferences)?;
        let right = dpo::preference_accuracy(
            &self.recipe.round.dpo,
            &pairs,
            &speaker.encoder(),
            &speaker.weights,
            self.seed(super::round::DPO),
            &self.training(out),
        )?;
        let count = right.iter().filter(|right| **right).count();
        Ok(wilson(count as u64, right.len() as u64))
    }

    fn sum_up(
        &self,
        asked: Asked,
        trigram: BitsReport,
        zstd: Compressed,
        round: &Round,
        redteam: &Finished,
        seed: Seed,
    ) -> Result<Judged> {
        let settings = &self.recipe.judge;
        let Asked { bits, answers, drawn, preference_accuracy } = asked;
        let margin = settings.answers.tie_margin;
        let sft_over_base =
            compare(&answers[1], &answers[0], margin, seed.derive("sft-over-base"))?;
        let margin = settings.preference.tie_margin;
        let aligned_over_sft =
            compare(&drawn[1], &drawn[0], margin, seed.derive("aligned-over-sft"))?;
        let red = |name: &str| redteam.manifest.measures.get(name).copied();
        let measured = Measured {
            bits_per_byte: Some(bits[0].overall.bits_per_byte.estimate),
            zstd_bits_per_byte: Some(zstd.bits_per_byte),
            trigram_bits_per_byte: Some(trigram.overall.bits_per_byte.estimate),
            sft_gain_low: Some(sft_over_base.partial_difference.low),
            exact_match: Some(answers[2].overall.exact.estimate),
            partial_match: Some(answers[2].overall.partial.estimate),
            win_rate_low: Some(aligned_over_sft.preference.rate.low),
            preference_accuracy: round.preference_accuracy(),
            attack_success_rate: red("aligned-attack-success-rate"),
            over_refusal: red("aligned-over-refusal"),
            failed_tests: red("aligned-failed-tests"),
        };
        let gate = gate::decide(&self.recipe.gate, &measured);
        Ok(Judged {
            bits,
            trigram,
            zstd,
            answers,
            sft_over_base,
            drawn,
            aligned_over_sft,
            preference_accuracy,
            measured,
            gate,
        })
    }
}

/// What the models gave, in their order.
#[derive(Default)]
struct Asked {
    bits: Vec<BitsReport>,
    answers: Vec<Evaluation>,
    drawn: Vec<Evaluation>,
    preference_accuracy: Vec<Interval>,
}

/// The held-out documents of a mixture, in the order of its shards.
fn held_out(mixture: &Finished) -> Result<Vec<HeldOut>> {
    let mut rows = read_rows(&mixture.directory, "held-out")?;
    rows.retain(|row| row.sequence.is_some());
    rows.sort_by_key(|row| row.sequence);
    let mut rows = rows.into_iter();
    let mut documents = Vec::new();
    for shard in tokens::shards::open_all(&mixture.directory, "held-out")? {
        for (index, row) in (0..shard.num_sequences()).zip(&mut rows) {
            let token_ids = shard.sequence(index)?;
            documents.push(HeldOut { category: row.category, token_ids });
        }
    }
    Ok(documents)
}

fn joined(texts: impl Iterator<Item = Result<String, tokens::Error>>) -> Result<String> {
    let mut whole = String::new();
    for text in texts {
        whole.push_str(&text?);
        whole.push('\n');
    }
    Ok(whole)
}

fn made(judged: &Judged) -> Yield {
    let mut measures = BTreeMap::new();
    for (bits, answers) in judged.bits.iter().zip(&judged.answers) {
        let name = &bits.model;
        measures.insert(format!("{name}-bits-per-byte"), bits.overall.bits_per_byte.estimate);
        measures.insert(format!("{name}-exact-match"), answers.overall.exact.estimate);
        measures.insert(format!("{name}-partial-match"), answers.overall.partial.estimate);
    }
    let wins = judged.aligned_over_sft.preference.rate;
    measures.insert("zstd-bits-per-byte".into(), judged.zstd.bits_per_byte);
    measures.insert("trigram-bits-per-byte".into(), judged.trigram.overall.bits_per_byte.estimate);
    measures.insert("aligned-win-rate".into(), wins.estimate);
    let match_of = |i: usize| 100.0 * judged.answers[i].overall.exact.estimate;
    Yield {
        outputs: vec![FILE.into()],
        counts: BTreeMap::from([("held-out-items".into(), judged.answers[0].overall.items)]),
        summary: format!(
            "bits per byte {:.3} (3-gram {:.3}, zstd {:.3}); exact answers {:.0}% base, {:.0}% SFT, \
             {:.0}% aligned; aligned preferred over SFT {:.0}% ({:.0} to {:.0})",
            judged.bits[0].overall.bits_per_byte.estimate,
            judged.trigram.overall.bits_per_byte.estimate,
            judged.zstd.bits_per_byte,
            match_of(0),
            match_of(1),
            match_of(2),
            100.0 * wins.estimate,
            100.0 * wins.low,
            100.0 * wins.high
        ),
        measures,
    }
}
