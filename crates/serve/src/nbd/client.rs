//! An export of an NBD server, opened as a [`Device`].
//!
//! - `handshake`, `tls`, `socket`, `transport`: a connection is made.
//! - `export`: what was negotiated, and what requests become under it.
//! - `queue` ─ `link` ─ `output`, `replies`: the way of a request. A `link` is a connection, shared by the queues that
//!   have a port at it; `jobs` are its requests, `commands` the pieces of them that the server has.
//! - `session`, `connector`, `durability`: the connections of one epoch, what comes after they are lost, and what a flush
//!   may then vouch for.
//! - `extents`, `ask`: questions outside of any queue.
//!
//! # After a connection is lost
//!
//! Every request of which the server may have seen anything ends as [`Unknown`](plumb_block::Outcome::Unknown): nothing is
//! sent twice, nothing is acknowledged that the server did not answer. Requests that were not begun wait for the next
//! connection. If any acknowledged write was not covered by a good flush before the loss, the next flush fails with
//! ECONNRESET and latches the device, for the server may have been restarted and have lost it. `durability` has the reasons.
//!
//! # Limitations
//!
//! - A server whose flag CAN_MULTI_CONN is untrue, or several servers behind one address that take turns, cannot be told
//!   from an honest one.
//! - A queue needs to be polled for its requests to be sent, and for its part of a shared connection to be served.

mod ask;
mod commands;
mod connector;
mod coverage;
mod durability;
mod error;
mod export;
mod extents;
mod handshake;
mod jobs;
mod link;
mod options;
mod output;
mod queue;
mod replies;
mod session;
mod socket;
mod tls;
mod transport;
mod wait;
mod wake;
mod wake_set;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plumb_block::{
    Device, DeviceInfo, Errno, Error, ErrorKind, Extent, Latch, LbaRange, Queue, QueueOptions, Result,
};

pub use error::ConnectError;
pub use options::{Options, Reconnect};

use super::uri::Uri;
use connector::{Connector, Status};
use extents::Unanswered;
use queue::NbdQueue;

/// ENOTCONN: what requests fail with when there is no connection and there will be none.
const NOT_CONNECTED: Errno = Errno(107);

/// An export, opened.
pub struct NbdDevice {
    connector: Arc<Connector>,
    queues: AtomicUsize,
}

impl NbdDevice {
    /// Connects to an export. All connections are made here, before the first request.
    ///
    /// # Errors
    /// If the server cannot be reached, does not speak the protocol, or does not give the export.
    pub fn connect(uri: &Uri, options: Options) -> std::result::Result<Self, ConnectError> {
        let connector = Connector::connect(uri.clone(), options)?;
        Ok(Self { connector, queues: AtomicUsize::new(0) })
    }

    /// How many connections there are now.
    pub fn connections(&self) -> usize {
        match self.connector.status() {
            Status::Up(session) => session.links.len(),
            Status::Down | Status::Closed(_) => 0,
        }
    }

    /// Whether the server said, when it was connected to last, that the export is read-only. Writes, discards and zeroes
    /// then fail with EROFS, before anything is sent: whoever means to write can say so without trying.
    pub fn is_read_only(&self) -> bool {
        self.connector.is_read_only()
    }

    fn place(&self) -> String {
        self.connector.uri().to_string()
    }
}

impl Device for NbdDevice {
    fn info(&self) -> DeviceInfo {
        self.connector.info()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        if let Status::Closed(because) = self.connector.status() {
            let error = Error::new(ErrorKind::Os(NOT_CONNECTED), "open a queue to", self.place());
            return Err(error.because(because));
        }
        let lane = self.queues.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(NbdQueue::new(Arc::clone(&self.connector), lane, &options)?))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        let failed = |errno, because: String| {
            Error::new(ErrorKind::Os(errno), "ask for the extents of", self.place()).because(because)
        };
        if range.nlb > 0 && !self.info().holds(range) {
            return Err(failed(Errno::EINVAL, format!("{range:?} is not within it")));
        }
        match self.connector.status() {
            Status::Up(session) => {
                let link = session.link_for(0);
                extents::extents(link, range, self.connector.options.connect_timeout).map_err(|unanswered| {
                    match unanswered {
                        Unanswered::Lost(lost) => failed(NOT_CONNECTED, lost.0),
                        Unanswered::Failed(errno) => failed(errno, "the server refused".to_owned()),
                    }
                })
            }
            Status::Down => Err(failed(NOT_CONNECTED, "the connection is lost".to_owned())),
            Status::Closed(because) => Err(failed(NOT_CONNECTED, because)),
        }
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        let error = Error::new(ErrorKind::Unsupported, "switch the write cache of", self.place());
        Err(error.because("the protocol has no command for it; ask the server's administrator"))
    }

    fn latched(&self) -> Option<Latch> {
        self.connector.common.durability.latch()
    }
}
