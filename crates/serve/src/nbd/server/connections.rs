//! The connections that are being served, so that they can be counted, waited for and closed.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};

/// All connections.
#[derive(Default)]
pub(super) struct Connections {
    sockets: Mutex<Sockets>,
    one_ended: Condvar,
}

#[derive(Default)]
struct Sockets {
    next: u64,
    open: HashMap<u64, Arc<OwnedFd>>,
}

impl Connections {
    /// Counts a connection, until the guard is dropped.
    pub(super) fn add(self: &Arc<Self>, socket: &Arc<OwnedFd>) -> Connected {
        let mut sockets = self.sockets();
        sockets.next += 1;
        let id = sockets.next;
        sockets.open.insert(id, Arc::clone(socket));
        Connected { all: Arc::clone(self), id }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sockets().open.len()
    }

    /// How many of them have a client at the other end that may still ask for something.
    pub(super) fn with_client(&self) -> usize {
        self.sockets().open.values().filter(|socket| !has_left(socket)).count()
    }

    /// Ends one direction of all connections, or both.
    pub(super) fn shut_down(&self, how: Shutdown) {
        for socket in self.sockets().open.values() {
            // One that the client has closed already needs nothing.
            shutdown(socket, how).unwrap_or_default();
        }
    }

    /// Waits until all have ended, at most so long; whether they have.
    pub(super) fn wait_empty(&self, timeout: Duration) -> bool {
        let sockets = self.sockets();
        let outcome = self.one_ended.wait_timeout_while(sockets, timeout, |sockets| !sockets.open.is_empty());
        outcome.is_ok_and(|(sockets, _)| sockets.open.is_empty())
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        // The map is whole after every statement that changes it.
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the client at the other end of `socket` is gone, or has at least said its last: a client that died may leave a
/// connection that waits for a device which never answers.
pub(crate) fn has_left(socket: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}

/// A connection that is counted.
pub(super) struct Connected {
    all: Arc<Connections>,
    id: u64,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.all.sockets().open.remove(&self.id);
        self.all.one_ended.notify_all();
    }
}
