//! A listening unix socket at a path.
//!
//! The socket is created under a temporary name and renamed once it listens, so nobody finds one that is not
//! ready or not protected. Anything at the path is replaced. Therefore the caller first checks under a lock
//! of the directory that no live server listens there; without the lock, two servers starting at once could
//! both find it dead.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use plumb_state::{DirectoryLock, whole_file};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Maximum length of a socket path: the capacity of `sun_path` without the terminating zero (unix(7)).
pub const PATH_MAX_BYTES: usize = 107;

/// A listening unix socket. Dropping it removes it from its path, unless it [`stays`](Self::stays) or was
/// replaced.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    fd: OwnedFd,
    path: PathBuf,
    /// Identity of the socket's file, to distinguish it from a later server's.
    identity: (u64, u64),
    /// True if the socket stays at its path when dropped, as when a server is killed.
    pub(crate) stays: bool,
}

impl UnixSocket {
    /// Listens at `path`, whose directory must be `locked`. Only the owner may connect.
    ///
    /// # Errors
    /// Fails as socket(2), bind(2) and rename(2) do. The path is then unchanged.
    pub(crate) fn listen(path: &Path, locked: &DirectoryLock) -> io::Result<Self> {
        let hidden = whole_file::parent_of(path).join(format!(".{:x}.socket", std::process::id()));
        // Relative to the open directory, the temporary path is not longer than the path itself.
        let fits = hidden.as_os_str().len() <= PATH_MAX_BYTES;
        let short = Path::new("/proc/self/fd").join(locked.as_fd().as_raw_fd().to_string());
        let hidden = if fits { hidden } else { short.join(hidden.file_name().unwrap_or_default()) };
        let placed = listen_at(&hidden).and_then(|fd| {
            fs::rename(&hidden, path)?;
            let found = fs::symlink_metadata(path)?;
            Ok(Self { fd, path: path.to_owned(), identity: (found.dev(), found.ino()), stays: false })
        });
        if placed.is_err() {
            // Report the first failure.
            fs::remove_file(&hidden).unwrap_or_default();
        }
        placed
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts a waiting connection; does not block.
    ///
    /// # Errors
    /// Fails as accept(2) does.
    pub(crate) fn accept(&self) -> io::Result<OwnedFd> {
        Ok(accept_with(&self.fd, SocketFlags::CLOEXEC)?)
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let is_there =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if is_there && !self.stays {
            // A destructor cannot report an error. A remaining socket looks like that of a dead server, and
            // will be replaced.
            fs::remove_file(&self.path).unwrap_or_default();
        }
    }
}

/// Creates a socket that listens at `path`, replacing leftovers of this process. Nobody else can connect even
/// before its permissions are set, since it does not listen until then.
fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    whole_file::remove(path).map_err(|error| error.source)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    listen(&fd, BACKLOG)?;
    Ok(fd)
}
