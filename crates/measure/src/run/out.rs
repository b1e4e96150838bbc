//! Place for a command's recording.

use std::path::PathBuf;

/// Place for the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// Nowhere: nothing is recorded.
    Nowhere,
    /// Exactly this directory: a new one in an existing parent, or an empty one.
    At {
        /// The directory.
        path: PathBuf,
        /// True if an earlier run there may be replaced; otherwise it is refused.
        replace: bool,
    },
    /// A new directory, created only if something was measured.
    Within {
        /// Candidate parent directories, of which the first writable one is used; it is created if missing.
        parents: Vec<PathBuf>,
        /// Name of the directory, or the prefix of its name if that is taken.
        stem: String,
    },
}

impl Out {
    /// Returns true if the user named the place, so that failing to record is an error.
    pub const fn is_named(&self) -> bool {
        matches!(self, Self::At { .. })
    }
}
