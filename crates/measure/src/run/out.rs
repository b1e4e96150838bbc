//! Where a command puts its recording.

use std::path::PathBuf;

/// Place for the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// Nowhere: nothing is kept.
    Nowhere,
    /// There, whatever happens: a directory that is new, in one that exists, or empty.
    At {
        /// The directory.
        path: PathBuf,
        /// True if an earlier run there is replaced; else it is refused.
        replace: bool,
    },
    /// A new directory, made only if anything was measured.
    Within {
        /// The first of these that can be written holds it; it is made if it is missing.
        parents: Vec<PathBuf>,
        /// Name of the directory, or the beginning of its name if that is taken.
        stem: String,
    },
}

impl Out {
    /// Returns true if the user named the place, so that a run without its recording is a failure.
    pub const fn is_named(&self) -> bool {
        matches!(self, Self::At { .. })
    }
}
