//! Digests of what a build will read: the stage's inputs in its manifest.

use crate::error::Error;
use crate::resolve::{Corpus, Input, InputFile};
use crate::settings::Settings;
use base::{Digest, FsError, Hasher, Seed};
use rayon::prelude::*;
use std::path::Path;

/// The digest of each source, by name, in the recipe's order: over the relative paths, sizes and
/// contents of exactly the files that [`crate::build`] would read with the same arguments. The digest of a
/// generated source is that of its range; the blocklists' files stand under the name `blocklists`.
///
/// # Errors
/// A missing source, a setting that cannot be used, an unreadable file.
pub fn inputs(
    settings: &Settings,
    base_dir: &Path,
    seed: Seed,
) -> Result<Vec<(String, Digest)>, Error> {
    let corpus = Corpus::resolve(settings, base_dir, seed)?;
    let mut digests = Vec::new();
    for source in &corpus.sources {
        digests.push((source.settings.name.clone(), digest(&source.input)?));
    }
    if !settings.blocklists.files.is_empty() {
        digests.push(("blocklists".into(), corpus.blocklist.digest()));
    }
    Ok(digests)
}

/// The digest of a source's or a piece's input.
pub(crate) fn digest(input: &Input) -> Result<Digest, Error> {
    let mut hasher = Hasher::new();
    match input {
        Input::Generated(range) => {
            hasher
                .field(b"generated")
                .field(&range.start.to_le_bytes())
                .field(&range.end.to_le_bytes());
        }
        Input::Files(files) => {
            let one = |file: &InputFile| {
                let path = file.path();
                Digest::of_file(&path).map_err(FsError::io("read", &path))
            };
            let digests: Vec<Digest> = files.par_iter().map(one).collect::<Result<_, _>>()?;
            for (file, digest) in files.iter().zip(digests) {
                hasher
                    .field(file.relative.as_bytes())
                    .field(&file.bytes.to_le_bytes())
                    .field(&digest.0);
            }
        }
    }
    Ok(hasher.finish())
}
