//! The error of recordings: what was being done, to which file, at which line.

use std::io;
use std::path::{Path, PathBuf};

/// Shorthand for results of run directories and recordings.
pub type Result<T> = std::result::Result<T, Error>;

/// A recording that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system is full. What had been written before is still there.
    #[error("cannot {operation} {}: the file system is full; what was recorded before is kept", path.display())]
    Full {
        /// What was being done, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The operating system failed or refused.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was being done, as a verb.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The directory holds something that is not a recording of plumb, so nothing is written there.
    #[error("{} is not empty and not a run of plumb (found {found}): name an empty or a new directory", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// One of the entries found there.
        found: String,
    },
    /// The directory holds a run already.
    #[error("{} holds a recorded run: name another directory, or replace that run with --replace", path.display())]
    Recorded {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is to be made in one that is not there.
    #[error("{}: there is no directory {}: make it, or name another place", path.display(), parent.display())]
    NoParent {
        /// The directory that was to be made.
        path: PathBuf,
        /// Where.
        parent: PathBuf,
    },
    /// A file of a recording does not read as what it should be.
    #[error("{}:{line}: {found}: expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
    /// What is to be written cannot be expressed in the file's format.
    #[error("cannot write {} to {}: expected {expected}", found, path.display())]
    Inexpressible {
        /// The file.
        path: PathBuf,
        /// What was to be written.
        found: String,
        /// What the format takes.
        expected: &'static str,
    },
}

impl Error {
    /// Whether the user named a place that cannot hold a recording.
    pub const fn is_of_the_place(&self) -> bool {
        matches!(self, Self::Occupied { .. } | Self::Recorded { .. } | Self::NoParent { .. })
    }

    /// Whether it failed because there is no room.
    pub const fn is_for_want_of_space(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// `operation` on `path` failed with `source`.
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
