//! Round trips, determinism, files and streaming.
#![allow(clippy::unwrap_used)]

mod common;

use base::{Silent, Stop};
use proptest::prelude::*;
use std::sync::LazyLock;
use tokens::{ChatTemplate, Error, Special, StreamDecoder, Tokenizer, TokenizerSettings};

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(common::tokenizer);

#[test]
fn training_forgets_order_and_threads() {
    let expected = TOKENIZER.to_json();
    let settings = TokenizerSettings { vocab_size: 500, ..TokenizerSettings::default() };
    for threads in [1, 2, 5] {
        let mut texts = common::texts(40);
        texts.reverse();
        let other = Tokenizer::train(&settings, &texts, threads, &Silent, &Stop::new()).unwrap();
        assert_eq!(other.to_json(), expected, "{threads} threads");
    }
}

#[test]
fn batches_encode_as_single_texts_do() {
    let texts = common::texts(50);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let single: Vec<Vec<u32>> = texts.iter().map(|text| TOKENIZER.encode(text)).collect();
    for threads in [0, 1, 2, 3] {
        assert_eq!(TOKENIZER.encode_all(&texts, threads), single);
    }
}

#[test]
fn special_tokens_never_come_from_text() {
    for special in Special::ALL {
        let ids = TOKENIZER.encode(special.text());
        assert!(ids.iter().all(|&id| id as usize >= Special::ALL.len()), "{special:?}: {ids:?}");
        assert_eq!(TOKENIZER.decode(&ids), special.text());
        assert_eq!(TOKENIZER.encode_with_special(special.text()), [special.id()]);
        assert_eq!(TOKENIZER.decode(&[special.id()]), "");
        assert_eq!(TOKENIZER.decode_with_special(&[special.id(), u32::MAX]), special.text());
        assert_eq!(TOKENIZER.bytes_of(special.id()), 0);
    }
}

#[test]
fn the_settings_and_the_sample_are_checked() {
    let train = |vocab_size, sample: &[String]| {
        let settings = TokenizerSettings { vocab_size, ..TokenizerSettings::default() };
        Tokenizer::train(&settings, sample, 1, &Silent, &Stop::new())
    };
    assert!(matches!(train(260, &["a".into()]), Err(Error::VocabSize { least: 261, .. })));
    assert!(matches!(train(300, &[]), Err(Error::NoDocuments { .. })));
    assert_eq!(train(300, &["a".into()]).unwrap().vocab_size(), 261);
    let stop = Stop::new();
    stop.raise();
    let settings = TokenizerSettings::default();
    let stopped = Tokenizer::train(&settings, &common::texts(3), 1, &Silent, &stop);
    assert!(matches!(stopped, Err(Error::Interrupted(_))));
}

#[test]
fn a_saved_tokenizer_is_loaded_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokenizer.json");
    TOKENIZER.save(&path).unwrap();
    let loaded = Tokenizer::load(&path).unwrap();
    assert_eq!(loaded.to_json(), TOKENIZER.to_json());
    let text = common::text(99, 500);
    assert_eq!(loaded.encode(&text), TOKENIZER.encode(&text));
}

#[test]
fn a_hugging_face_directory_has_the_template_and_one_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let template = ChatTemplate::default();
    TOKENIZER.save_hugging_face(directory.path(), &template, 256).unwrap();
    let config = directory.path().join("tokenizer_config.json");
    let config: serde_json::Value = base::read_json(&config).unwrap();
    assert_eq!(config["chat_template"], template.source());
    assert_eq!(
        (&config["add_bos_token"], &config["model_max_length"]),
        (&false.into(), &256.into())
    );
    assert_ne!(config["pad_token"], config["eos_token"]);
    let loaded = Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap();
    assert_eq!(loaded.to_json(), TOKENIZER.to_json());
}

/// Changes the file, and expects an error that names it and what is wrong.
fn check_refused(change: impl FnOnce(&mut serde_json::Value), part: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokenizer.json");
    let mut json = serde_json::from_str(&TOKENIZER.to_json()).unwrap();
    change(&mut json);
    std::fs::write(&path, json.to_string()).unwrap();
    let error = Tokenizer::load(&path).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    let message = format!("{error}: {source}");
    assert!(message.contains("tokenizer.json") && message.contains(part), "{message}");
}

