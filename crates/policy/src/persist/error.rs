//! Why a policy could not be made to last.

use std::io;
use std::path::PathBuf;

use super::udev::RuleError;

/// A policy that could not be made to last, or was not found where it should be.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// The file system refused or failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was done.
        operation: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file of ours is not as it should be.
    #[error("{} is not what plumb writes there: {what}; mend or remove it", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        what: String,
    },
    /// The disk has nothing that a rule could know it by.
    #[error("{name} has neither a WWN nor a serial number that a rule could know it by")]
    Nameless {
        /// The disk.
        name: String,
    },
    /// The rules that would be written are not understood by udev.
    #[error("the udev rule would be wrong")]
    Rule(#[from] RuleError),
}

impl PersistError {
    pub(super) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { operation, path: path.into(), source }
    }
}
