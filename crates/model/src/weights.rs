//! The weights of a model: named f32 tensors in one arena, and their file.
//!
//! The file is a safetensors file whose header carries the configuration and the digest of the
//! tensors, so that a changed bit is noticed when it is loaded.

use crate::config::{ModelConfig, RewardHead};
use crate::error::Error;
use crate::induction;
use crate::layout::{Layout, Tensor};
use crate::tensor_file::{F32View, read_f32};
use base::{Digest, Hasher, Seed};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The key of our entry in the header of a safetensors file.
const HEADER_KEY: &str = "trainyard";

/// The weights of a model.
#[derive(Clone, Debug)]
pub struct Weights {
    config: ModelConfig,
    layout: Arc<Layout>,
    data: Vec<f32>,
}

/// Our entry in the file's header.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    config: ModelConfig,
    digest: Digest,
}

impl Weights {
    /// Fresh weights: matrices from a normal distribution of standard deviation 0.02 cut off at three
    /// deviations; those that write into the residual stream divided by the square root of their
    /// number, twice the layers (GPT-2 report, section 2.3); norms at one; the reward head at zero.
    ///
    /// # Errors
    /// [`Error::Config`] for an impossible configuration.
    pub fn init(config: &ModelConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let layout = Layout::new(config);
        let mut data = vec![0.0; layout.len()];
        let residual = 1.0 / (2.0 * config.num_layers as f64).sqrt();
        for tensor in &layout.tensors {
            let values = &mut data[tensor.range.clone()];
            let name = tensor.name.as_str();
            if name.ends_with("norm") {
                values.fill(1.0);
            } else if name != "score" {
                let writes = name.ends_with("attention.output") || name.ends_with("down");
                let deviation = if writes { 0.02 * residual } else { 0.02 };
                fill_normal(values, deviation, seed.derive(name));
            }
        }
        Ok(Self { config: config.clone(), layout: Arc::new(layout), data })
    }

    /// [`Weights::init`] with heads that copy from the context planted into the first two layers, which
    /// training is free to change; for configurations that [`ModelConfig::for_copying`] gives. The same as
    /// there where the shape has no room for them.
    ///
    /// # Errors
    /// [`Error::Config`] for an impossible configuration.
    pub fn init_copying(config: &ModelConfig, seed: Seed) -> Result<Self, Error> {
        let mut weights = Self::init(config, seed)?;
        induction::plant(&mut weights, seed);
        Ok(weights)
    }

    /// Weights from an arena in the order of [`Weights::as_slice`].
    ///
    /// # Errors
    /// [`Error::Config`] for an impossible configuration or an arena of another size.
    pub fn from_slice(config: &ModelConfig, data: Vec<f32>) -> Result<Self, Error> {
        config.validate()?;
        let layout = Layout::new(config);
        if data.len() != layout.len() {
            return Err(Error::Config {
                setting: "number of parameters",
                found: data.len().to_string(),
                expected: layout.len().to_string(),
            });
        }
        Ok(Self { config: config.clone(), layout: Arc::new(layout), data })
    }

    /// The same weights with a reward head of zeros; an existing one is kept.
    pub fn with_reward_head(&self) -> Self {
        let config = ModelConfig { reward_head: RewardHead::Present, ..self.config.clone() };
        let layout = Layout::new(&config);
        let mut data = self.data.clone();
        // The reward head is the last tensor, so nothing else moves.
        data.resize(layout.len(), 0.0);
        Self { config, layout: Arc::new(layout), data }
    }

    /// The same weights without a reward head.
    pub fn without_reward_head(&self) -> Self {
        let config = ModelConfig { reward_head: RewardHead::Absent, ..self.config.clone() };
        let layout = Layout::new(&config);
        let data = self.data[..layout.len()].to_vec();
        Self { config, layout: Arc::new(layout), data }
    }

    /// The configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The tensors, in the order of the arena.
    pub fn tensors(&self) -> &[Tensor] {
        &self.layout.tensors
    }

    /// One tensor's values, by name.
    pub fn tensor(&self, name: &str) -> Option<&[f32]> {
        Some(&self.data[self.range(name)?])
    }

