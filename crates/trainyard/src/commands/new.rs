//! `trainyard new`: a commented recipe for one's own data.

use crate::args;
use crate::error::{Failure, Kind, Result};
use crate::output::Output;
use base::{FsError, write_atomic};

const TEMPLATE: &str = include_str!("new/recipe.toml");
const NOTE: &str = include_str!("new/data.txt");

/// Makes the directory.
pub fn new(args: &args::New, output: Output) -> Result<()> {
    let recipe = args.dir.join("recipe.toml");
    if recipe.exists() {
        return Err(Failure::new(Kind::Usage, format!("{} is there already", recipe.display()))
            .hint("choose another directory, or edit that file"));
    }
    let name = args.dir.canonicalize().unwrap_or_else(|_| args.dir.clone());
    let name = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_start_matches('.');
    let name = if name.is_empty() { "mine" } else { name };
    let data = args.dir.join("data");
    std::fs::create_dir_all(&data).map_err(FsError::io("create", &data))?;
    write_atomic(&data.join("README.txt"), NOTE.as_bytes())?;
    write_atomic(&recipe, TEMPLATE.replace("NAME", name).as_bytes())?;
    output.line(format!("written to {}", recipe.display()));
    output.line(format!("put your files into {}, then", data.display()));
    output.line(format!("next: trainyard run {}", recipe.display()));
    output.json(&serde_json::json!({ "recipe": recipe, "data": data }))
}
