//! Waiting for a connection or for mail, whichever is first.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use plumb_block::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::wake::Wake;

/// What is waited for.
pub(super) struct Awaited<'a> {
    /// The connection, and whether to wait for room to write, too.
    pub(super) socket: Option<(&'a Arc<OwnedFd>, bool)>,
    /// Mail from whoever else polls the connection.
    pub(super) wake: &'a Wake,
}

/// Waits, at most for `timeout`. Whether the connection has something.
pub(super) fn wait_for_any(awaited: &Awaited<'_>, timeout: Option<Nanos>) -> io::Result<bool> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (timeout.0 % 1_000_000_000) as i64,
    });
    let wake = PollFd::from_borrowed_fd(awaited.wake.as_fd(), PollFlags::IN);
    let (is_ready, is_woken) = match awaited.socket {
        Some((socket, to_write)) => {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, to_write);
            let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), flags), wake];
            polled(&mut fds, timeout.as_ref())?;
            (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
        }
        None => {
            let mut fds = [wake];
            polled(&mut fds, timeout.as_ref())?;
            (false, !fds[0].revents().is_empty())
        }
    };
    if is_woken {
        awaited.wake.clear();
    }
    Ok(is_ready)
}

fn polled(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> io::Result<()> {
    match poll(fds, timeout) {
        // A signal is as good as any other reason to look again.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
