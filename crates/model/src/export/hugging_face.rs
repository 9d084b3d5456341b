//! A directory that Hugging Face's `transformers` loads as `LlamaForCausalLM`, and back.

use super::names::{LlamaConfig, tensor_name};
use crate::config::{Embeddings, ModelConfig};
use crate::error::Error;
use crate::layout::Layout;
use crate::sampling::Sampling;
use crate::tensor_file::{F32View, read_f32};
use crate::weights::{Weights, check_size};
use base::FsError;
use safetensors::SafeTensors;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Writes `config.json`, `generation_config.json` and `model.safetensors` into `directory`, and gives
/// their names. A reward head is left out. The same weights and settings give the same bytes.
///
/// `begin_of_text` is the token that starts a text; `sampling` becomes the generation defaults, its
/// stop tokens the end-of-sequence tokens.
///
/// # Errors
/// A file cannot be written.
pub fn hugging_face(
    directory: &Path,
    weights: &Weights,
    begin_of_text: u32,
    sampling: &Sampling,
) -> Result<Vec<&'static str>, Error> {
    let names = ["config.json", "generation_config.json", "model.safetensors"];
    let config = LlamaConfig::from_ours(weights.config(), begin_of_text, &sampling.stop);
    base::write_json(&directory.join(names[0]), &config)?;
    base::write_json(&directory.join(names[1]), &generation_config(begin_of_text, sampling))?;
    let path = directory.join(names[2]);
    let views = weights.tensors().iter().filter_map(|tensor| {
        let data = &weights.as_slice()[tensor.range.clone()];
        Some((tensor_name(&tensor.name)?, F32View { shape: &tensor.shape, data }))
    });
    // `transformers` refuses files that do not say which framework's layout they have.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let bytes = safetensors::serialize(views, Some(metadata))
        .map_err(|source| Error::Safetensors { path: path.clone(), source })?;
    base::write_atomic(&path, &bytes)?;
    Ok(names.to_vec())
}

fn generation_config(begin_of_text: u32, sampling: &Sampling) -> Value {
    let mut entries = Map::new();
    entries.insert("bos_token_id".to_owned(), json!(begin_of_text));
    entries.insert("eos_token_id".to_owned(), json!(sampling.stop));
    entries.insert("pad_token_id".to_owned(), json!(begin_of_text));
    entries.insert("max_new_tokens".to_owned(), json!(sampling.max_new_tokens));
    let draws = sampling.temperature > 0.0;
    entries.insert("do_sample".to_owned(), json!(draws));
    if draws {
        let temperature: f64 = sampling.temperature.to_string().parse().unwrap_or(1.0);
        let top_p: f64 = sampling.top_p.to_string().parse().unwrap_or(1.0);
        entries.insert("temperature".to_owned(), json!(temperature));
        entries.insert("top_p".to_owned(), json!(top_p));
        // Zero is their word for all tokens; without the entry they take 50.
        entries.insert("top_k".to_owned(), json!(sampling.top_k.unwrap_or(0)));
    }
    Value::Object(entries)
}

/// Reads weights from a directory in Hugging Face's form: `config.json` of a `LlamaForCausalLM`, and
/// `model.safetensors` or the shards that `model.safetensors.index.json` names. 16-bit floats are
/// widened.
///
/// # Errors
/// A missing or unreadable file, an architecture or setting that this model does not have, a missing
/// tensor or one of another shape.
pub fn import_hugging_face(directory: &Path) -> Result<Weights, Error> {
    let path = directory.join("config.json");
    let theirs: LlamaConfig = base::read_json(&path)?;
    let config = theirs.to_ours().map_err(|(what, found, expected)| Error::UnexpectedContent {
        path: path.clone(),
        what: what.to_owned(),
        expected: expected.to_owned(),
        found,
    })?;
    config.validate()?;
    let layout = Layout::new(&config);
    let shards = shards(directory, &config, &layout)?;
    // Before anything large is allocated.
    check_size(&path, &config, bytes_of_tensors(directory)?)?;
    let mut data = vec![0.0; layout.len()];
    for (path, tensors) in shards {
        let bytes = base::read(&path)?;
        let file = SafeTensors::deserialize(&bytes)
            .map_err(|source| Error::Safetensors { path: path.clone(), source })?;
        for (name, index) in tensors {
            let tensor = &layout.tensors[index];
            let values = &mut data[tensor.range.clone()];
            read_f32(&path, &file, &name, &tensor.shape, values)?;
        }
    }
    Weights::from_slice(&config, data)
}

/// Bytes of all safetensors files of a directory.
fn bytes_of_tensors(directory: &Path) -> Result<usize, Error> {
    let failed = || FsError::io("read", directory);
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if entry.path().extension().is_some_and(|extension| extension == "safetensors") {
            // Follows links: caches of downloaded models are made of them.
            let metadata = std::fs::metadata(entry.path()).map_err(failed())?;
            bytes += metadata.len() as usize;
        }
    }
    Ok(bytes)
}

