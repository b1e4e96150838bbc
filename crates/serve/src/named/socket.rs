//! The control socket of a service: made, found taken, and removed whatever becomes of the service.
//!
//! Two services that start at once must not both find a name free, so naming and listening happen under a lock of the
//! directory. A socket on which nobody listens was left by a process that was killed, and is replaced.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use plumb_state::DirectoryLock;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use super::error::ServiceError;
use super::registry;

/// How many may wait to give an order.
const BACKLOG: i32 = 64;

/// A control socket that listens. Dropping it removes it, unless it replaced that of a killed process and nothing came of it: then
/// it stays as that one was, so that what the killed process left is still found.
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// So that the socket of a later service is not taken for this one.
    identity: (u64, u64),
    /// A killed process has left one of this name, and what else it left may still be there.
    replaces_dead: bool,
}

impl ControlSocket {
    /// Listens for orders to `name`, or to a free name after `model`, for its owner alone; and the name.
    ///
    /// # Errors
    /// [`Name`](ServiceError::Name), [`Taken`](ServiceError::Taken), or [`Control`](ServiceError::Control).
    pub(crate) fn listen(
        directory: &Path,
        name: Option<String>,
        model: &str,
    ) -> Result<(Self, String), ServiceError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| ServiceError::Control { path, source }
        };
        let _lock = DirectoryLock::take(directory).map_err(failed(directory))?;
        let name = match name {
            Some(name) if !registry::is_name(&name) => return Err(ServiceError::Name(name)),
            Some(name) if registry::is_served(directory, &name) => return Err(ServiceError::Taken(name)),
            Some(name) => name,
            None => registry::free_name(directory, model),
        };
        let path = registry::socket(directory, &name);
        let replaces_dead = path.symlink_metadata().is_ok();
        remove_if_there(&path).map_err(failed(&path))?;
        match listen_at(&path) {
            Ok((listener, found)) => {
                let identity = (found.dev(), found.ino());
                Ok((Self { listener, path, identity, replaces_dead }, name))
            }
            Err(error) => {
                // The first failure is the one to tell.
                remove_if_there(&path).unwrap_or_default();
                Err(failed(&path)(error))
            }
        }
    }

    /// The service is open.
    pub(crate) fn confirm(&mut self) {
        self.replaces_dead = false;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Somebody who waits to give an order, if there is one.
    pub(crate) fn accept(&self) -> Option<UnixStream> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        Some(stream)
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if is_ours && !self.replaces_dead {
            // Not being able to remove it leaves a name that the next service replaces.
            remove_if_there(&self.path).unwrap_or_default();
        }
    }
}

/// Listens at `path`. Nobody else may connect, not even before its permissions are set: until then it does not listen.
fn listen_at(path: &Path) -> io::Result<(UnixListener, fs::Metadata)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listen(&socket, BACKLOG)?;
    Ok((UnixListener::from(socket), fs::symlink_metadata(path)?))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Removes the control socket of a drive whose process is gone; whether there was one. That of a live one stays.
///
/// # Errors
/// As unlink(2).
pub fn forget(directory: &Path, name: &str) -> io::Result<bool> {
    let _lock = DirectoryLock::take(directory)?;
    let path = registry::socket(directory, name);
    if registry::is_served(directory, name) || !path.exists() {
        return Ok(false);
    }
    remove_if_there(&path).map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(directory: &Path, name: &str) -> Result<(ControlSocket, String), ServiceError> {
        ControlSocket::listen(directory, Some(name.to_owned()), "model")
    }

    #[test]
    fn a_name_is_taken_while_somebody_listens_and_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let (held, _) = listen(at, "a").unwrap();
        assert!(matches!(listen(at, "a"), Err(ServiceError::Taken(name)) if name == "a"));
        assert!(!forget(at, "a").unwrap());
        assert_eq!(fs::metadata(held.path()).unwrap().permissions().mode() & 0o777, 0o600);
        drop(held);
        assert!(registry::names(at).unwrap().is_empty());
        drop(UnixListener::bind(registry::socket(at, "a")).unwrap());
        assert_eq!(registry::names(at).unwrap(), ["a"], "as a killed process leaves it");
        let (mut again, _) = listen(at, "a").unwrap();
        again.confirm();
        drop(again);
        assert!(!forget(at, "a").unwrap());
    }

    #[test]
    fn a_service_that_came_to_nothing_hides_no_killed_one() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        drop(UnixListener::bind(registry::socket(at, "a")).unwrap());
        drop(listen(at, "a").unwrap());
        assert_eq!(registry::names(at).unwrap(), ["a"]);
        assert!(!registry::is_served(at, "a"));
        assert!(forget(at, "a").unwrap());
        drop(listen(at, "a").unwrap());
        assert!(registry::names(at).unwrap().is_empty());
    }

    #[test]
    fn what_a_killed_process_left_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        drop(UnixListener::bind(registry::socket(directory.path(), "a")).unwrap());
        assert!(forget(directory.path(), "a").unwrap());
        assert!(registry::names(directory.path()).unwrap().is_empty());
    }
}
