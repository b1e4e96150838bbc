//! All connections of a device. They are created together, before the first request, and losing one ends them
//! all.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plumb_block::{Clock as _, LbaRange, Nanos, PollFlags, Poller, Request, Tag, wait_any};

use super::error::ConnectError;
use super::export::Export;
use super::handshake::{NegotiatedConnection, Negotiation};
use super::link::{Common, Link, Way};
use super::options::Options;
use super::single;
use super::socket::{self, Deadline};
use crate::nbd::transport::Socket;
use crate::nbd::uri::Uri;

/// Maximum number of connections.
const CONNECTIONS_MAX: u32 = 64;

/// Connections of a device, at least one, all to one server.
pub(super) struct Connections {
    pub(super) uri: Uri,
    pub(super) options: Options,
    pub(super) common: Arc<Common>,
    pub(super) links: Vec<Arc<Link>>,
    pub(super) export: Arc<Export>,
    /// Reason why all connections were given up.
    lost: OnceLock<String>,
}

impl Connections {
    /// Creates all connections. Afterwards verifies that the first one's server is still there, which proves
    /// that all lead to the same server.
    pub(super) fn connect(uri: Uri, options: Options) -> Result<Self, ConnectError> {
        let until = options.time.now().saturating_add(options.connect_timeout);
        let (first, way) = negotiated(&uri, &options, until)?;
        let count = if first.is_multi_conn() { options.connections.clamp(1, CONNECTIONS_MAX) } else { 1 };
        let mut ways = vec![(first, way)];
        for _ in 1..count {
            ways.push(negotiated(&uri, &options, until)?);
        }
        let timeout = options.connect_timeout;
        let all = Self::over(uri, options, ways)?;
        if count > 1 {
            still_there(&all.links[0], timeout).map_err(|because| refused(&all.uri, because))?;
        }
        Ok(all)
    }

    /// Creates the set from negotiated connections, all to one server.
    ///
    /// # Errors
    /// If there is none, or they negotiated different properties.
    pub(super) fn over(uri: Uri, options: Options, ways: Vec<(Export, Way)>) -> Result<Self, ConnectError> {
        let Some((first, _)) = ways.first() else {
            return Err(refused(&uri, "it has no connection".to_owned()));
        };
        if ways.iter().any(|(another, _)| another != first) {
            return Err(refused(&uri, "its connections disagree about the export".to_owned()));
        }
        let export = Arc::new(first.clone());
        let common = Arc::new(Common { time: options.time.clone(), latch: OnceLock::new() });
        let link = |(_, way)| Arc::new(Link::new(way, Arc::clone(&export), Arc::clone(&common)));
        let links = ways.into_iter().map(link).collect();
        Ok(Self { uri, options, common, links, export, lost: OnceLock::new() })
    }

    /// Returns the connection for queue number `lane`.
    pub(super) fn link_for(&self, lane: usize) -> &Arc<Link> {
        &self.links[lane % self.links.len()]
    }

    /// Gives up all connections because one is lost. Waiting users of the others see theirs end.
    pub(super) fn lost(&self, because: &str) {
        if self.lost.set(because.to_owned()).is_ok() {
            self.links.iter().for_each(|link| link.cut());
        }
    }

    /// Returns the reason why the connections were given up, if they were.
    pub(super) fn why_lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }
}

/// Reads a block to check that the server of `link` responds.
fn still_there(link: &Arc<Link>, timeout: Nanos) -> Result<(), String> {
    let until = link.time().now().saturating_add(timeout);
    let block = LbaRange::new(plumb_block::Lba(0), 1);
    match single::request(link, Request::read(Tag(0), block), until) {
        // An unreadable block is a response, too.
        Ok(_) => Ok(()),
        Err(lost) => Err(format!("it went away while connections to it were made: {}", lost.0)),
    }
}

/// Connects to the server and negotiates, until `until`.
fn negotiated(uri: &Uri, options: &Options, until: Nanos) -> Result<(Export, Way), ConnectError> {
    let place = uri.to_string();
    let io = |operation, source: io::Error| match source.kind() {
        io::ErrorKind::TimedOut => {
            let seconds = Duration::from(options.connect_timeout).as_secs();
            ConnectError::Silent { place: place.clone(), seconds }
        }
        _ => ConnectError::Io { operation, place: place.clone(), source },
    };
    let until = Deadline { clock: &options.time, at: until };
    let socket = Arc::new(socket::connected(&uri.address, until).map_err(|source| io("connect to", source))?);
    let mut negotiation = Negotiation::new(uri.clone(), Box::new(Socket::new(Arc::clone(&socket))));
    loop {
        if let Some(outcome) = negotiation.advance() {
            let NegotiatedConnection { transport, export } = outcome?;
            return Ok((export, Way { transport, socket: Some(socket) }));
        }
        until.remaining().map_err(|source| io("negotiate with", source))?;
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, negotiation.wants_write());
        let mut poller = Poller::new(&options.time).watching(socket.as_fd(), events);
        wait_any([], Some(until.at), &mut poller).map_err(|error| io("wait for", io::Error::other(error)))?;
    }
}

fn refused(uri: &Uri, because: String) -> ConnectError {
    ConnectError::Refused { place: uri.to_string(), because }
}
