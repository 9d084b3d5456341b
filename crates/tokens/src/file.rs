//! `tokenizer.json`, in the form that Hugging Face's tools read and write.
//!
//! Only tokenizers of this program's kind are read: byte-level BPE with its pattern and its special
//! tokens first. Anything else is refused with what differs, since it would give other ids.

use crate::Error;
use crate::alphabet::{byte_to_char, bytes_by_id, char_to_byte};
use crate::bpe::Pair;
use crate::chat::ChatTemplate;
use crate::special::Special;
use crate::split::PATTERN;
use crate::tokenizer::Tokenizer;
use crate::train::Learned;
use base::write_atomic;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The file's name in a stage's or a model's directory.
pub const FILE_NAME: &str = "tokenizer.json";

#[derive(Serialize)]
struct Written<'a> {
    version: &'static str,
    truncation: Value,
    padding: Value,
    added_tokens: Vec<Value>,
    normalizer: Value,
    pre_tokenizer: Value,
    post_processor: Value,
    decoder: Value,
    model: Model<'a>,
}

#[derive(Serialize)]
struct Model<'a> {
    r#type: &'static str,
    dropout: Value,
    unk_token: Value,
    continuing_subword_prefix: Value,
    end_of_word_suffix: Value,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    #[serde(serialize_with = "in_order")]
    vocab: Vec<String>,
    merges: Vec<[&'a str; 2]>,
}

/// A map from each token to its position, in the order of the positions.
fn in_order<S: serde::Serializer>(tokens: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(tokens.iter().zip(0u32..))
}

#[derive(Deserialize)]
struct Read {
    added_tokens: Vec<AddedToken>,
    normalizer: Value,
    pre_tokenizer: Value,
    model: ReadModel,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
struct ReadModel {
    r#type: String,
    vocab: BTreeMap<String, u32>,
    merges: Vec<ReadMerge>,
    #[serde(default)]
    ignore_merges: bool,
}

/// A merge as a pair, or as two tokens with a space between, as older files have it.
#[derive(Deserialize)]
#[serde(untagged)]
enum ReadMerge {
    Pair([String; 2]),
    Joined(String),
}

fn pre_tokenizer() -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": false},
        byte_level(),
    ]})
}

fn byte_level() -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})
}

fn added_token(special: Special) -> Value {
    json!({"id": special.id(), "content": special.text(), "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": true})
}

impl Tokenizer {
    /// How each token is written in the file, by id.
    fn written_pieces(&self) -> Vec<String> {
        let chars = byte_to_char();
        let special = Special::ALL.iter().map(|special| special.text().to_owned());
        let pieces = self.pieces[Special::ALL.len()..].iter();
        special
            .chain(pieces.map(|piece| piece.iter().map(|&b| chars[usize::from(b)]).collect()))
            .collect()
    }

