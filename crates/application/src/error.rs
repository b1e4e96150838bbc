//! Errors that prevent a profile from running, or stop it.

use std::path::PathBuf;

use plumb_block::ErrorKind;

/// Error that prevented a profile from running, or stopped it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The profile or variant does not exist, or cannot run like this. The text has the remedy.
    #[error("{0}")]
    Unsuited(String),
    /// A limit is invalid.
    #[error(transparent)]
    Limit(#[from] plumb_workload::Invalid),
    /// The directory of the run could not be created or removed.
    #[error("cannot {operation} {}", path.display())]
    Directory {
        /// Operation that failed.
        operation: &'static str,
        /// Directory of the run.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: std::io::Error,
    },
    /// The run failed, and its directory could not be removed.
    #[error("the run failed, and its directory {} could not be removed ({removal}): remove it by hand", path.display())]
    LeftBehind {
        /// Directory that is left.
        path: PathBuf,
        /// Error of the removal.
        removal: String,
        /// Error of the run.
        #[source]
        source: Box<Error>,
    },
    /// The file system is full.
    #[error("the file system is full: free some space, name another place, or run a smaller scale; stopped")]
    Full {
        /// Cause of the failure.
        #[source]
        source: Cause,
    },
    /// A sync failed.
    #[error(
        "a sync failed: what was written since the last good one may be lost, and no later sync there can be \
         trusted; stopped"
    )]
    SyncFailed {
        /// Cause of the failure.
        #[source]
        source: Cause,
    },
    /// Another call failed.
    #[error("a call failed; stopped")]
    Call {
        /// Cause of the failure.
        #[source]
        source: Cause,
    },
}

/// Failed call of a file system or of SQLite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Failure of a file operation.
    #[error(transparent)]
    Store(#[from] plumb_block::Error),
    /// Failure of SQLite.
    #[error("SQLite cannot {doing}")]
    Sqlite {
        /// Operation that failed.
        doing: &'static str,
        /// Cause of the failure.
        #[source]
        source: rusqlite::Error,
    },
}

impl Error {
    /// Converts the error of a file operation; `is_sync` is true if the operation should have made data
    /// durable.
    pub(crate) fn of_call(source: plumb_block::Error, is_sync: bool) -> Self {
        let full = source.errno().is_some_and(plumb_block::Errno::is_full);
        let latched = source.kind == ErrorKind::FlushLatched;
        let source = Cause::Store(source);
        match (is_sync || latched, full) {
            // A sync that fails because the file system is full has lost data as well.
            (true, _) => Self::SyncFailed { source },
            (false, true) => Self::Full { source },
            (false, false) => Self::Call { source },
        }
    }

    /// Converts an error of SQLite.
    pub(crate) fn of_sqlite(source: rusqlite::Error, doing: &'static str) -> Self {
        let code = source.sqlite_extended_error_code();
        let cause = Cause::Sqlite { doing, source };
        match code {
            Some(rusqlite::ffi::SQLITE_FULL) => Self::Full { source: cause },
            Some(rusqlite::ffi::SQLITE_IOERR_FSYNC | rusqlite::ffi::SQLITE_IOERR_DIR_FSYNC) => {
                Self::SyncFailed { source: cause }
            }
            _ => Self::Call { source: cause },
        }
    }
}
