//! An NBD server for any [`Device`](plumb_block::Device).
//!
//! Fixed newstyle handshake with LIST, INFO, GO, EXPORT_NAME, STARTTLS, structured replies and
//! `base:allocation`; READ, WRITE, FLUSH, TRIM, WRITE_ZEROES, BLOCK_STATUS, with FUA on each. One thread and
//! one queue a connection.
//!
//! - `handshake`: what is negotiated, as a state machine.
//! - `transmission`: requests and replies: the heart.
//! - `connection`: both over any transport, as a step function, and its driver over a socket.
//! - `exports`: what all connections share.
//! - `buffers`: the memory of a connection, all of it bounded.
//! - `listener`, `connections`: sockets that wait, and those that are served.
//!
//! What a reply means is the waist's contract, unchanged: a reply to a write says **acknowledged**; to a
//! flush, or to anything with FUA, **durable**. What is **visible** on one connection is visible on all.

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
pub use listener::{Listener, OWNER_ONLY, PATH_MAX_BYTES};
pub use options::{ConnectionEnd, Observer, Options};
pub use transmission::TransmissionFault;

/// Stack size of a connection's thread: enough for a TLS handshake and a device; pages never touched cost
/// nothing.
const STACK_BYTES: usize = 512 << 10;
/// How many connections beyond the limit are told so at once; more are closed without a word.
const REFUSED_AT_ONCE: usize = 16;
/// How long no connection is accepted after the system had no room for one.
const ACCEPT_PAUSE: Nanos = Nanos::millis(50);

/// Reason why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing to serve, or the exports cannot be told apart.
    #[error("cannot serve {name:?}: {why}")]
    Export {
        /// The name of the export.
        name: String,
        /// Reason why the export cannot be served.
        why: &'static str,
    },
    /// A place to listen cannot be had.
    #[error("cannot listen on {place}")]
    Listen {
        /// Path or address.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// Serving is refused, so that nobody is harmed: another server or something that is not a socket of ours
    /// is there, no client could connect, or the traffic would be in the clear beyond this machine. Holds the
    /// whole sentence, with what to do.
    #[error("{0}")]
    Refused(String),
    /// The system refused something that serving needs.
    #[error("cannot {operation}")]
    System {
        /// Action that failed, as a verb.
        operation: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl ServeError {
    fn refuse(place: &str, why: &str) -> Self {
        Self::Refused(format!("cannot listen on {place}: {why}"))
    }

    /// `place` is an address that other machines may reach.
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

/// Stops a server, from any thread. Clones stop the same server.
#[derive(Clone)]
pub struct Stopper {
    is_stopped: Arc<AtomicBool>,
    event: Arc<OwnedFd>,
}

impl Stopper {
    /// Makes the server accept no more connections, finish the requests that it has, and return.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        // The write fails only when the counter is full, and then the server has been woken already.
        rustix::io::write(&*self.event, &1_u64.to_ne_bytes()).unwrap_or_default();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

impl Server {
    /// Returns a server of `exports`.
    ///
    /// # Errors
    /// If there are none, or two have one name.
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

    /// Returns the number of connections being served now, but for those whose client has left.
    pub fn connections(&self) -> usize {
        self.served.with_client()
    }

    /// Returns the clients of these, in words, each once.
    pub fn clients(&self) -> Vec<String> {
        self.served.clients()
    }

    /// Ends all connections: what is in flight on them stays unanswered.
    pub fn end_connections(&self) {
        self.served.shut_down(Shutdown::Both);
    }

    /// Serves on `listeners` until stopped, in this thread and one more for each connection. When it returns
    /// no request is in flight, and the unix sockets are gone.
    ///
    /// A stop lets requests that were received be answered. Clients that do not read their replies, and
    /// handshakes that are not over, are cut off after [`Options::stop_timeout`]; a device that does not
    /// answer is given up after 3 s.
    ///
    /// # Errors
    /// If a listener is beyond this machine without TLS, or the system does not let connections be accepted.
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

    /// Accepts what waits at one listener; whether the system has room for more.
    fn accept_waiting<'scope>(&'scope self, listener: &Listener, scope: &'scope Scope<'scope, '_>) -> bool {
        loop {
            match listener.accept() {
                Ok(socket) => {
                    if !self.spawn(Arc::new(socket), scope) {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // The client was gone before it was let in.
                Err(error) if is_about_the_client(&error) => {}
                Err(_) => return false,
            }
        }
    }

    /// Starts the thread of a connection; whether the system had one.
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