#[test]
fn other_and_damaged_tokenizers_are_refused() {
    check_refused(|json| json["model"]["type"] = "WordPiece".into(), "WordPiece");
    check_refused(|json| json["model"]["ignore_merges"] = true.into(), "follows its merges");
    check_refused(|json| json["normalizer"] = serde_json::json!({"type": "NFC"}), "no normalizer");
    check_refused(|json| json["pre_tokenizer"] = serde_json::Value::Null, "pre_tokenizer");
    check_refused(|json| json["added_tokens"][4]["content"] = "<|eot|>".into(), "<|eot|>");
    check_refused(|json| json["model"]["vocab"]["A"] = 499.into(), "each id below");
    check_refused(|json| json["model"]["vocab"]["漢"] = 500.into(), "byte symbols");
    check_refused(|json| json["model"]["vocab"]["zzzz"] = 70_000_000.into(), "each id below");
    check_refused(|json| json["model"]["merges"][0][1] = "ĠĠĠĠĠ".into(), "merges");
    check_refused(|json| json["model"]["merges"][0] = "one".into(), "merges");
    check_refused(|json| json["model"] = "x".into(), "invalid type");
    check_refused(
        |json| {
            let vocab = json["model"]["vocab"].as_object_mut().unwrap();
            vocab.insert("A".into(), 38.into());
            vocab.insert("B".into(), 37.into());
        },
        "256 bytes",
    );
}

#[test]
fn older_files_with_joined_merges_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokenizer.json");
    let mut json: serde_json::Value = serde_json::from_str(&TOKENIZER.to_json()).unwrap();
    for merge in json["model"]["merges"].as_array_mut().unwrap() {
        *merge = format!("{} {}", merge[0].as_str().unwrap(), merge[1].as_str().unwrap()).into();
    }
    std::fs::write(&path, json.to_string()).unwrap();
    assert_eq!(Tokenizer::load(&path).unwrap().to_json(), TOKENIZER.to_json());
}

#[test]
fn streamed_pieces_are_whole_characters_and_exclude_the_prompt() {
    // Bytes of the crab apart, so that it comes in four tokens.
    let byte = |byte: u8| (0..512).find(|&id| TOKENIZER.piece(id) == [byte]).unwrap();
    let crab: Vec<u32> = "🦀".bytes().map(byte).collect();
    let mut stream = StreamDecoder::new(&TOKENIZER);
    let pieces: Vec<String> = crab.iter().map(|&id| stream.push(id)).collect();
    assert_eq!(pieces, ["", "", "", "🦀"]);
    // A prompt that breaks off inside a character: the text before it is not repeated.
    let mut prompt = TOKENIZER.encode("the borrow");
    prompt.extend(&crab[..2]);
    let mut stream = StreamDecoder::after(&TOKENIZER, &prompt);
    assert_eq!([stream.push(crab[2]), stream.push(crab[3])], ["", "🦀"]);
    // A character that never becomes whole.
    let mut stream = StreamDecoder::new(&TOKENIZER);
    assert_eq!(stream.push(crab[0]), "");
    assert_eq!(stream.push(byte(b'a')), "\u{fffd}a");
    assert_eq!(stream.push(crab[0]), "");
    assert_eq!(stream.finish(), "\u{fffd}");
}

proptest! {
    #[test]
    fn every_text_comes_back(text in any::<String>()) {
        let ids = TOKENIZER.encode(&text);
        prop_assert_eq!(TOKENIZER.decode(&ids), &text[..]);
        let bytes: usize = ids.iter().map(|&id| TOKENIZER.bytes_of(id)).sum();
        prop_assert_eq!(bytes, text.len());
    }

    #[test]
    fn texts_of_known_words_come_back(text in "(the |borrow|'s|don't|\n|  |\\(\\)|[0-9]{1,9}|漢字|🦀|é){0,80}") {
        prop_assert_eq!(TOKENIZER.decode(&TOKENIZER.encode(&text)), text);
    }

    #[test]
    fn a_stream_gives_what_decoding_gives(ids in proptest::collection::vec(0u32..510, 0..40)) {
        let mut stream = StreamDecoder::new(&TOKENIZER);
        let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
        text.push_str(&stream.finish());
        prop_assert_eq!(text, TOKENIZER.decode(&ids));
    }

    #[test]
    fn a_stream_of_bytes_gives_what_decoding_gives(bytes in proptest::collection::vec(0xb0u32..0x105, 0..40)) {
        // Ids of single bytes, most of them parts of longer characters.
        let mut stream = StreamDecoder::new(&TOKENIZER);
        let mut text: String = bytes.iter().map(|&id| stream.push(id)).collect();
        text.push_str(&stream.finish());
        prop_assert_eq!(text, TOKENIZER.decode(&bytes));
    }
}
