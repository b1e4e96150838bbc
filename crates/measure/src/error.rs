//! The error of recordings: what was being done, to which file, at which line.

use std::io;
use std::path::{Path, PathBuf};

use plumb_block::FailureKind;
use plumb_state::whole_file::FileError;

/// Shorthand for results of run directories and recordings.
pub type Result<T> = std::result::Result<T, Error>;

/// A recording that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system is full. What had been written before is still there.
    #[error("cannot {operation} {}: the file system is full; what was recorded before is kept", path.display())]
    Full {
        /// Attempted operation, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The operating system failed or refused.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// Attempted operation, as a verb.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The directory that was named is not for a recording, or has none; why, and what to do.
    #[error("{0}")]
    Place(String),
    /// A file of a recording does not read as what it should be.
    #[error("{}:{line}: {found}: expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Actual content.
        found: String,
        /// Expected content.
        expected: &'static str,
    },
    /// The data cannot be expressed in the file's format: what, where, and what the format takes.
    #[error("cannot write {0}")]
    Inexpressible(String),
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Self::io(error.operation, &error.path, error.source)
    }
}

impl Error {
    /// Returns the way in which a command fails that ends with it: a place that cannot hold a recording is
    /// the user's mistake.
    pub fn failure(&self) -> FailureKind {
        match self {
            Self::Place(_) => FailureKind::Usage,
            Self::Io { source, .. } => FailureKind::from_io(source),
            _ => FailureKind::Failed,
        }
    }

    /// Returns true if it failed because there is no room.
    pub const fn is_for_want_of_space(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// Returns the error that `found` cannot be written to `path`, which takes `expected`.
    pub(crate) fn inexpressible(found: &str, path: &Path, expected: &str) -> Self {
        Self::Inexpressible(format!("{found} to {}: expected {expected}", path.display()))
    }

    /// Returns `operation` on `path` failed with `source`.
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { operation, path, source }
            }
            _ => Self::Io { operation, path, source },
        }
    }
}
