//! Reasons why a policy could not be made to last.

use std::path::PathBuf;

use crate::file::FileError;

/// A policy that could not be made to last, or was not found where it should be.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// The file system refused or failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of ours is not as it should be.
    #[error("{} is not what plumb writes there: {what}; repair or remove it", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        what: String,
    },
    /// The path of plumb is not plain.
    #[error("`{program}` is not a path that a udev rule can call: give a plain absolute one with --program")]
    Program {
        /// The path.
        program: String,
    },
    /// The disk has nothing that a rule could know it by.
    #[error("{name} has neither a WWN nor a serial number that a rule could know it by")]
    Nameless {
        /// The disk.
        name: String,
    },
}
