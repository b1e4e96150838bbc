//! An export of an NBD server, opened as a [`Device`].
//!
//! - `handshake`, `socket`: connection setup; the first as a step function over any transport.
//! - `export`: negotiated properties, and the translation of requests.
//! - `queue` ─ `link` ─ `replies`: the path of a request. A `link` is a connection, shared by the queues with
//!   a port at it; `jobs` are its requests, `commands` their pieces at the server.
//! - `connections`: all connections of a device.
//! - `extents`, `single`: queries outside of any queue.
//!
//! # After a connection is lost
//!
//! All connections of the device are given up, and none is reestablished. Every request that the server may
//! have seen ends as [`Unknown`](plumb_block::Outcome::Unknown); all others fail with ENOTCONN, and a failed
//! flush among them latches the device, since the state of acknowledged data is unknown. A load ends with the
//! first unanswered request, so reconnecting would be useless.
//!
//! # Limitations
//!
//! - A server that falsely sets CAN_MULTI_CONN, or several servers that share one address, cannot be
//!   recognised.
//! - Requests are sent, and the queue's part of a shared connection is processed, only while the queue is
//!   polled.

mod commands;
mod connections;
mod coverage;
mod error;
mod export;
mod extents;
mod handshake;
mod jobs;
mod link;
mod options;
mod queue;
mod replies;
mod single;
mod socket;
mod wakeups;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plumb_block::{
    Device, DeviceInfo, Errno, Error, ErrorKind, Extent, Latch, LbaRange, Queue, QueueOptions, Result,
};

pub use error::ConnectError;
pub use handshake::{NegotiatedConnection, Negotiation};
pub use options::Options;

use super::uri::Uri;
use connections::Connections;
use error::NOT_CONNECTED;
use extents::NoExtents;
use link::Way;
use queue::NbdQueue;

/// An open export.
pub struct NbdDevice {
    connections: Arc<Connections>,
    info: DeviceInfo,
    queues: AtomicUsize,
}

impl NbdDevice {
    /// Connects to an export. All connections are created here, before the first request.
    ///
    /// # Errors
    /// If the server is unreachable, does not speak the protocol, or does not offer the export.
    pub fn connect(uri: &Uri, options: Options) -> std::result::Result<Self, ConnectError> {
        Ok(Self::new(Connections::connect(uri.clone(), options)?))
    }

    /// Opens an export over negotiated, non-blocking connections, all to one server. The owner of the
    /// transports must make sure that the queues are polled when data has arrived.
    ///
    /// # Errors
    /// If there is no connection, or they negotiated different properties of the export.
    pub fn over(
        uri: &Uri,
        options: Options,
        connections: Vec<NegotiatedConnection>,
    ) -> std::result::Result<Self, ConnectError> {
        let way = |NegotiatedConnection { transport, export }| (export, Way { transport, socket: None });
        let ways = connections.into_iter().map(way).collect();
        Ok(Self::new(Connections::over(uri.clone(), options, ways)?))
    }

    fn new(connections: Connections) -> Self {
        let info = connections.export.info(&connections.uri.to_string());
        Self { connections: Arc::new(connections), info, queues: AtomicUsize::new(0) }
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.connections.links.len()
    }

    fn place(&self) -> String {
        self.connections.uri.to_string()
    }
}

impl Device for NbdDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let lane = self.queues.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(NbdQueue::new(Arc::clone(&self.connections), lane, &options)?))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        let failed = |errno, because: String| {
            Error::new(ErrorKind::Os(errno), "ask for the extents of", self.place()).because(because)
        };
        if range.nlb > 0 && !self.info.holds(range) {
            return Err(failed(Errno::EINVAL, format!("{range:?} is not within it")));
        }
        if let Some(because) = self.connections.why_lost() {
            return Err(failed(NOT_CONNECTED, because.to_owned()));
        }
        let timeout = self.connections.options.connect_timeout;
        extents::extents(self.connections.link_for(0), range, timeout).map_err(
            |unanswered| match unanswered {
                NoExtents::Lost(lost) => failed(NOT_CONNECTED, lost.0),
                NoExtents::Failed(errno) => failed(errno, "the server refused".to_owned()),
            },
        )
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        let error = Error::new(ErrorKind::Unsupported, "switch the write cache of", self.place());
        Err(error.because("the protocol has no command for it; ask the server's administrator"))
    }

    fn latched(&self) -> Option<Latch> {
        self.connections.common.latch.get().copied()
    }
}
