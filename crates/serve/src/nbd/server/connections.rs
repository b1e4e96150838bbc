//! Set of the connections being served, to count, name, await and close them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumb_linux::tree::{LiveTree, process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, getpeername, shutdown, sockopt};

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
    /// Counts a connection until the guard is dropped.
    pub(super) fn add(self: &Arc<Self>, socket: &Arc<OwnedFd>) -> CountedConnection {
        let mut sockets = self.sockets();
        sockets.next += 1;
        let id = sockets.next;
        sockets.open.insert(id, Arc::clone(socket));
        CountedConnection { all: Arc::clone(self), id }
    }

    /// Returns the number of connections.
    pub(super) fn len(&self) -> usize {
        self.sockets().open.len()
    }

    /// Returns the number of connections whose client may still send requests.
    pub(super) fn with_client(&self) -> usize {
        self.sockets().open.values().filter(|socket| !has_left(socket)).count()
    }

    /// Returns descriptions of the clients that may still send requests: `process 12 (qemu-io)`,
    /// `10.0.0.7:51234`, without duplicates. Clients that cannot be identified are left out.
    pub(super) fn clients(&self) -> Vec<String> {
        let sockets = self.sockets();
        let present = sockets.open.values().filter(|socket| !has_left(socket));
        let mut found: Vec<String> = present.filter_map(|socket| client(socket)).collect();
        found.sort();
        found.dedup();
        found
    }

    /// Shuts down one or both directions of all connections.
    pub(super) fn shut_down(&self, how: Shutdown) {
        for socket in self.sockets().open.values() {
            // A connection already closed by the client needs nothing.
            shutdown(socket, how).unwrap_or_default();
        }
    }

    /// Waits at most `timeout` until all have ended. Returns true if they have.
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

fn client(socket: &OwnedFd) -> Option<String> {
    let peer = getpeername(socket).ok()?;
    if let Some(address) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
        return Some(address.to_string());
    }
    let pid = sockopt::socket_peercred(socket).ok()?.pid.as_raw_pid();
    let name = process::name(&LiveTree, pid);
    Some(if name.is_empty() { format!("process {pid}") } else { format!("process {pid} ({name})") })
}

/// Returns true if the client of `socket` has left, or will send nothing more: a client that died may leave a
/// connection that waits for an unresponsive device.
fn has_left(socket: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}

pub(super) struct CountedConnection {
    all: Arc<Connections>,
    id: u64,
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.all.sockets().open.remove(&self.id);
        self.all.one_ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_process_with_several_connections_is_named_once_and_not_when_it_has_left() {
        let all = Arc::new(Connections::default());
        let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
        let connect = |pair| {
            let (client, server): (UnixStream, UnixStream) = pair;
            (client, all.add(&Arc::new(server.into())))
        };
        let (clients, connected): (Vec<_>, Vec<_>) = pairs.into_iter().map(connect).unzip();
        let named = all.clients();
        assert!(
            named.len() == 1 && named[0].starts_with(&format!("process {} (", std::process::id())),
            "{named:?}"
        );
        drop(clients);
        assert_eq!((all.clients(), all.with_client(), all.len()), (Vec::new(), 0, connected.len()));
    }
}
