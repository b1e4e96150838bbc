//! An NBD server for any [`Device`](plumb_block::Device).
//!
//! Fixed newstyle handshake with LIST, INFO, GO, EXPORT_NAME, STARTTLS, structured replies and
//! `base:allocation`; READ, WRITE, FLUSH, TRIM, WRITE_ZEROES, BLOCK_STATUS, with FUA on each. Each connection
//! has one thread and one queue.
//!
//! - `handshake`: the negotiation, as a state machine.
//! - `transmission`: requests and replies.
//! - `connection`: both over any transport, as a step function, and its driver over a socket.
//! - `exports`: state shared by all connections.
//! - `buffers`: memory of a connection, which is bounded.
//! - `listener`, `connections`: listening sockets, and connections being served.
//!
//! Replies have the meaning of the device's contract: a reply to a write means **acknowledged**; to a flush,
//! or to anything with FUA, **durable**. Data **visible** on one connection is visible on all.

mod buffers;
mod connection;
mod connections;
mod export;
mod exports;
mod handshake;
mod listener;
mod options;
#[cfg(test)]
mod tests;
mod transmission;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope};

use plumb_block::{Nanos, PollFlags, Poller, in_one_line, wait_any};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::Shutdown;

use super::transport::Socket;
use connections::Connections;

use crate::served_device::REQUEST_TIMEOUT_CLOSING;

pub use connection::Connection;
pub use export::Export;
pub use exports::Exports;
pub use listener::{ListenAddress, Listener, PATH_MAX_BYTES};
pub use options::{ConnectionEnd, Observer, Options};
pub use transmission::TransmissionFault;

/// Stack size of a connection's thread: enough for a TLS handshake and a device; pages never touched cost
/// nothing.
const STACK_BYTES: usize = 512 << 10;
/// Maximum number of excess connections that get a refusal at a time; further ones are closed silently.
const REFUSED_AT_ONCE: usize = 16;
/// Pause of accepting after the system ran out of resources.
const ACCEPT_PAUSE: Nanos = Nanos::millis(50);