    /// All values.
    pub fn as_slice(&self) -> &[f32] {
        &self.data
    }

    /// All values, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Where each tensor lies.
    /// One tensor's values, to be changed; empty where the model has no such tensor.
    pub(crate) fn tensor_mut(&mut self, name: &str) -> &mut [f32] {
        match self.range(name) {
            Some(range) => &mut self.data[range],
            None => &mut [],
        }
    }

    fn range(&self, name: &str) -> Option<Range<usize>> {
        let found = self.layout.tensors.iter().find(|tensor| tensor.name == name)?;
        Some(found.range.clone())
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Digest of the configuration and of every tensor's name and values.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.field(self.config.to_json().as_bytes());
        let mut bytes = Vec::new();
        for tensor in self.tensors() {
            bytes.clear();
            bytes.extend(self.data[tensor.range.clone()].iter().flat_map(|x| x.to_le_bytes()));
            hasher.field(tensor.name.as_bytes()).field(&bytes);
        }
        hasher.finish()
    }

    /// Saves as one safetensors file, atomically. The same weights give the same bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let header = Header { config: self.config.clone(), digest: self.digest() };
        let header = serde_json::to_string(&header)
            .map_err(|source| base::FsError::Json { path: path.to_owned(), source })?;
        let views = self.tensors().iter().map(|tensor| {
            let data = &self.data[tensor.range.clone()];
            (tensor.name.as_str(), F32View { shape: &tensor.shape, data })
        });
        // One key only: the order of several would differ from run to run.
        let metadata = HashMap::from([(HEADER_KEY.to_owned(), header)]);
        let bytes = safetensors::serialize(views, Some(metadata))
            .map_err(|source| Error::Safetensors { path: path.to_owned(), source })?;
        Ok(base::write_atomic(path, &bytes)?)
    }

    /// Loads what [`Weights::save`] wrote and checks its digest.
    ///
    /// # Errors
    /// The file is missing, is no such file, lacks a tensor or has one of another shape or type, or
    /// its values do not have the digest in its header ([`Error::Corrupted`]).
    pub fn load(path: &Path) -> Result<Self, Error> {
        let bytes = base::read(path)?;
        let refuse = |source| Error::Safetensors { path: path.to_owned(), source };
        let header = read_header(path, &bytes)?;
        header.config.validate()?;
        // Before anything is allocated for it.
        check_size(path, &header.config, bytes.len())?;
        let file = SafeTensors::deserialize(&bytes).map_err(refuse)?;
        let layout = Layout::new(&header.config);
        let mut data = vec![0.0; layout.len()];
        for tensor in &layout.tensors {
            let values = &mut data[tensor.range.clone()];
            read_f32(path, &file, &tensor.name, &tensor.shape, values)?;
        }
        let weights = Self { config: header.config, layout: Arc::new(layout), data };
        let found = weights.digest();
        if found != header.digest {
            let (path, expected) = (path.to_owned(), header.digest);
            return Err(Error::Corrupted { path, expected, found });
        }
        Ok(weights)
    }
}

/// Refuses a configuration whose parameters cannot lie in `bytes` bytes of 16-bit values or wider.
pub(crate) fn check_size(path: &Path, config: &ModelConfig, bytes: usize) -> Result<(), Error> {
    let parameters = config.num_parameters();
    if parameters <= bytes / 2 {
        return Ok(());
    }
    Err(Error::UnexpectedContent {
        path: path.to_owned(),
        what: "size".to_owned(),
        expected: format!("room for the {parameters} parameters of its configuration"),
        found: format!("{bytes} bytes"),
    })
}

fn read_header(path: &Path, bytes: &[u8]) -> Result<Header, Error> {
    let (_, metadata) = SafeTensors::read_metadata(bytes)
        .map_err(|source| Error::Safetensors { path: path.to_owned(), source })?;
    let ours = metadata.metadata().as_ref().and_then(|entries| entries.get(HEADER_KEY));
    let unexpected = |found: String| Error::UnexpectedContent {
        path: path.to_owned(),
        what: format!("header entry `{HEADER_KEY}`"),
        expected: "a configuration and a digest".to_owned(),
        found,
    };
    let text = ours.ok_or_else(|| unexpected("none".to_owned()))?;
    serde_json::from_str(text).map_err(|error| unexpected(error.to_string()))
}

