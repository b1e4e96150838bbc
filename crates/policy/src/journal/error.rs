//! Errors of a journal.

use std::path::PathBuf;

use crate::file::FileError;

/// Error of writing, reading or trusting a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused or failed. Nothing further was changed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another apply, resume or rollback is running.
    #[error("{} is held by another plumb (process {holder}): wait for it, or stop it", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
        /// Description of the lock's holder, from the lock.
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
    /// A damaged record is followed by others, or a record is missing.
    #[error(
        "{}, line {line} (byte {offset}): {what}; it is not what plumb wrote, so plumb does nothing with \
         it", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Offset of the line in bytes.
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
    /// A record or a snapshot cannot be serialized, which cannot happen with plumb's own.
    #[error("cannot encode a record of {}", path.display())]
    Encode {
        /// The directory.
        path: PathBuf,
        /// Error of the serialization.
        source: serde_json::Error,
    },
}