/// Error of a server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There are no exports, or their names are ambiguous.
    #[error("cannot serve {name:?}: {why}")]
    Export {
        /// The name of the export.
        name: String,
        /// Reason why the export cannot be served.
        why: &'static str,
    },
    /// An address is not available for listening.
    #[error("cannot listen on {place}")]
    Listen {
        /// Path or address.
        place: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Serving is refused as unsafe: another server or something other than our socket is at the path, no
    /// client could connect, or the traffic would leave this machine unencrypted. Holds a complete sentence
    /// with advice.
    #[error("{0}")]
    Refused(String),
    /// A system call failed.
    #[error("cannot {operation}")]
    System {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl ServeError {
    fn refuse(place: &str, why: &str) -> Self {
        Self::Refused(format!("cannot listen on {place}: {why}"))
    }

    /// Creates the refusal of `place`, an address that other machines may reach.
    pub(crate) fn in_the_clear(place: &str) -> Self {
        Self::Refused(format!(
            "will not serve on {place} without TLS: use a unix socket, a loopback address, or give certificates"
        ))
    }
}

/// An NBD server.
pub struct Server {
    exports: Exports,
    stopper: Stopper,
    served: Arc<Connections>,
    refused: Arc<Connections>,
}

/// Handle that stops a server from any thread. Clones stop the same server.
#[derive(Clone)]
pub struct Stopper {
    is_stopped: Arc<AtomicBool>,
    event: Arc<OwnedFd>,
}

impl Stopper {
    /// Makes the server stop accepting connections, finish its requests, and return.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        // The write fails only if the counter is full; then the server is awake already.
        rustix::io::write(&*self.event, &1_u64.to_ne_bytes()).unwrap_or_default();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

impl Server {
    /// Creates a server of `exports`.
    ///
    /// # Errors
    /// If there are none, or two have the same name.
    pub fn new(exports: Vec<Export>, options: Options) -> Result<Self, ServeError> {
        let exports = Exports::new(exports, options)?;
        let system = |errno: rustix::io::Errno| ServeError::System {
            operation: "make an event descriptor",
            source: errno.into(),
        };
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(system)?;
        Ok(Self {
            exports,
            stopper: Stopper { is_stopped: Arc::new(AtomicBool::new(false)), event: Arc::new(event) },
            served: Arc::default(),
            refused: Arc::default(),
        })
    }

    /// Returns a handle that stops this server.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Returns the number of connections being served, except those whose client has left.
    pub fn connections(&self) -> usize {
        self.served.with_client()
    }

    /// Returns descriptions of the connected clients, without duplicates.
    pub fn clients(&self) -> Vec<String> {
        self.served.clients()
    }

    /// Ends all connections: requests in flight stay unanswered.
    pub fn end_connections(&self) {
        self.served.shut_down(Shutdown::Both);
    }

    /// Serves on `listeners` until stopped, in this thread and one more for each connection. On return no
    /// request is in flight, and the unix sockets are removed.
    ///
    /// After a stop, received requests are still answered. Clients that do not read their replies, and
    /// incomplete handshakes, are disconnected after [`Options::stop_timeout`]; an unresponsive device is
    /// given up after 3 s.
    ///
    /// # Errors
    /// If a listener is reachable from other machines without TLS, or the system does not allow connections
    /// to be accepted.
    pub fn serve(&self, listeners: Vec<Listener>) -> Result<(), ServeError> {
        for listener in &listeners {
            let is_encrypted = self.exports.options.tls.is_some();
            if listener.is_beyond_this_machine() && !is_encrypted {
                let place = listener.tcp_address().map_or_else(String::new, |address| address.to_string());
                return Err(ServeError::in_the_clear(&place));
            }
        }
        std::thread::scope(|scope| {
            let outcome = self.accept_until_stopped(&listeners, scope);
            drop(listeners);
            self.served.shut_down(Shutdown::Read);
            self.refused.shut_down(Shutdown::Both);
            for export in self.exports.served.iter() {
                export.device.shorten_request_timeout(REQUEST_TIMEOUT_CLOSING);
            }
            if !self.served.wait_empty(self.exports.options.stop_timeout) {
                self.served.shut_down(Shutdown::Both);
            }
            outcome
        })
    }

    fn accept_until_stopped<'scope>(
        &'scope self,
        listeners: &[Listener],
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), ServeError> {
        let (clock, mut has_room) = (&*self.exports.options.clock, true);
        while !self.stopper.is_stopped() {
            let mut poller = Poller::new(clock).watching(self.stopper.event.as_fd(), PollFlags::IN);
            for listener in listeners.iter().filter(|_| has_room) {
                poller = poller.watching(listener.as_fd(), PollFlags::IN);
            }
            let until = (!has_room).then(|| clock.now().saturating_add(ACCEPT_PAUSE));
            wait_any([], until, &mut poller).map_err(|error| ServeError::System {
                operation: "wait for connections",
                source: io::Error::other(error),
            })?;
            has_room = listeners.iter().all(|listener| self.accept_waiting(listener, scope));
        }
        Ok(())
    }

    /// Accepts waiting connections of one listener. Returns false if the system ran out of resources.
    fn accept_waiting<'scope>(&'scope self, listener: &Listener, scope: &'scope Scope<'scope, '_>) -> bool {
        loop {
            match listener.accept() {
                Ok(socket) => {
                    if !self.spawn(Arc::new(socket), scope) {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // The client had already left.
                Err(error) if is_about_the_client(&error) => {}
                Err(_) => return false,
            }
        }
    }

    /// Starts the thread of a connection. Returns false if the system could not.
    fn spawn<'scope>(&'scope self, socket: Arc<OwnedFd>, scope: &'scope Scope<'scope, '_>) -> bool {
        let is_refused = self.served.len() >= self.exports.options.connections_max as usize;
        if is_refused && self.refused.len() >= REFUSED_AT_ONCE {
            return true;
        }
        let all = if is_refused { &self.refused } else { &self.served };
        let connected = all.add(&socket);
        let builder = Builder::new().name("nbd".to_owned()).stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, move || {
            let connected = connected;
            let exports = &self.exports;
            let connection = if is_refused { exports.refuse() } else { exports.connect() };
            let outcome = connection::serve(connection, &mut Socket::new(socket), &*exports.options.clock);
            self.report_end(outcome);
            drop(connected);
        });
        thread.is_ok()
    }

    fn report_end(&self, outcome: Result<(), TransmissionFault>) {
        if let Some(observer) = &self.exports.options.observer {
            observer(&ConnectionEnd { failure: outcome.err().map(|broken| in_one_line(&broken)) });
        }
    }
}

fn is_about_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | InvalidInput | Interrupted)
}