/// The index of a model in several files.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Which of our tensors, by index, are under which name in which file.
type Shards = BTreeMap<PathBuf, Vec<(String, usize)>>;

fn shards(directory: &Path, config: &ModelConfig, layout: &Layout) -> Result<Shards, Error> {
    let single = directory.join("model.safetensors");
    let index_path = directory.join("model.safetensors.index.json");
    let index: Option<Index> = match single.exists() {
        true => None,
        false if index_path.exists() => Some(base::read_json(&index_path)?),
        false => {
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(FsError::io("read", &single)(missing).into());
        }
    };
    let mut shards = Shards::new();
    for (i, tensor) in layout.tensors.iter().enumerate() {
        let tied = config.embeddings == Embeddings::Tied && tensor.name == "head";
        let Some(name) = tensor_name(&tensor.name).filter(|_| !tied) else { continue };
        let path = match &index {
            None => single.clone(),
            Some(index) => {
                let file = index.weight_map.get(&name).ok_or_else(|| Error::UnexpectedContent {
                    path: index_path.clone(),
                    what: format!("place of tensor `{name}`"),
                    expected: "a file".to_owned(),
                    found: "none".to_owned(),
                })?;
                shard_path(directory, &index_path, file)?
            }
        };
        shards.entry(path).or_default().push((name, i));
    }
    Ok(shards)
}

/// A shard's path; a name that leads out of the directory is refused.
fn shard_path(directory: &Path, index: &Path, file: &str) -> Result<PathBuf, Error> {
    if Path::new(file).file_name().is_some_and(|name| name == file) {
        return Ok(directory.join(file));
    }
    Err(Error::UnexpectedContent {
        path: index.to_owned(),
        what: "name of a shard".to_owned(),
        expected: "a file in the same directory".to_owned(),
        found: file.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    fn weights(embeddings: Embeddings) -> Weights {
        let config = ModelConfig { embeddings, ..ModelConfig::from_depth(1, 40, 16) };
        Weights::init(&config, Seed(2)).unwrap()
    }

    #[test]
    fn what_is_exported_is_imported() {
        for embeddings in [Embeddings::Tied, Embeddings::Untied] {
            let directory = tempfile::tempdir().unwrap();
            let weights = weights(embeddings);
            hugging_face(directory.path(), &weights, 0, &Sampling::default()).unwrap();
            let imported = import_hugging_face(directory.path()).unwrap();
            assert_eq!(imported.config(), weights.config());
            assert_eq!(imported.as_slice(), weights.as_slice());
        }
    }

    #[test]
    fn a_reward_head_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let plain = weights(Embeddings::Tied);
        let scored = plain.with_reward_head();
        hugging_face(directory.path(), &scored, 0, &Sampling::default()).unwrap();
        assert_eq!(import_hugging_face(directory.path()).unwrap().digest(), plain.digest());
    }

    #[test]
    fn other_architectures_and_missing_tensors_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let refused = || import_hugging_face(path).unwrap_err().to_string();
        assert!(refused().contains("config.json"));
        hugging_face(path, &weights(Embeddings::Untied), 0, &Sampling::default()).unwrap();
        let good: Value = base::read_json(&path.join("config.json")).unwrap();
        let check = |key: &str, value: Value, part: &str| {
            let mut bad = good.clone();
            bad[key] = value;
            base::write_json(&path.join("config.json"), &bad).unwrap();
            assert!(refused().contains(part), "{}", refused());
        };
        check("architectures", json!(["MistralForCausalLM"]), "MistralForCausalLM");
        check("rope_scaling", json!({"rope_type": "llama3"}), "rope_scaling");
        check("attention_bias", json!(true), "attention_bias");
        check("num_hidden_layers", json!(3), "model.layers.2.");
        check("hidden_size", json!(32), "shape");
        check("vocab_size", json!(9_999_999), "room for");
        check("num_attention_heads", json!(0), "num-heads");
        base::write_json(&path.join("config.json"), &good).unwrap();
        std::fs::remove_file(path.join("model.safetensors")).unwrap();
        assert!(refused().contains("model.safetensors"));
    }

    #[test]
    fn shards_are_found_through_the_index_and_only_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let weights = weights(Embeddings::Tied);
        hugging_face(path, &weights, 0, &Sampling::default()).unwrap();
        std::fs::rename(path.join("model.safetensors"), path.join("a.safetensors")).unwrap();
        let index = |file: &str| {
            let names = weights.tensors().iter().filter_map(|t| tensor_name(&t.name));
            let map: BTreeMap<String, &str> = names.map(|name| (name, file)).collect();
            let index = json!({ "weight_map": map });
            base::write_json(&path.join("model.safetensors.index.json"), &index).unwrap();
        };
        index("a.safetensors");
        assert_eq!(import_hugging_face(path).unwrap().digest(), weights.digest());
        index("../a.safetensors");
        assert!(import_hugging_face(path).unwrap_err().to_string().contains("same directory"));
    }
}
