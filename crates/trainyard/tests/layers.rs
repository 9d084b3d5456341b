//! Arrows between the crates point downwards only (ARCHITECTURE.md, "Code map").

use std::collections::BTreeMap;
use std::process::Command;

/// Layer of each crate: it may depend on crates of lower layers only.
const LAYERS: [(&str, u32); 11] = [
    ("base", 0),
    ("kernels", 1),
    ("checkpoint", 1),
    ("corpus", 1),
    ("tokens", 1),
    ("model", 2),
    ("train", 4),
    ("judge", 4),
    ("posttrain", 5),
    ("yard", 6),
    ("trainyard", 7),
];

#[test]
fn arrows_point_downwards() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let layers: BTreeMap<_, _> = LAYERS.into_iter().collect();
    let packages = metadata["packages"].as_array().expect("packages");
    assert_eq!(packages.len(), LAYERS.len(), "a crate is missing from LAYERS");
    for package in packages {
        let name = package["name"].as_str().expect("name");
        let own = layers.get(name).unwrap_or_else(|| panic!("{name} has no layer"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let other = dependency["name"].as_str().expect("name");
            if let Some(layer) = layers.get(other) {
                assert!(layer < own, "{name} (layer {own}) depends on {other} (layer {layer})");
            }
        }
    }
}
