//! Errors of opening an export, and the error of requests after the connection is lost.

use std::io;

use plumb_block::{Errno, Error, ErrorKind};

use crate::nbd::wire::WireError;

/// ENOTCONN: the error of requests once the connection is lost.
pub(super) const NOT_CONNECTED: Errno = Errno(107);

/// Error of opening an export. `place` is its URI.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server is unreachable, or the connection broke.
    #[error("cannot {operation} {place}")]
    Io {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// URI of the export.
        place: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The server did not answer in time.
    #[error(
        "{place} did not answer within {seconds} s: check that it is an NBD server, and that it is \
         neither stopped nor busy with as many clients as it takes"
    )]
    Silent {
        /// URI of the export.
        place: String,
        /// Time waited in seconds.
        seconds: u64,
    },
    /// The server violated the protocol.
    #[error("{place} does not speak NBD as expected")]
    Protocol {
        /// URI of the export.
        place: String,
        /// Violation of the protocol.
        source: WireError,
    },
    /// The server refused, or its offer is unusable.
    #[error("{place}: {because}")]
    Refused {
        /// URI of the export.
        place: String,
        /// Reason, and what to do.
        because: String,
    },
    /// Problem of certificates or encryption.
    #[error("TLS with {place}: {because}")]
    Tls {
        /// URI of the export.
        place: String,
        /// Reason, and what to do.
        because: String,
    },
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::Io { source, .. } => ErrorKind::Os(source.raw_os_error().map_or(Errno::EIO, Errno)),
            ConnectError::Silent { .. } => ErrorKind::Os(Errno(rustix::io::Errno::TIMEDOUT.raw_os_error())),
            ConnectError::Protocol { .. } | ConnectError::Refused { .. } | ConnectError::Tls { .. } => {
                ErrorKind::Invalid
            }
        };
        Self::new(kind, "open", "an NBD export").because(plumb_block::error::in_one_line(&error))
    }
}
