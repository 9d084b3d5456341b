//! The `tokenizers` crate as an independent witness: the same merges from the same text, the same ids,
//! and our file loads there.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Silent, Stop};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{
    AddedToken, Model, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer as Oracle,
};
use tokens::{Special, Tokenizer, TokenizerSettings};

fn train_oracle(texts: &[String], vocab_size: usize, min_count: u64) -> Oracle {
    let split = Split::new(
        SplitPattern::Regex(tokens::split::PATTERN.to_owned()),
        SplitDelimiterBehavior::Isolated,
        false,
    );
    let mut oracle = Oracle::new(BPE::default());
    oracle.with_pre_tokenizer(Some(PreTokenizerWrapper::Sequence(Sequence::new(vec![
        split.unwrap().into(),
        ByteLevel::new(false, true, false).into(),
    ]))));
    let special =
        Special::ALL.iter().map(|special| AddedToken::from(special.text(), true)).collect();
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(vocab_size)
        .min_frequency(min_count)
        .special_tokens(special)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let mut trainer = TrainerWrapper::BpeTrainer(trainer);
    oracle.train(&mut trainer, texts.iter()).unwrap();
    oracle
}

fn check_training(texts: &[String], vocab_size: usize, min_count: u64) {
    let settings = TokenizerSettings { vocab_size, min_count, ..TokenizerSettings::default() };
    let ours = Tokenizer::train(&settings, texts, 2, &Silent, &Stop::new()).unwrap();
    let oracle = train_oracle(texts, vocab_size, min_count);
    assert_eq!(ours.vocab_size(), oracle.get_model().get_vocab_size());
    let json: serde_json::Value = serde_json::from_str(&ours.to_json()).unwrap();
    let theirs: serde_json::Value =
        serde_json::from_str(&oracle.to_string(false).unwrap()).unwrap();
    assert_eq!(json["model"]["merges"], theirs["model"]["merges"]);
    assert_eq!(json["model"]["vocab"], theirs["model"]["vocab"]);
    assert_eq!(json["added_tokens"], theirs["added_tokens"]);
}

#[test]
fn training_learns_the_same_merges() {
    check_training(&common::texts(60), 600, 2);
    check_training(&common::texts(10), 2000, 0);
    // Ties, overlapping pairs and a vocabulary that the text cannot fill.
    let runs =
        ["aaaaaaa aaaa aa aaaaaaaaa", "abababab bababa abcabcabcbc", "!!!! ==== -- --- ====="];
    check_training(&runs.map(String::from), 400, 0);
    check_training(&[common::text(5, 3000).replace(' ', "")], 900, 1);
}

#[test]
fn encoding_gives_the_same_ids() {
    let ours = common::tokenizer();
    let oracle: Oracle = ours.to_json().parse().unwrap();
    for text in common::texts(80).iter().map(String::as_str).chain([
        "",
        "\u{0}\u{7f}\u{feff}",
        "  \r\n\r\n\t x",
        "<| end|> <|en",
        "Zażółć gęślą jaźń ٣٤٥ ½ 🦀🦀🦀",
    ]) {
        assert_eq!(ours.encode(text), oracle.encode(text, true).unwrap().get_ids(), "{text:?}");
    }
    let rendered = "<|endoftext|><|user|>hi there<|end|><|assistant|>";
    assert_eq!(
        ours.encode_with_special(rendered),
        oracle.encode(rendered, true).unwrap().get_ids()
    );
    let ids: Vec<u32> = (0..ours.vocab_size() as u32).collect();
    assert_eq!(ours.decode(&ids), oracle.decode(&ids, true).unwrap());
}
