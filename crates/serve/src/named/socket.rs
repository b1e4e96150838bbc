//! Control socket of a service: creation, detection of conflicts, and removal.
//!
//! Two services that start at once must not both find a name free, so naming and listening happen under a
//! lock of the directory. A socket without a listener belongs to a killed process, and is replaced.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use plumb_state::{DirectoryLock, whole_file};

use super::error::ServiceError;
use super::registry;
use crate::unix_socket::UnixSocket;

/// A listening control socket. Dropping it removes it, unless it replaced that of a killed process and the
/// service did not open: then it stays, so that the remains of the killed process can still be found.
pub(crate) struct ControlSocket(UnixSocket);

impl ControlSocket {
    /// Listens for orders to `name`, or to a free name derived from `model`, privately. Returns the socket
    /// and the name.
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
        let lock = DirectoryLock::acquire(directory).map_err(failed(directory))?;
        let name = match name {
            Some(name) if !registry::is_name(&name) => return Err(ServiceError::Name(name)),
            Some(name) if registry::is_served(directory, &name) => return Err(ServiceError::Taken(name)),
            Some(name) => name,
            None => registry::free_name(directory, model),
        };
        let path = registry::socket(directory, &name);
        // A killed process has left a socket of this name, and perhaps more.
        let replaces_dead = path.symlink_metadata().is_ok();
        let mut socket = UnixSocket::listen(&path, &lock).map_err(failed(&path))?;
        socket.stays = replaces_dead;
        Ok((Self(socket), name))
    }

    /// Records that the service is open.
    pub(crate) fn confirm(&mut self) {
        self.0.stays = false;
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Accepts a waiting client, if there is one.
    pub(crate) fn accept(&self) -> Option<UnixStream> {
        self.0.accept().ok().map(UnixStream::from)
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Removes the control socket of a drive whose process has ended; returns true if there was one. A socket in
/// use stays.
///
/// # Errors
/// Fails as unlink(2) does.
pub fn forget(directory: &Path, name: &str) -> io::Result<bool> {
    let _lock = DirectoryLock::acquire(directory)?;
    let path = registry::socket(directory, name);
    let is_served = registry::is_served(directory, name);
    if is_served { Ok(false) } else { whole_file::remove(&path).map_err(|error| error.source) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

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
