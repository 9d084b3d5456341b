//! What can go wrong for a whole corpus. A bad document is a count in the ledger instead.

use std::path::PathBuf;

/// A corpus that cannot be built or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recipe names a source that is not on this machine.
    #[error("source {name:?}: nothing found at {path}; {hint}", path = path.display())]
    SourceMissing {
        /// The source's name in the recipe.
        name: String,
        /// Where it was looked for.
        path: PathBuf,
        /// What to do about it.
        hint: String,
    },
    /// The source's path is there, but no file under it is taken.
    #[error("source {name:?}: no file under {path} matches its include and exclude patterns", path = path.display())]
    NoFiles {
        /// The source's name in the recipe.
        name: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Every document was dropped.
    #[error("no document is left after cleaning; the rules that dropped most: {biggest}")]
    NothingLeft {
        /// The three biggest rules with their counts.
        biggest: String,
    },
    /// A setting that cannot be used.
    #[error("setting {key}: {problem}")]
    BadSetting {
        /// The key, as in `sources[2].include`.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file that cannot be read or written.
    #[error(transparent)]
    Fs(#[from] base::FsError),
    /// A shard that is not a Parquet file of documents.
    #[error("{path} is not a shard of documents: {problem}", path = path.display())]
    BadShard {
        /// The shard.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The threads cannot be started.
    #[error("cannot start {threads} threads")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// The cause.
        #[source]
        source: rayon::ThreadPoolBuildError,
    },
    /// Asked to stop.
    #[error(transparent)]
    Interrupted(#[from] base::Interrupted),
}
