//! Errors of serving a device.

use std::io;
use std::path::PathBuf;

use plumb_block::FailureKind;
use plumb_text::shell_word;

use crate::error::ExportError;
use crate::nbd::server::ServeError;

/// Error of serving a device.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The name is invalid.
    #[error(
        "`{0}` is not a name: expected up to 40 letters, digits, `-`, `_` and `.`, first a letter, a digit or `_`"
    )]
    Name(String),
    /// There already is a drive of this name.
    #[error(
        "there is already a drive `{0}`: name this one with --name, or remove that one with `plumb drive \
         detach {word}`",
        word = shell_word(.0)
    )]
    Taken(String),
    /// The limit of open files is too low.
    #[error(
        "at most {limit} files may be open here, and serving needs {needed}: raise the limit (`ulimit -n {needed}`; LimitNOFILE= of a unit)"
    )]
    Descriptors {
        /// Limit of open files.
        limit: u64,
        /// Minimum that a service needs.
        needed: u64,
    },
    /// The control socket is not available.
    #[error("cannot make the control socket {}", path.display())]
    Control {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The drive could not be created.
    #[error("cannot make the drive")]
    Device(#[from] plumb_block::Error),
    /// The drive could not be shut down cleanly, so its medium may be incomplete.
    #[error("what it held at risk could not be made durable as it ended")]
    ShutDown(#[source] plumb_block::Error),
    /// The drive could not be served over NBD.
    #[error("cannot be served over NBD")]
    Nbd(#[from] ServeError),
    /// The drive could not be attached as a loop device.
    #[error("cannot be attached")]
    Attach(#[source] ExportError),
    /// The drive could not be exported through ublk.
    #[error("cannot be exported through ublk")]
    Ublk(#[source] ExportError),
    /// The block device could not be removed.
    #[error("cannot be taken away")]
    Detach(#[source] ExportError),
    /// Clients are connected.
    #[error("cannot be removed: it is in use over NBD by {}", by.join(", "))]
    Connected {
        /// Description of each client.
        by: Vec<String>,
    },
    /// The block device was removed although it was in use, because the service ended.
    #[error("it was removed while in use, and its users get I/O errors now")]
    CutOff(#[source] ExportError),
    /// The system refused a thread or a wait.
    #[error("cannot {operation}")]
    System {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl ServiceError {
    /// Returns the category of the failure.
    pub fn failure(&self) -> FailureKind {
        match self {
            Self::Name(_)
            | Self::Ublk(ExportError::Geometry { .. })
            | Self::Attach(ExportError::Geometry { .. }) => FailureKind::Usage,
            Self::Taken(_)
            | Self::Descriptors { .. }
            | Self::Nbd(ServeError::Refused(_))
            | Self::Ublk(ExportError::NotRecoverable { .. })
            | Self::Attach(ExportError::NameInUse { .. } | ExportError::Left { .. }) => FailureKind::Refused,
            Self::Control { source, .. } | Self::Nbd(ServeError::Listen { source, .. }) => {
                FailureKind::from_io(source)
            }
            _ => FailureKind::Failed,
        }
    }

    /// Returns advice that follows the error and its causes; empty if these include it.
    pub fn remedy(&self) -> &'static str {
        let Self::Attach(ExportError::Os { source, place, .. }) = self else { return "" };
        match source.kind() {
            io::ErrorKind::PermissionDenied => "; --attach takes root, --nbd does not",
            io::ErrorKind::NotFound if place.starts_with("/dev") => {
                "; --attach takes the modules fuse and loop (modprobe fuse loop), --nbd does not"
            }
            _ => "",
        }
    }
}