    /// The content of `tokenizer.json`. There is no post-processor: the chat template writes the token
    /// that starts a conversation, so that it is there exactly once.
    pub fn to_json(&self) -> String {
        let vocab = self.written_pieces();
        let merges = self.merge_list.iter();
        let merges = merges
            .map(|&((left, right), _)| {
                [vocab[left as usize].as_str(), vocab[right as usize].as_str()]
            })
            .collect();
        let file = Written {
            version: "1.0",
            truncation: Value::Null,
            padding: Value::Null,
            added_tokens: Special::ALL.into_iter().map(added_token).collect(),
            normalizer: Value::Null,
            pre_tokenizer: pre_tokenizer(),
            post_processor: Value::Null,
            decoder: byte_level(),
            model: Model {
                r#type: "BPE",
                dropout: Value::Null,
                unk_token: Value::Null,
                continuing_subword_prefix: Value::Null,
                end_of_word_suffix: Value::Null,
                fuse_unk: false,
                byte_fallback: false,
                ignore_merges: false,
                vocab: vocab.clone(),
                merges,
            },
        };
        let mut json = serde_json::to_string_pretty(&file).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Writes `tokenizer.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        Ok(write_atomic(path, self.to_json().as_bytes())?)
    }

    /// Writes what a Hugging Face model directory needs: `tokenizer.json` and `tokenizer_config.json`
    /// with the chat template.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn save_hugging_face(
        &self,
        directory: &Path,
        template: &ChatTemplate,
        max_seq_len: usize,
    ) -> Result<(), Error> {
        self.save(&directory.join(FILE_NAME))?;
        let config = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": Special::EndOfText.text(),
            "eos_token": Special::EndOfTurn.text(),
            "pad_token": Special::EndOfText.text(),
            "add_bos_token": false,
            "add_eos_token": false,
            "clean_up_tokenization_spaces": false,
            "model_max_length": max_seq_len,
            "chat_template": template.source(),
        });
        Ok(base::write_json(&directory.join("tokenizer_config.json"), &config)?)
    }

    /// Reads a `tokenizer.json` of this program's kind.
    ///
    /// # Errors
    /// The file is missing, is no JSON, or is another kind of tokenizer.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let read: Read = base::read_json(path)?;
        let problem =
            |(expected, found)| Error::Tokenizer { path: path.to_owned(), expected, found };
        check_kind(&read).map_err(problem)?;
        let pieces = read_pieces(&read.model.vocab).map_err(problem)?;
        let merges = read_merges(&read.model, &pieces).map_err(problem)?;
        Ok(Self::from_learned(Learned { pieces, merges }))
    }
}

/// What was expected and what was found instead.
type Problem = (String, String);

fn problem(expected: impl Into<String>, found: impl Into<String>) -> Problem {
    (expected.into(), found.into())
}

fn check_kind(read: &Read) -> Result<(), Problem> {
    if read.model.r#type != "BPE" || read.model.ignore_merges {
        return Err(problem("a BPE model that follows its merges", read.model.r#type.clone()));
    }
    if !read.normalizer.is_null() {
        return Err(problem("no normalizer", read.normalizer.to_string()));
    }
    let expected = pre_tokenizer();
    if read.pre_tokenizer != expected {
        return Err(problem(format!("pre_tokenizer {expected}"), read.pre_tokenizer.to_string()));
    }
    let expected = Special::ALL.map(|special| (special.id(), special.text().to_owned()));
    let found: Vec<_> = read.added_tokens.iter().map(|t| (t.id, t.content.clone())).collect();
    if found != expected {
        return Err(problem(format!("added_tokens {expected:?}"), format!("{found:?}")));
    }
    Ok(())
}

fn read_pieces(vocab: &BTreeMap<String, u32>) -> Result<Vec<Vec<u8>>, Problem> {
    let mut pieces: Vec<Option<Vec<u8>>> = vec![None; vocab.len()];
    for (token, &id) in vocab {
        let special = Special::ALL.get(id as usize);
        let bytes = match special {
            Some(special) if special.text() == token => Some(Vec::new()),
            Some(_) => None,
            None => token.chars().map(char_to_byte).collect(),
        };
        let Some(bytes) = bytes else {
            return Err(problem(
                "special tokens first, then tokens of byte symbols",
                format!("{id} is {token:?}"),
            ));
        };
        match pieces.get_mut(id as usize) {
            Some(place @ None) => *place = Some(bytes),
            _ => {
                return Err(problem(
                    "each id below the number of tokens once",
                    format!("{token:?} as {id}"),
                ));
            }
        }
    }
    let pieces: Vec<Vec<u8>> = pieces.into_iter().flatten().collect();
    let alphabet = Special::ALL.len()..Special::ALL.len() + 256;
    let expected = bytes_by_id().map(|byte| vec![byte]);
    if pieces.get(alphabet) != Some(expected.as_slice()) {
        return Err(problem("the 256 bytes after the special tokens", "another alphabet"));
    }
    Ok(pieces)
}

fn read_merges(model: &ReadModel, pieces: &[Vec<u8>]) -> Result<Vec<(Pair, u32)>, Problem> {
    let ids: HashMap<&[u8], u32> = pieces.iter().map(Vec::as_slice).zip(0..).collect();
    let id = |token: &str| {
        let found = model.vocab.get(token).copied().filter(|&id| id as usize >= Special::ALL.len());
        found.ok_or_else(|| problem("merges of tokens in the vocabulary", format!("{token:?}")))
    };
    let mut merges = Vec::with_capacity(model.merges.len());
    for merge in &model.merges {
        let (left, right) = match merge {
            ReadMerge::Pair([left, right]) => (left.as_str(), right.as_str()),
            ReadMerge::Joined(both) => both.split_once(' ').unwrap_or((both, "")),
        };
        let pair = (id(left)?, id(right)?);
        let bytes = [pieces[pair.0 as usize].as_slice(), &pieces[pair.1 as usize]].concat();
        let Some(&merged) = ids.get(bytes.as_slice()) else {
            return Err(problem(
                "merges that make tokens of the vocabulary",
                format!("{left:?} and {right:?}"),
            ));
        };
        merges.push((pair, merged));
    }
    Ok(merges)
}
