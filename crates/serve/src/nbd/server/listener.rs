//! Where a server listens.
//!
//! A unix socket is made under another name, readable by its owner only, and renamed into place when it listens: so
//! nobody ever finds one that is not ready or not protected. A file left over by a dead server is replaced, one of a
//! live server is not: whether it is alive is asked by connecting, under a lock of the directory, so that two servers
//! that start at once do not both find it dead.

use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use plumb_state::{DirectoryLock, whole_file};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt,
};

use super::ServeError;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;
/// How long the path of a unix socket may be: what `sun_path` holds with the zero behind it (unix(7)).
pub const PATH_MAX_BYTES: usize = 107;
/// Who may connect: the owner.
pub const OWNER_ONLY: u32 = 0o600;

/// Where a server listens. Dropping it removes its unix socket.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unix { fd: OwnedFd, path: PathBuf, identity: (u64, u64) },
    Tcp(TcpListener),
}

impl Listener {
    /// Listens on a unix socket at `path`; `mode` says who may connect, [`OWNER_ONLY`] unless there is a reason.
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
            return Err(ServeError::taken(&path.display().to_string(), &why));
        }
        let directory = whole_file::parent_of(path);
        let lock = DirectoryLock::take(directory).map_err(fail)?;
        refuse_if_taken(path)?;
        let hidden = directory.join(format!(".{:x}.nbd", std::process::id()));
        // It is not longer than the path itself by way of the open directory.
        let fits = hidden.as_os_str().len() <= PATH_MAX_BYTES;
        let short = Path::new("/proc/self/fd").join(lock.as_fd().as_raw_fd().to_string());
        let hidden = if fits { hidden } else { short.join(hidden.file_name().unwrap_or_default()) };
        let fd = listen_unix(&hidden, mode).map_err(fail)?;
        let placed = fs::rename(&hidden, path).and_then(|()| fs::symlink_metadata(path));
        match placed {
            Ok(found) => {
                let identity = (found.dev(), found.ino());
                Ok(Self { kind: Kind::Unix { fd, path: path.to_owned(), identity } })
            }
            Err(source) => {
                // The first failure is the one to tell.
                drop(fs::remove_file(&hidden));
                Err(fail(source))
            }
        }
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

    /// The address of a TCP listener: the port that the kernel chose for port 0.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            Kind::Unix { .. } => None,
        }
    }

    /// Whether the other end may be another machine.
    pub(super) fn is_beyond_this_machine(&self) -> bool {
        self.tcp_address().is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }

    /// Takes a connection that waits.
    pub(super) fn accept(&self) -> io::Result<OwnedFd> {
        match &self.kind {
            Kind::Unix { fd, .. } => Ok(rustix::net::accept_with(fd, SocketFlags::CLOEXEC)?),
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
            Kind::Unix { fd, .. } => fd.as_fd(),
            Kind::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Kind::Unix { path, identity, .. } = &self.kind else { return };
        let is_ours = fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == *identity);
        if is_ours {
            // Nobody is left to tell: a socket that stays is taken for that of a dead server, and replaced.
            drop(fs::remove_file(path));
        }
    }
}

/// Whether what is at `path` may be replaced: nothing, or the socket of a dead server.
fn refuse_if_taken(path: &Path) -> Result<(), ServeError> {
    let place = path.display().to_string();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ServeError::Listen { place, source }),
        Ok(found) if !found.file_type().is_socket() => Err(ServeError::taken(
            &place,
            "there is something there that is not a socket; choose another path",
        )),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Ok(_) => {
                Err(ServeError::taken(&place, "another server listens there; stop it or choose another path"))
            }
            Err(error) if error.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()) => {
                let why = "there is a socket of another kind there, for datagrams or packets, which no NBD server has left; choose \
                           another path";
                Err(ServeError::taken(&place, why))
            }
            Err(source) => Err(ServeError::Listen { place, source }),
        },
    }
}

fn listen_unix(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    bind(&fd, &address)?;
    let ready =
        fs::set_permissions(path, Permissions::from_mode(mode)).and_then(|()| Ok(listen(&fd, BACKLOG)?));
    if let Err(error) = ready {
        drop(fs::remove_file(path));
        return Err(error);
    }
    Ok(fd)
}
