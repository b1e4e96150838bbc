//! Connected sockets.
//!
//! Numeric addresses and `localhost` are used directly. Other host names are resolved by the C library, which
//! may not work in a static binary (it loads its modules at run time): use an address then.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use plumb_block::{Clock, Nanos};
use rustix::io::Errno;
use rustix::net::sockopt::{
    Timeout, set_socket_keepalive, set_socket_timeout, set_tcp_keepidle, set_tcp_nodelay,
    set_tcp_user_timeout,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::nbd::uri::Address;

/// Idle time after which the kernel checks whether a silent peer is alive.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Maximum time in milliseconds for which the peer's kernel may leave data unacknowledged before the
/// connection counts as dead: a host that lost power sends nothing.
const UNACKNOWLEDGED_MAX_MS: u32 = 30_000;

/// Time on a clock at which a wait ends.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) at: Nanos,
}

impl Deadline<'_> {
    /// Returns the remaining time.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if there is none.
    pub(super) fn remaining(self) -> io::Result<Duration> {
        let left = self.at.since(self.clock.now());
        if left == Nanos::ZERO { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.into()) }
    }
}

/// Connects to `address` until `until`; fails with [`TimedOut`](io::ErrorKind::TimedOut) if it takes longer.
pub(super) fn connected(address: &Address, until: Deadline<'_>) -> io::Result<OwnedFd> {
    match address {
        Address::Unix(path) => unix(path, until),
        Address::Tcp { host, port } => tcp(host, *port, until),
    }
}

fn unix(path: &Path, until: Deadline<'_>) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        // A server that does not accept lets connect() block once its backlog is full; this limits it.
        set_socket_timeout(&socket, Timeout::Send, Some(until.remaining()?))?;
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(other) => return Err(other.into()),
        }
    }
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket)
}

fn tcp(host: &str, port: u16, until: Deadline<'_>) -> io::Result<OwnedFd> {
    let addresses = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) if host.eq_ignore_ascii_case("localhost") => vec![
            SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), port),
        ],
        Err(_) => (host, port).to_socket_addrs()?.collect(),
    };
    let mut failed = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for address in addresses {
        match TcpStream::connect_timeout(&address, until.remaining()?) {
            Ok(stream) => return tuned(stream.into()),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn tuned(socket: OwnedFd) -> io::Result<OwnedFd> {
    set_tcp_nodelay(&socket, true)?;
    set_socket_keepalive(&socket, true)?;
    set_tcp_keepidle(&socket, KEEPALIVE)?;
    set_tcp_user_timeout(&socket, UNACKNOWLEDGED_MAX_MS)?;
    Ok(socket)
}
