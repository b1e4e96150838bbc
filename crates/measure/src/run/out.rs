//! Where a command puts its recording.

use std::path::PathBuf;

/// Where to put the recording.
#[derive(Debug, Clone)]
pub enum Out {
    /// There, whatever happens.
    At(PathBuf),
    /// In a new directory, and only if anything was measured.
    Within {
        /// The first of these that can be written holds it.
        parents: Vec<PathBuf>,
        /// Its name, or the beginning of it if that is taken.
        stem: String,
    },
}
