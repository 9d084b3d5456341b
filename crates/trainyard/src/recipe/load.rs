//! Reading a recipe: TOML in, resolved settings out, and messages that help with mistakes.

use super::Recipe;
use crate::error::{Failure, Kind, Result};
use std::path::{Path, PathBuf};

/// The recipes that are part of the program, by name.
const BUILT_IN: [(&str, &str); 1] =
    [("rust-docs", include_str!("../../../../recipes/rust-docs.toml"))];

/// A recipe with its text and the directory that its paths are relative to.
pub struct Loaded {
    /// The resolved recipe.
    pub recipe: Recipe,
    /// As it was written.
    pub text: String,
    /// Where relative paths start.
    pub base: PathBuf,
}

/// Loads a recipe by file name or by the name of a built-in one.
pub fn load(given: &str) -> Result<Loaded> {
    let path = Path::new(given);
    if path.exists() {
        let text = std::fs::read_to_string(path)
            .map_err(base::FsError::io("read", path))
            .map_err(|error| Failure { kind: Kind::Usage, ..Failure::from(error) })?;
        let directory = path.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new("."));
        return Ok(Loaded { recipe: parse(&text, given)?, text, base: directory.to_owned() });
    }
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == given) {
        let recipe = parse(text, &format!("built-in recipe {name}"))?;
        return Ok(Loaded { recipe, text: (*text).to_owned(), base: PathBuf::from(".") });
    }
    let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let failure = Failure::new(Kind::Usage, format!("there is no recipe {given}"));
    Err(match nearest(given, names.iter().copied()) {
        Some(name) => failure.hint(format!("did you mean the built-in recipe `{name}`?")),
        None => failure.hint(format!(
            "name a file, or one of the built-in recipes ({}); `trainyard new DIR` writes one for \
             your own data",
            names.join(", ")
        )),
    })
}

/// Parses a recipe; `name` is how messages call it.
fn parse(text: &str, name: &str) -> Result<Recipe> {
    let explain = |error: toml::de::Error| explain(&error, text, name);
    let mut recipe: Recipe = toml::from_str(text).map_err(explain)?;
    recipe.derive(&toml::from_str(text).map_err(explain)?);
    recipe.check().map_err(|message| Failure::new(Kind::Usage, format!("{name}: {message}")))?;
    Ok(recipe)
}

/// The line and column (from 1) of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    (line, column)
}

fn explain(error: &toml::de::Error, text: &str, name: &str) -> Failure {
    let message = error.message();
    let at = match error.span() {
        Some(span) => {
            let (line, column) = place(text, span.start);
            format!("{name}:{line}:{column}")
        }
        None => name.to_owned(),
    };
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let failure = Failure::new(Kind::Usage, format!("{at}: {message}"));
    match quoted.split_first() {
        Some((wrong, known)) if message.starts_with("unknown") => {
            match nearest(wrong, known.iter().copied()) {
                Some(right) => failure.hint(format!("did you mean `{right}`?")),
                None => failure,
            }
        }
        _ => failure,
    }
}

/// The known word that is most like `word`, if one is alike at all.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::normalized_damerau_levenshtein(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_recipes_parse() {
        for (name, text) in BUILT_IN {
            assert_eq!(parse(text, name).unwrap().name, name);
        }
    }

    #[test]
    fn a_mistyped_key_is_named_with_its_place_and_the_nearest_one() {
        let text = "name = \"x\"\ncorpus = {}\n\n[model]\ndepht = 4\n";
        let Err(failure) = parse(text, "my.toml") else { panic!("must be refused") };
        let shown = failure.to_string();
        assert!(shown.contains("my.toml:5:1"), "{shown}");
        assert!(shown.contains("`depht`"), "{shown}");
        assert!(shown.contains("did you mean `depth`?"), "{shown}");
        assert_eq!(failure.kind, Kind::Usage);
    }

    #[test]
    fn places_count_from_one() {
        assert_eq!(place("ab\ncd", 0), (1, 1));
        assert_eq!(place("ab\ncd", 4), (2, 2));
    }
}
