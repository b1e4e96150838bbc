//! All connections of one epoch.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_block::{LbaRange, Nanos, Request, Tag};

use super::ask;
use super::durability::Epoch;
use super::error::ConnectError;
use super::export::Export;
use super::handshake::Handshake;
use super::link::{Common, Link};
use super::options::Options;
use super::socket;
use super::transport::Transport;
use crate::nbd::uri::Uri;

/// More connections than this are not made, whatever is asked.
const CONNECTIONS_MAX: u32 = 64;

/// The connections of one epoch, at least one, all to one server.
pub(super) struct Session {
    pub(super) epoch: Epoch,
    pub(super) links: Vec<Arc<Link>>,
    pub(super) export: Arc<Export>,
}

impl Session {
    /// Makes all connections. With the first it is then made sure that the server that took it was there until the last
    /// was made: so they all lead to one.
    pub(super) fn establish(
        uri: &Uri,
        options: &Options,
        common: &Arc<Common>,
        logical_block: Option<u64>,
    ) -> Result<Self, ConnectError> {
        let epoch = common.durability.epoch();
        let until = Instant::now() + Duration::from(options.connect_timeout);
        let (transport, export) = handshake(uri, options.connect_timeout, until)?;
        let export = match logical_block {
            Some(before) => export.keep_logical_block(before).map_err(|because| refused(uri, because))?,
            None => export,
        };
        let count = if export.is_multi_conn() { options.connections.clamp(1, CONNECTIONS_MAX) } else { 1 };
        let export = Arc::new(export);
        let link = |transport| Arc::new(Link::new(epoch, transport, Arc::clone(&export), Arc::clone(common)));
        let mut links = vec![link(transport)];
        for _ in 1..count {
            let (transport, another) = handshake(uri, options.connect_timeout, until)?;
            let another = another.keep_logical_block(export.logical_block());
            let another = another.map_err(|because| refused(uri, because))?;
            if another != *export {
                return Err(refused(uri, "its connections disagree about the export".to_owned()));
            }
            links.push(link(transport));
        }
        if count > 1 {
            still_there(&links[0], until).map_err(|because| refused(uri, because))?;
        }
        Ok(Self { epoch, links, export })
    }
}

/// Asks the server at the other end of `link` for a block.
fn still_there(link: &Arc<Link>, until: Instant) -> Result<(), String> {
    let block = LbaRange::new(plumb_block::Lba(0), 1);
    match ask::request(link, Request::read(Tag(0), block), until) {
        // A block that cannot be read was answered for all that.
        Ok(_) => Ok(()),
        Err(lost) => Err(format!("it went away while connections to it were made: {}", lost.0)),
    }
}

fn handshake(uri: &Uri, timeout: Nanos, until: Instant) -> Result<(Transport, Export), ConnectError> {
    let (place, seconds) = (uri.to_string(), Duration::from(timeout).as_secs());
    let socket = socket::connected(&uri.address, until).map_err(|source| match source.kind() {
        io::ErrorKind::TimedOut => ConnectError::Silent { place, seconds },
        _ => ConnectError::Io { operation: "connect to", place, source },
    })?;
    Handshake { transport: Transport::new(socket), uri, until, seconds }.negotiate()
}

fn refused(uri: &Uri, because: String) -> ConnectError {
    ConnectError::Refused { place: uri.to_string(), because }
}
