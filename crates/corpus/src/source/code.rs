//! Program sources, with the licence that their package states.

use super::{Raw, Sink, whole};
use crate::error::Error;
use crate::ledger::Tally;
use crate::resolve::InputFile;
use crate::settings::Source;
use crate::split;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads one program source.
pub(super) fn read(
    source: &Source,
    file: &InputFile,
    licences: &mut Licences,
    tally: &mut Tally,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let Some(text) = whole::content(source, file, tally) else { return Ok(()) };
    let package = licences.package(&file.root, &file.relative);
    let raw = Raw {
        url: whole::address(source, &file.relative),
        place: file.relative.clone(),
        text,
        title: file.relative.rsplit('/').next().unwrap_or_default().to_owned(),
        language: source.language.clone().or_else(|| Some(language(&file.relative).to_owned())),
        licence: package.as_ref().and_then(|p| p.licence.clone()),
        group: package.map(|p| split::package_group(&p.directory)),
        ..Raw::default()
    };
    sink(raw, tally)
}

/// A package found above a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Package {
    /// Name of its directory, as `serde-1.0.200`.
    directory: String,
    /// `package.license` of its `Cargo.toml`.
    licence: Option<String>,
}

/// Packages by directory, each `Cargo.toml` read once.
#[derive(Default)]
pub(crate) struct Licences(BTreeMap<PathBuf, Option<Package>>);

impl Licences {
    /// The package that the first folder of `relative` holds. A `Cargo.toml` in the root itself names no group
    /// smaller than the whole source and is not asked.
    fn package(&mut self, root: &Path, relative: &str) -> Option<Package> {
        let (first, _) = relative.split_once('/')?;
        let directory = root.join(first);
        self.0
            .entry(directory)
            .or_insert_with_key(|directory| read_package(directory, first))
            .clone()
    }
}

fn read_package(directory: &Path, name: &str) -> Option<Package> {
    let text = std::fs::read_to_string(directory.join("Cargo.toml")).ok()?;
    let licence = toml::from_str::<toml::Table>(&text).ok().and_then(|manifest| {
        let package = manifest.get("package")?;
        let file = || package.get("license-file").map(|_| "see the package's licence file");
        package.get("license").and_then(|l| l.as_str()).or_else(file).map(str::to_owned)
    });
    Some(Package { directory: name.to_owned(), licence })
}

/// The programming language that a file's ending says.
pub(super) fn language(path: &str) -> &'static str {
    let path = super::without_compression(path);
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hpp" | "hh" => "cpp",
        "js" | "mjs" | "cjs" => "javascript",
        "ts" | "tsx" => "typescript",
        "go" => "go",
        "java" => "java",
        "sh" | "bash" => "shell",
        "rb" => "ruby",
        "swift" => "swift",
        "kt" | "kts" => "kotlin",
        "cs" => "csharp",
        "hs" => "haskell",
        "ml" | "mli" => "ocaml",
        "lua" => "lua",
        "sql" => "sql",
        "toml" => "toml",
        "html" | "htm" => "html",
        "css" => "css",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_licence_is_read_from_its_manifest() {
        let root = tempfile::tempdir().unwrap();
        let check = |name: &str, manifest: &str, expected: Option<&str>| {
            std::fs::create_dir_all(root.path().join(name)).unwrap();
            std::fs::write(root.path().join(name).join("Cargo.toml"), manifest).unwrap();
            let package =
                Licences::default().package(root.path(), &format!("{name}/src/lib.rs")).unwrap();
            assert_eq!((package.directory.as_str(), package.licence.as_deref()), (name, expected));
        };
        check("a-1.0.0", "[package]\nlicense = \"MIT OR Apache-2.0\"", Some("MIT OR Apache-2.0"));
        check("b-1.0.0", "[package]\nlicense-file = \"L\"", Some("see the package's licence file"));
        check("c-1.0.0", "not toml [", None);
        assert_eq!(Licences::default().package(root.path(), "lib.rs"), None);
    }
}
