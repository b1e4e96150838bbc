//! Errors of persisting a policy.

use std::path::PathBuf;

use crate::file::FileError;

/// Error of persisting a policy, or of reading a persisted one.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// The file system refused or failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of plumb is malformed.
    #[error("{} is not what plumb writes there: {what}; repair or remove it", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Position and reason.
        what: String,
    },
    /// The path of plumb contains special characters.
    #[error("`{program}` is not a path that a udev rule can call: give a plain absolute one with --program")]
    Program {
        /// The path.
        program: String,
    },
    /// The disk has no property by which a rule could recognise it.
    #[error("{name} has neither a WWN nor a serial number that a rule could know it by")]
    Nameless {
        /// The disk.
        name: String,
    },
}
