//! Offensive words: a short and mild list of our own, and the lists that the settings name.

use crate::Error;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Mild on purpose: real lists belong in files that the settings name, not in a program's source.
const BUILT_IN: [&str; 14] = [
    "stupid",
    "idiot",
    "idiots",
    "idiotic",
    "moron",
    "dumb",
    "loser",
    "crap",
    "damn",
    "shut up",
    "i hate you",
    "you suck",
    "worthless",
    "pathetic",
];

/// Words and phrases, matched whole and without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(BTreeSet<String>);

impl Words {
    /// The built-in words and those of the given files.
    ///
    /// # Errors
    /// A file that cannot be read, is not UTF-8, or has no words.
    pub fn load(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut words: BTreeSet<String> = BUILT_IN.iter().map(|&word| word.to_owned()).collect();
        for path in paths {
            words.extend(read_list(path)?);
        }
        Ok(Self(words))
    }

    /// All words, in order.
    pub(crate) fn all(&self) -> &BTreeSet<String> {
        &self.0
    }

    /// The first offensive word in a text, in the list's order.
    pub fn find(&self, text: &str) -> Option<&str> {
        let padded = format!(" {} ", spaced(text));
        let found = self.0.iter().find(|word| padded.contains(&format!(" {word} ")));
        found.map(String::as_str)
    }
}

fn read_list(path: &Path) -> Result<Vec<String>, Error> {
    let wrong = |reason: String| Error::WordList { path: path.to_owned(), reason };
    let bytes = base::read(path)?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words: Vec<String> = lines.map(spaced).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { Err(wrong("it has no words".to_owned())) } else { Ok(words) }
}

/// Lower-cased runs of letters and digits with one space between them.
pub(crate) fn spaced(text: &str) -> String {
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole_and_in_any_case() {
        let words = Words::load(&[]).unwrap();
        assert_eq!(words.find("You IDIOT!"), Some("idiot"));
        assert_eq!(words.find("Oh, shut\nup."), Some("shut up"));
        assert_eq!(words.find("A dumbbell, idiomatic and scrappy."), None);
        assert_eq!(words.find(""), None);
    }

    #[test]
    fn lists_are_added_and_bad_ones_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("list.txt");
        std::fs::write(&path, "# comment\nBlockhead\r\n\n").unwrap();
        let words = Words::load(std::slice::from_ref(&path)).unwrap();
        assert_eq!(words.find("you blockhead"), Some("blockhead"));
        std::fs::write(&path, "# nothing\n").unwrap();
        assert!(
            Words::load(std::slice::from_ref(&path)).unwrap_err().to_string().contains("list.txt")
        );
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(Words::load(&[path]).is_err());
        assert!(Words::load(&[PathBuf::from("/nowhere/x")]).is_err());
    }
}
