//! What a checkpoint of a training holds: the weights, both moments, the record of the last step, how
//! far the metrics reach, and which training it is. Nothing else is needed, since the data and the
//! learning rate are pure functions of the step.

use crate::Error;
use crate::metrics::{Position, Record};
use crate::objective::Objective;
use crate::optimizer::Optimizer;
use crate::settings::Settings;
use checkpoint::{Loaded, TensorView};
use model::Weights;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// Raised when the same settings and data give other weights than before.
const ALGORITHM: u32 = 1;

const GROUPS: [&str; 3] = ["weights", "first_moment", "second_moment"];

/// Whether the last record is in the metrics already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LastRecord {
    /// It is.
    Written,
    /// The evaluation that belongs to it was interrupted.
    AwaitsEvaluation,
}

/// All but the tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub training: Value,
    pub record: Record,
    pub last_record: LastRecord,
    pub metrics: Position,
}

/// What decides every weight and every line of the metrics. A checkpoint where any of it differs is of
/// another training.
pub(crate) fn describe<O: Objective>(
    objective: &O,
    settings: &Settings,
    steps: u64,
    init: &Weights,
) -> Result<Value, serde_json::Error> {
    let mut settings = serde_json::to_value(settings)?;
    if let Some(settings) = settings.as_object_mut() {
        // The first is in `steps`, the others change nothing in the result.
        for name in ["budget", "checkpoint-every", "keep"] {
            settings.remove(name);
        }
    }
    Ok(json!({
        "algorithm": ALGORITHM,
        "objective": objective.name(),
        "objective-digest": objective.digest(),
        "initial-weights": init.digest(),
        "model": serde_json::to_value(init.config())?,
        "steps": steps,
        "settings": settings,
    }))
}

/// The first place where two descriptions differ: its path, and both values.
fn difference(found: &Value, expected: &Value) -> Option<(String, String, String)> {
    let (Some(a), Some(b)) = (found.as_object(), expected.as_object()) else {
        let differ = found != expected;
        return differ.then(|| (String::new(), found.to_string(), expected.to_string()));
    };
    let absent = Value::Null;
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.into_iter().find_map(|name| {
        let inside = difference(a.get(name).unwrap_or(&absent), b.get(name).unwrap_or(&absent));
        let (path, found, expected) = inside?;
        let path = if path.is_empty() { name.clone() } else { format!("{name}.{path}") };
        Some((path, found, expected))
    })
}

/// Hands the tensors of a checkpoint, and the names that they have in it, to `use_them`.
pub(crate) fn with_tensors<T>(
    weights: &Weights,
    optimizer: &Optimizer,
    use_them: impl FnOnce(&[TensorView<'_>]) -> T,
) -> T {
    let arenas = [weights.as_slice(), &optimizer.first, &optimizer.second];
    let names: Vec<String> = GROUPS
        .iter()
        .flat_map(|group| weights.tensors().iter().map(move |t| format!("{group}/{}", t.name)))
        .collect();
    let parts = arenas.iter().flat_map(|arena| {
        weights.tensors().iter().map(move |t| (t.shape.as_slice(), &arena[t.range.clone()]))
    });
    let views: Vec<TensorView<'_>> = names
        .iter()
        .zip(parts)
        .map(|(name, (shape, data))| TensorView { name, shape, data })
        .collect();
    use_them(&views)
}

/// Puts a checkpoint's tensors back into `weights` and a new optimizer, after making sure that it belongs
/// to this training.
pub(crate) fn restore(
    directory: &Path,
    loaded: Loaded,
    training: &Value,
    weights: &mut Weights,
) -> Result<(Optimizer, State), Error> {
    let bad =
        |what: String| Error::BadCheckpoint { path: directory.to_owned(), step: loaded.step, what };
    let found = loaded.state.get("training").unwrap_or(&Value::Null);
    if let Some((name, found, expected)) = difference(found, training) {
        return Err(Error::OtherTraining { path: directory.to_owned(), name, found, expected });
    }
    let state: State =
        serde_json::from_value(loaded.state.clone()).map_err(|e| bad(format!("state ({e})")))?;
    if state.record.step != loaded.step {
        return Err(bad("step".to_owned()));
    }
    let mut optimizer = Optimizer::new(weights);
    let layout = weights.tensors().to_vec();
    let arenas = [weights.as_mut_slice(), &mut optimizer.first[..], &mut optimizer.second[..]];
    for (group, arena) in GROUPS.into_iter().zip(arenas) {
        for tensor in &layout {
            let name = format!("{group}/{}", tensor.name);
            match loaded.tensors.get(&name) {
                Some(saved) if saved.shape == tensor.shape => {
                    arena[tensor.range.clone()].copy_from_slice(&saved.data);
                }
                _ => return Err(bad(name)),
            }
        }
    }
    Ok((optimizer, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_with_its_path() {
        let check = |found: Value, expected: Value, path: Option<&str>| {
            assert_eq!(difference(&found, &expected).map(|d| d.0).as_deref(), path);
        };
        let one = json!({"a": 1, "settings": {"learning-rate": 0.1, "x": [1, 2]}});
        check(one.clone(), one.clone(), None);
        let mut other = one.clone();
        other["settings"]["learning-rate"] = json!(0.2);
        check(one.clone(), other, Some("settings.learning-rate"));
        check(one.clone(), json!({"a": 1}), Some("settings"));
        check(Value::Null, one, Some(""));
    }
}
