//! Listening sockets of a server.
//!
//! The unix socket of a dead server is replaced, that of a live one is not; a connection attempt shows which.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use plumb_state::{DirectoryLock, whole_file};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::ServeError;
pub use crate::unix_socket::PATH_MAX_BYTES;
use crate::unix_socket::UnixSocket;

/// Address at which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A unix socket, which only this user can open.
    Unix(PathBuf),
    /// A TCP address; port 0 selects a free one.
    Tcp(SocketAddr),
}

impl ListenAddress {
    /// Listens at the address.
    ///
    /// # Errors
    /// If the address is not available.
    pub fn listen(&self) -> Result<Listener, ServeError> {
        match self {
            Self::Unix(path) => Listener::unix(path),
            Self::Tcp(address) => Listener::tcp(*address),
        }
    }

    /// Returns the address if other machines may reach it.
    pub fn beyond_this_machine(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) if !address.ip().to_canonical().is_loopback() => Some(*address),
            _ => None,
        }
    }
}

/// A listening socket. Dropping it removes its unix socket.
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
    /// Listens on a unix socket at `path`, to which only its owner may connect.
    ///
    /// # Errors
    /// If another server listens there, something other than a socket is there, or the path is too long.
    pub fn unix(path: &Path) -> Result<Self, ServeError> {
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
        let socket = UnixSocket::listen(path, &lock).map_err(fail)?;
        Ok(Self { kind: Kind::Unix(socket) })
    }

    /// Listens on TCP. Whether other machines may connect is decided when serving.
    ///
    /// # Errors
    /// If the address does not belong to this machine, or is in use.
    pub fn tcp(address: SocketAddr) -> Result<Self, ServeError> {
        let fail = |source| ServeError::Listen { place: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self { kind: Kind::Tcp(listener) })
    }

    /// Returns the address of a TCP listener, with the port chosen by the kernel for port 0.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            Kind::Unix(_) => None,
        }
    }

    /// Returns true if clients may be on other machines.
    pub fn is_beyond_this_machine(&self) -> bool {
        self.tcp_address().is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }

    /// Accepts a waiting connection.
    pub(crate) fn accept(&self) -> io::Result<OwnedFd> {
        match &self.kind {
            Kind::Unix(socket) => socket.accept(),
            Kind::Tcp(listener) => {
                let socket = OwnedFd::from(listener.accept()?.0);
                // Send replies without delay, and detect a vanished peer even while idle.
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

/// Fails if there is anything at `path` except the socket of a dead server, which may be replaced.
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
