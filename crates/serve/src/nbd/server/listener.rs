//! Place where a server listens.
//!
//! The unix socket of a dead server is replaced, that of a live one is not: whether it is alive is asked by
//! connecting.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use plumb_state::{DirectoryLock, whole_file};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::ServeError;
pub use crate::unix_socket::PATH_MAX_BYTES;
use crate::unix_socket::UnixSocket;

/// Mode of a socket to which only the owner may connect.
pub const OWNER_ONLY: u32 = 0o600;

/// Where a server listens. Dropping it removes its unix socket.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unix(UnixSocket),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens on a unix socket at `path`; `mode` says who may connect, [`OWNER_ONLY`] unless there is a
    /// reason.
    ///
    /// # Errors
    /// If another server listens there, something else than a socket is there, or the path is too long.
    pub fn unix(path: &Path, mode: u32) -> Result<Self, ServeError> {
        let fail = |source: io::Error| ServeError::Listen { place: path.display().to_string(), source };
        let bytes = path.as_os_str().len();
        if bytes > PATH_MAX_BYTES {
            let why = format!(
                "a socket's path has at most {PATH_MAX_BYTES} bytes, and this one has {bytes}; choose a shorter one"
            );
            return Err(ServeError::refuse(&path.display().to_string(), &why));
        }
        let lock = DirectoryLock::acquire(whole_file::parent_of(path)).map_err(fail)?;
        refuse_if_taken(path)?;
        let socket = UnixSocket::listen(path, mode, &lock).map_err(fail)?;
        Ok(Self { kind: Kind::Unix(socket) })
    }

    /// Listens on TCP. Whether it may be beyond this machine is decided when it is served.
    ///
    /// # Errors
    /// If the address is not this machine's, or taken.
    pub fn tcp(address: SocketAddr) -> Result<Self, ServeError> {
        let fail = |source| ServeError::Listen { place: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self { kind: Kind::Tcp(listener) })
    }

    /// Returns the address of a TCP listener: the port that the kernel chose for port 0.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            Kind::Unix(_) => None,
        }
    }

    /// Returns true if the other end may be another machine.
    pub fn is_beyond_this_machine(&self) -> bool {
        self.tcp_address().is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }

    /// Takes a connection that waits.
    pub(crate) fn accept(&self) -> io::Result<OwnedFd> {
        match &self.kind {
            Kind::Unix(socket) => socket.accept(),
            Kind::Tcp(listener) => {
                let socket = OwnedFd::from(listener.accept()?.0);
                // Replies leave at once, and a peer that vanished is noticed even while nothing is asked.
                sockopt::set_tcp_nodelay(&socket, true)?;
                sockopt::set_socket_keepalive(&socket, true)?;
                Ok(socket)
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Unix(socket) => socket.as_fd(),
            Kind::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Fails unless there is nothing at `path`, or the socket of a dead server, which may be replaced.
fn refuse_if_taken(path: &Path) -> Result<(), ServeError> {
    let place = path.display().to_string();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ServeError::Listen { place, source }),
        Ok(found) if !found.file_type().is_socket() => Err(ServeError::refuse(
            &place,
            "there is something there that is not a socket; choose another path",
        )),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Ok(_) => Err(ServeError::refuse(
                &place,
                "another server listens there; stop it or choose another path",
            )),
            Err(error) if error.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()) => {
                let why = "there is a socket of another kind there, for datagrams or packets, which no NBD server has left; choose \
                           another path";
                Err(ServeError::refuse(&place, why))
            }
            Err(source) => Err(ServeError::Listen { place, source }),
        },
    }
}
