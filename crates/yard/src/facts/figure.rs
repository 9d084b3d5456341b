//! Figures in JSON: what is not finite is written as `null`, and `null` is read as NaN.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// For a plain `f64`.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    finite(*value).serialize(serializer)
}

/// For a plain `f64`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// For an `Option<f64>`, where `null` is nothing.
pub mod optional {
    use super::{Deserialize, Deserializer, Serialize, Serializer, finite};

    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.and_then(finite).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Option::deserialize(deserializer)
    }
}

/// For the points of a curve.
pub mod points {
    use super::{Deserialize, Deserializer, Serializer, finite};

    pub fn serialize<S: Serializer>(
        points: &[(f64, f64)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(points.iter().map(|&(x, y)| (finite(x), finite(y))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(f64, f64)>, D::Error> {
        let points: Vec<(Option<f64>, Option<f64>)> = Vec::deserialize(deserializer)?;
        let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
        Ok(points.into_iter().map(|(x, y)| (or_nan(x), or_nan(y))).collect())
    }
}
