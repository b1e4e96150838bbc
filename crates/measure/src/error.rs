//! Error of a recording: the operation, the file, and the line.

use std::io;
use std::path::{Path, PathBuf};

use plumb_block::FailureKind;
use plumb_state::whole_file::FileError;

/// Result type of run directories and recordings.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of writing or reading a recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system is full. Earlier data is still there.
    #[error("cannot {operation} {}: the file system is full; what was recorded before is kept", path.display())]
    Full {
        /// Attempted operation, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The operating system failed or refused.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// Attempted operation, as a verb.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The named directory cannot hold a recording, or has none; with the reason and the remedy.
    #[error("{0}")]
    Place(String),
    /// A file of a recording is malformed.
    #[error("{}:{line}: {found}: expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// Actual content.
        found: String,
        /// Expected content.
        expected: &'static str,
    },
    /// The data cannot be expressed in the file's format; with the data, the place, and what the format
    /// accepts.
    #[error("cannot write {0}")]
    Inexpressible(String),
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Self::io(error.operation, &error.path, error.source)
    }
}

impl Error {
    /// Returns the category of the failure: a place that cannot hold a recording is the user's mistake.
    pub fn failure(&self) -> FailureKind {
        match self {
            Self::Place(_) => FailureKind::Usage,
            Self::Io { source, .. } => FailureKind::from_io(source),
            _ => FailureKind::Failed,
        }
    }

    /// Returns true if the failure is due to a full file system.
    pub const fn is_for_want_of_space(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// Creates the error that `found` cannot be written to `path`, which accepts `expected`.
    pub(crate) fn inexpressible(found: &str, path: &Path, expected: &str) -> Self {
        Self::Inexpressible(format!("{found} to {}: expected {expected}", path.display()))
    }

    /// Creates the error that `operation` on `path` failed with `source`.
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