/// Normal values, drawn again beyond three deviations.
fn fill_normal(values: &mut [f32], deviation: f64, seed: Seed) {
    let mut rng = seed.rng();
    for value in values {
        let mut draw = rng.normal();
        while draw.abs() > 3.0 {
            draw = rng.normal();
        }
        *value = (draw * deviation) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> Weights {
        Weights::init(&ModelConfig::from_depth(1, 50, 16), Seed(3)).unwrap()
    }

    #[test]
    fn saved_weights_load_equal_and_saving_repeats_the_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        let weights = weights().with_reward_head();
        weights.save(&a).unwrap();
        let loaded = Weights::load(&a).unwrap();
        assert_eq!(loaded.as_slice(), weights.as_slice());
        assert_eq!(loaded.digest(), weights.digest());
        loaded.save(&b).unwrap();
        assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    }

    #[test]
    fn any_flipped_bit_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weights.safetensors");
        weights().save(&path).unwrap();
        let good = std::fs::read(&path).unwrap();
        for place in (0..good.len()).step_by(997).chain([good.len() - 1]) {
            let mut bad = good.clone();
            bad[place] ^= 0x10;
            std::fs::write(&path, &bad).unwrap();
            // Padding in the header may change without harm; the weights may not.
            match Weights::load(&path) {
                Err(error) => assert!(!error.to_string().is_empty()),
                Ok(loaded) => assert_eq!(loaded.digest(), weights().digest(), "byte {place}"),
            }
        }
        std::fs::write(&path, &good[..good.len() / 2]).unwrap();
        assert!(Weights::load(&path).is_err());
        let mut bad = good;
        let last = bad.len() - 1;
        bad[last] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(matches!(Weights::load(&path), Err(Error::Corrupted { .. })));
    }

    #[test]
    fn a_configuration_larger_than_its_file_is_refused_before_memory_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weights.safetensors");
        let config = ModelConfig { d_ff: 1 << 20, d_model: 1 << 20, ..weights().config().clone() };
        let header = Header { config, digest: Digest::of_bytes(b"") };
        let entry = serde_json::to_string(&header).unwrap();
        let data = [0.0];
        let views = [("embedding", F32View { shape: &[1], data: &data })];
        let metadata = HashMap::from([(HEADER_KEY.to_owned(), entry)]);
        std::fs::write(&path, safetensors::serialize(views, Some(metadata)).unwrap()).unwrap();
        let message = Weights::load(&path).unwrap_err().to_string();
        assert!(message.contains("room for"), "{message}");
    }

    #[test]
    fn fresh_weights_have_the_stated_spread() {
        let config = ModelConfig::from_depth(2, 300, 16);
        let weights = Weights::init(&config, Seed(3)).unwrap();
        let check = |name: &str, expected: f64| {
            let values = weights.tensor(name).unwrap();
            let square: f64 = values.iter().map(|&x| f64::from(x).powi(2)).sum();
            let found = (square / values.len() as f64).sqrt();
            // Cutting a normal off at three deviations leaves 0.9866 of its deviation.
            assert!((found / (0.9866 * expected) - 1.0).abs() < 0.03, "{name}: {found}");
        };
        check("embedding", 0.02);
        check("blocks.1.attention.query", 0.02);
        check("blocks.1.attention.output", 0.01);
        check("blocks.0.feed_forward.down", 0.01);
        assert!(weights.tensor("final_norm").unwrap().iter().all(|&x| x == 1.0));
    }

    #[test]
    fn a_reward_head_moves_nothing_else() {
        let plain = weights();
        let scored = plain.with_reward_head();
        assert_eq!(scored.tensor("score").unwrap(), vec![0.0; 64]);
        assert_eq!(scored.without_reward_head().as_slice(), plain.as_slice());
        assert_eq!(scored.without_reward_head().digest(), plain.digest());
    }
}
