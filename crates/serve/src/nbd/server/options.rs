//! Options of a server, and what its observer learns of each connection.

use std::sync::Arc;
use std::time::Duration;

use plumb_block::{Bytes, Clock, RealClock};

use crate::nbd::tls::ServerTls;

/// How a connection ended.
#[derive(Debug, Clone)]
pub struct ConnectionEnd {
    /// Why, if not because the client left: an error with its causes, in one line.
    pub failure: Option<String>,
}

/// Called by the thread of each connection when it has ended.
pub type Observer = Arc<dyn Fn(&ConnectionEnd) + Send + Sync>;

/// How a server is to behave. Made by [`Options::default`] and changed from there.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Encryption with certificates; needed for TCP beyond this machine. Once set, clients that do not ask
    /// for it are refused.
    pub tls: Option<ServerTls>,
    /// Number of connections that are served at once; further ones are told so and closed.
    pub connections_max: u32,
    /// Time that a handshake may take. The transmission phase has no limit: idle clients are held.
    pub handshake_timeout: Duration,
    /// Time that a stop waits for requests in flight and replies unread before connections are closed under
    /// them.
    pub stop_timeout: Duration,
    /// Number of requests that the queue of a connection holds in flight.
    pub depth: u32,
    /// Memory that the payloads of all connections may take, beyond 288 KiB for each that has made a request.
    pub memory_max: Bytes,
    /// Clock by which handshakes and requests are late.
    pub clock: Arc<dyn Clock>,
    /// Told when a connection has ended.
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
