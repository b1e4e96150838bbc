//! The connections that are being served, so that they can be counted, waited for and closed.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};

/// All connections.
#[derive(Default)]
pub(super) struct Crowd {
    sockets: Mutex<Sockets>,
    someone_left: Condvar,
}

#[derive(Default)]
struct Sockets {
    next: u64,
    open: HashMap<u64, Arc<OwnedFd>>,
}

impl Crowd {
    /// Counts a connection in, until the guard is dropped.
    pub(super) fn join(self: &Arc<Self>, socket: &Arc<OwnedFd>) -> Member {
        let mut sockets = self.sockets();
        sockets.next += 1;
        let id = sockets.next;
        sockets.open.insert(id, Arc::clone(socket));
        Member { crowd: Arc::clone(self), id }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sockets().open.len()
    }

    /// Ends one direction of all connections, or both.
    pub(super) fn shut_down(&self, how: Shutdown) {
        for socket in self.sockets().open.values() {
            // One that the client has closed already needs nothing.
            shutdown(socket, how).unwrap_or_default();
        }
    }

    /// Waits until all have left, at most so long; whether they have.
    pub(super) fn wait_empty(&self, timeout: Duration) -> bool {
        let sockets = self.sockets();
        let outcome =
            self.someone_left.wait_timeout_while(sockets, timeout, |sockets| !sockets.open.is_empty());
        outcome.is_ok_and(|(sockets, _)| sockets.open.is_empty())
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        // The map is whole after every statement that changes it.
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted.
pub(super) struct Member {
    crowd: Arc<Crowd>,
    id: u64,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.crowd.sockets().open.remove(&self.id);
        self.crowd.someone_left.notify_all();
    }
}
