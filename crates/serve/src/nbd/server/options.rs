//! Options of a server, and the information for its observer.

use std::sync::Arc;
use std::time::Duration;

use plumb_block::{Bytes, Clock, RealClock};

use crate::nbd::tls::ServerTls;

/// End of a connection.
#[derive(Debug, Clone)]
pub struct ConnectionEnd {
    /// Error with its causes, in one line; `None` if the client left.
    pub failure: Option<String>,
}

/// Callback from a connection's thread when it has ended.
pub type Observer = Arc<dyn Fn(&ConnectionEnd) + Send + Sync>;

/// Options of a server, based on [`Options::default`].
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Encryption with certificates; required for TCP beyond this machine. If set, clients without encryption
    /// are refused.
    pub tls: Option<ServerTls>,
    /// Maximum number of simultaneous connections; further ones are refused.
    pub connections_max: u32,
    /// Timeout of a handshake. The transmission phase has none: idle clients stay connected.
    pub handshake_timeout: Duration,
    /// Time that a stop waits for requests in flight and unread replies before it closes connections.
    pub stop_timeout: Duration,
    /// Depth of a connection's queue.
    pub depth: u32,
    /// Maximum payload memory of all connections, in addition to 288 KiB for each that has made a request.
    pub memory_max: Bytes,
    /// Clock for handshake and request timeouts.
    pub clock: Arc<dyn Clock>,
    /// Callback for ended connections.
    pub observer: Option<Observer>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tls: None,
            connections_max: 1024,
            handshake_timeout: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(10),
            depth: 128,
            memory_max: Bytes::mib(256),
            clock: Arc::new(RealClock::start()),
            observer: None,
        }
    }
}
