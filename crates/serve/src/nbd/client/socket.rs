//! Connected sockets.
//!
//! Numeric addresses and `localhost` are connected to as they are. Any other host name is looked up by the C
//! library, which in a static binary may be unable to (it loads its look-up modules at run time): name the
//! address then.

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

/// How long a silent peer is trusted before the kernel asks whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// How long sent bytes may stay unacknowledged by the peer's kernel, in milliseconds, before the connection
/// is dead: a host that lost power says nothing.
const UNACKNOWLEDGED_MAX_MS: u32 = 30_000;

/// A time by a clock after which nobody waits any more.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) at: Nanos,
}

impl Deadline<'_> {
    /// Returns the time that is left.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if there is none.
    pub(super) fn remaining(self) -> io::Result<Duration> {
        let left = self.at.since(self.clock.now());
        if left == Nanos::ZERO { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.into()) }
    }
}

/// Returns a socket connected to `address`, by `until`; [`TimedOut`](io::ErrorKind::TimedOut) if nobody took
/// it until then.
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
        // A server that accepts nobody keeps connect() waiting once its backlog is full; this ends that.
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
