//! Reasons why a profile could not be run, or had to stop.

use std::path::PathBuf;

use plumb_block::ErrorKind;

/// A profile that could not be run, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such profile or variant, or none that can be run so: what was typed, and what to do.
    #[error("{0}")]
    Unsuited(String),
    /// A limit makes no sense.
    #[error(transparent)]
    Limit(#[from] plumb_workload::Invalid),
    /// The profile's own directory could not be made or removed.
    #[error("cannot {operation} {}", path.display())]
    Directory {
        /// Operation that was going on.
        operation: &'static str,
        /// Directory of the workload.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The run failed, and its directory is still there.
    #[error("the run failed, and its directory {} could not be removed ({removal}): remove it by hand", path.display())]
    LeftBehind {
        /// The directory.
        path: PathBuf,
        /// Reason why it could not be removed.
        removal: String,
        /// Reason why the run failed.
        #[source]
        source: Box<Error>,
    },
    /// The file system became full.
    #[error("the file system is full: free some space, name another place, or run a smaller scale; stopped")]
    Full {
        /// The call that failed.
        #[source]
        source: Cause,
    },
    /// A sync failed.
    #[error(
        "a sync failed: what was written since the last good one may be lost, and no later sync there can be \
         trusted; stopped"
    )]
    SyncFailed {
        /// The call that failed.
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

/// The call that failed, of a file system or of SQLite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Failure of a file operation.
    #[error(transparent)]
    Store(#[from] plumb_block::Error),
    /// Failure of SQLite.
    #[error("SQLite cannot {doing}")]
    Sqlite {
        /// Operation that was going on.
        doing: &'static str,
        /// Reason why not.
        #[source]
        source: rusqlite::Error,
    },
}

impl Error {
    /// Returns the error of a call on files that failed; `is_sync` if it was to make something durable.
    pub(crate) fn of_call(source: plumb_block::Error, is_sync: bool) -> Self {
        let full = source.errno().is_some_and(plumb_block::Errno::is_full);
        let latched = source.kind == ErrorKind::FlushLatched;
        let source = Cause::Store(source);
        match (is_sync || latched, full) {
            // A sync that fails for want of space has lost data, too.
            (true, _) => Self::SyncFailed { source },
            (false, true) => Self::Full { source },
            (false, false) => Self::Call { source },
        }
    }

    /// Returns the error of something that SQLite could not do.
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
