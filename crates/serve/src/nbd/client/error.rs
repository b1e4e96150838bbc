//! Reasons why an export could not be opened, and what requests fail with once its connection is lost.

use std::io;

use plumb_block::{Errno, Error, ErrorKind};

use crate::nbd::wire::WireError;

/// ENOTCONN: the error of requests once the connection is lost.
pub(super) const NOT_CONNECTED: Errno = Errno(107);

/// Reason why an export could not be opened. `place` is its URI.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server cannot be reached, or the connection broke.
    #[error("cannot {operation} {place}")]
    Io {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// Where.
        place: String,
        /// Reason why it failed.
        source: io::Error,
    },
    /// The server did not answer in time.
    #[error(
        "{place} did not answer within {seconds} s: check that it is an NBD server, and that it is \
         neither stopped nor busy with as many clients as it takes"
    )]
    Silent {
        /// Where.
        place: String,
        /// Time waited in seconds.
        seconds: u64,
    },
    /// The server sent something that is not the protocol.
    #[error("{place} does not speak NBD as expected")]
    Protocol {
        /// Where.
        place: String,
        /// Violation of the protocol.
        source: WireError,
    },
    /// The server said no, or what it offers cannot be used.
    #[error("{place}: {because}")]
    Refused {
        /// Where.
        place: String,
        /// Why, and what to do.
        because: String,
    },
    /// Certificates or the encryption itself.
    #[error("TLS with {place}: {because}")]
    Tls {
        /// Where.
        place: String,
        /// Why, and what to do.
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
