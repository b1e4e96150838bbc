//! A unix socket that listens at a path, and its place there.
//!
//! The socket is made under another name and renamed into place when it listens: so nobody ever finds one
//! that is not ready or not protected. What is at the path is replaced: whoever calls looks first whether a
//! living server listens there, under a lock of the directory, so that two servers that start at once do not
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

/// Number of connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Time that the path of a unix socket may be: what `sun_path` holds with the zero behind it (unix(7)).
pub const PATH_MAX_BYTES: usize = 107;

/// A unix socket that listens. Dropping it removes it from its path, unless it [`stays`](Self::stays) or
/// another one is there by then.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    fd: OwnedFd,
    path: PathBuf,
    /// Identity of the socket's file, so that the socket of a later server is not taken for this one.
    identity: (u64, u64),
    /// True if the socket stays at its path when it is dropped, as when a server is killed.
    pub(crate) stays: bool,
}

impl UnixSocket {
    /// Listens at `path`, whose directory is `locked`; `mode` says who may connect.
    ///
    /// # Errors
    /// Fails as socket(2), bind(2) and rename(2). What was at the path is there still.
    pub(crate) fn listen(path: &Path, mode: u32, locked: &DirectoryLock) -> io::Result<Self> {
        let hidden = whole_file::parent_of(path).join(format!(".{:x}.socket", std::process::id()));
        // By way of the open directory the hidden path is not longer than the path itself.
        let fits = hidden.as_os_str().len() <= PATH_MAX_BYTES;
        let short = Path::new("/proc/self/fd").join(locked.as_fd().as_raw_fd().to_string());
        let hidden = if fits { hidden } else { short.join(hidden.file_name().unwrap_or_default()) };
        let placed = listen_at(&hidden, mode).and_then(|fd| {
            fs::rename(&hidden, path)?;
            let found = fs::symlink_metadata(path)?;
            Ok(Self { fd, path: path.to_owned(), identity: (found.dev(), found.ino()), stays: false })
        });
        if placed.is_err() {
            // The first failure is the one to tell.
            fs::remove_file(&hidden).unwrap_or_default();
        }
        placed
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes a connection that waits; it does not wait for one.
    ///
    /// # Errors
    /// Fails as accept(2).
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
            // Nobody is left to tell: a socket that stays is taken for that of a dead server, and replaced.
            fs::remove_file(&self.path).unwrap_or_default();
        }
    }
}

/// Makes a socket that listens at `path`, where another one of this process may have been left. Nobody else
/// may connect, not even before its permissions are set: until then it does not listen.
fn listen_at(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    whole_file::remove(path).map_err(|error| error.source)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    listen(&fd, BACKLOG)?;
    Ok(fd)
}
