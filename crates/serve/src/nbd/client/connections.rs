//! All connections of a device. They are made together, before the first request, and the first that is lost
//! ends them all.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plumb_block::{LbaRange, Nanos, Request, Tag};

use super::error::ConnectError;
use super::export::Export;
use super::handshake::Handshake;
use super::link::{Common, Link};
use super::options::Options;
use super::single;
use super::socket;
use crate::nbd::transport::Socket;
use crate::nbd::uri::Uri;

/// More connections than this are not made, whatever is asked.
const CONNECTIONS_MAX: u32 = 64;

/// The connections of a device, at least one, all to one server.
pub(super) struct Connections {
    pub(super) uri: Uri,
    pub(super) options: Options,
    pub(super) common: Arc<Common>,
    pub(super) links: Vec<Arc<Link>>,
    pub(super) export: Arc<Export>,
    /// Why there are none any more.
    lost: OnceLock<String>,
}

impl Connections {
    /// Makes all connections. With the first it is then made sure that the server that took it was there
    /// until the last was made: so they all lead to one.
    pub(super) fn connect(uri: Uri, options: Options) -> Result<Self, ConnectError> {
        let common = Arc::new(Common { clock: Arc::clone(&options.clock), latch: OnceLock::new() });
        let until = Instant::now() + Duration::from(options.connect_timeout);
        let (transport, export) = handshake(&uri, options.connect_timeout, until)?;
        let count = if export.is_multi_conn() { options.connections.clamp(1, CONNECTIONS_MAX) } else { 1 };
        let export = Arc::new(export);
        let link = |transport| Arc::new(Link::new(transport, Arc::clone(&export), Arc::clone(&common)));
        let mut links = vec![link(transport)];
        for _ in 1..count {
            let (transport, another) = handshake(&uri, options.connect_timeout, until)?;
            if another != *export {
                return Err(refused(&uri, "its connections disagree about the export".to_owned()));
            }
            links.push(link(transport));
        }
        if count > 1 {
            still_there(&links[0], options.connect_timeout).map_err(|because| refused(&uri, because))?;
        }
        Ok(Self { uri, options, common, links, export, lost: OnceLock::new() })
    }

    /// The connection for the queue number `lane`.
    pub(super) fn link_for(&self, lane: usize) -> &Arc<Link> {
        &self.links[lane % self.links.len()]
    }

    /// One of them is lost: all are given up. Those who wait for another see it end.
    pub(super) fn lost(&self, because: &str) {
        if self.lost.set(because.to_owned()).is_ok() {
            self.links.iter().for_each(|link| link.cut());
        }
    }

    /// Why there are none any more, if so.
    pub(super) fn why_lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }
}

/// Asks the server at the other end of `link` for a block.
fn still_there(link: &Arc<Link>, timeout: Nanos) -> Result<(), String> {
    let until = link.clock().now().saturating_add(timeout);
    let block = LbaRange::new(plumb_block::Lba(0), 1);
    match single::request(link, Request::read(Tag(0), block), until) {
        // A block that cannot be read was answered for all that.
        Ok(_) => Ok(()),
        Err(lost) => Err(format!("it went away while connections to it were made: {}", lost.0)),
    }
}

fn handshake(uri: &Uri, timeout: Nanos, until: Instant) -> Result<(Socket, Export), ConnectError> {
    let (place, seconds) = (uri.to_string(), Duration::from(timeout).as_secs());
    let socket = socket::connected(&uri.address, until).map_err(|source| match source.kind() {
        io::ErrorKind::TimedOut => ConnectError::Silent { place, seconds },
        _ => ConnectError::Io { operation: "connect to", place, source },
    })?;
    Handshake { transport: Socket::new(Arc::new(socket)), uri, until, seconds }.negotiate()
}

fn refused(uri: &Uri, because: String) -> ConnectError {
    ConnectError::Refused { place: uri.to_string(), because }
}
