//! Why a check could not begin.

use std::path::PathBuf;

pub use super::size::SizeError;

/// A check that could not begin. What goes wrong later is in the document.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The path cannot be looked at.
    #[error("cannot look at {}", path.display())]
    NotThere {
        /// What was given.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A block device was named.
    #[error(
        "{0} is a block device, and a check writes: it would destroy what is on it. Check a directory on it, or look \
         at it with `plumb survey {0}`",
        path.display()
    )]
    RawDevice {
        /// What was given.
        path: PathBuf,
    },
    /// Something else was named.
    #[error("{} is neither a directory nor a file: name a directory", path.display())]
    NotADirectory {
        /// What was given.
        path: PathBuf,
    },
    /// A file system of the kernel's own was named.
    #[error(
        "{} is on {kind}, which shows state of the kernel and stores nothing: name a directory on a disk",
        path.display()
    )]
    KernelState {
        /// What was given.
        path: PathBuf,
        /// The type of the file system: `proc`.
        kind: String,
    },
    /// No test file of a sensible size fits, or no such part of a drive.
    #[error("cannot measure in {target}")]
    Size {
        /// The directory, or the drive.
        target: String,
        /// Why, and what to do.
        source: SizeError,
    },
    /// The survey failed.
    #[error(transparent)]
    Survey(#[from] plumb_path::SurveyError),
}
