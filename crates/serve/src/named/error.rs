//! Reasons why a device cannot be served, or not to the end.

use std::io;
use std::path::PathBuf;

use plumb_block::FailureKind;
use plumb_text::shell_word;

use crate::error::ExportError;
use crate::nbd::server::ServeError;

/// Reason why a device cannot be served, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The name cannot be used.
    #[error(
        "`{0}` is not a name: expected up to 40 letters, digits, `-`, `_` and `.`, first a letter, a digit or `_`"
    )]
    Name(String),
    /// There is a drive of this name.
    #[error(
        "there is already a drive `{0}`: name this one with --name, or remove that one with `plumb drive \
         detach {word}`",
        word = shell_word(.0)
    )]
    Taken(String),
    /// This process may open too few files.
    #[error(
        "at most {limit} files may be open here, and serving needs {needed}: raise the limit (`ulimit -n {needed}`; LimitNOFILE= of a unit)"
    )]
    Descriptors {
        /// Number of files that may be open.
        limit: u64,
        /// Least number that a service needs.
        needed: u64,
    },
    /// The control socket cannot be had.
    #[error("cannot make the control socket {}", path.display())]
    Control {
        /// Path of the socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The drive cannot be made.
    #[error("cannot make the drive")]
    Device(#[from] plumb_block::Error),
    /// The drive ended, and its medium is not as it should be.
    #[error("what it held at risk could not be made durable as it ended")]
    ShutDown(#[source] plumb_block::Error),
    /// The drive cannot be served over NBD.
    #[error("cannot be served over NBD")]
    Nbd(#[from] ServeError),
    /// The drive cannot be attached as a loop device.
    #[error("cannot be attached")]
    Attach(#[source] ExportError),
    /// The drive cannot be exported through ublk.
    #[error("cannot be exported through ublk")]
    Ublk(#[source] ExportError),
    /// The block device cannot be taken away.
    #[error("cannot be taken away")]
    Detach(#[source] ExportError),
    /// Clients are connected to it.
    #[error("cannot be removed: it is in use over NBD by {}", by.join(", "))]
    Connected {
        /// Each in words.
        by: Vec<String>,
    },
    /// The block device was taken away although it was in use, since the service ended.
    #[error("it was removed while in use, and its users get I/O errors now")]
    CutOff(#[source] ExportError),
    /// The system refused a thread or a wait.
    #[error("cannot {operation}")]
    System {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl ServiceError {
    /// Returns the way in which a command fails that ends with it.
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

    /// Returns what to do, in words that follow the error and its causes; empty where these say it.
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
