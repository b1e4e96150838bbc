//! Errors of a journal.

use std::path::PathBuf;

use crate::file::FileError;

/// A journal that cannot be written, read or trusted.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused or failed. Nothing further was changed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another apply, resume or rollback runs.
    #[error("{} is held by another plumb (process {holder}): wait for it, or stop it", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
        /// Description of the lock's holder, as the lock has it.
        holder: String,
    },
    /// There is no journal of this name.
    #[error(
        "{} holds no snapshot and journal: it changed nothing, so there is nothing to undo; `plumb policy \
         apply` prints the directory of its journal, by default one below \
         /var/lib/plumb/policy/journals", path.display())]
    NotBegun {
        /// Directory of the journal.
        path: PathBuf,
    },
    /// A record is damaged and others follow, or a record is missing.
    #[error(
        "{}, line {line} (byte {offset}): {what}; it is not what plumb wrote, so plumb does nothing with \
         it", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Start of the line.
        offset: usize,
        /// Description of what is wrong.
        what: String,
    },
    /// An earlier record could not be made durable.
    #[error("{}: an earlier record could not be made durable, so nothing further is changed", path.display())]
    Latched {
        /// The directory.
        path: PathBuf,
    },
    /// A record or a snapshot cannot be put into words. Cannot happen with what plumb writes.
    #[error("cannot encode a record of {}", path.display())]
    Encode {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}
