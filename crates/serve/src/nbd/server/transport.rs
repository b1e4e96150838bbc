//! What carries the bytes of a connection, and the plain socket among them.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, sendmsg};

/// Whether to wait for the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::nbd) enum Patience {
    /// Fail with [`io::ErrorKind::WouldBlock`].
    None,
    /// As long as it takes.
    Endless,
}

/// What a connection waits for.
#[derive(Clone, Copy, Default)]
pub(in crate::nbd) struct Wants<'a> {
    /// Bytes to read, or the end.
    pub(in crate::nbd) read: bool,
    /// Room to write.
    pub(in crate::nbd) write: bool,
    /// This descriptor to become readable.
    pub(in crate::nbd) wake: Option<BorrowedFd<'a>>,
    /// No longer than until then.
    pub(in crate::nbd) until: Option<Instant>,
}

/// A stream of bytes in both directions.
pub(in crate::nbd) trait Transport {
    /// Reads into `into`, in order. 0 is the end.
    fn receive(&mut self, into: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize>;

    /// Takes bytes off the front of `from`; never waits.
    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Hands over what was taken and kept; whether nothing is kept any more.
    fn hand_over(&mut self) -> io::Result<bool>;

    /// Waits for any of `wants`; when the time is over, that is fine too.
    fn wait(&mut self, wants: Wants<'_>) -> io::Result<()>;

    /// Encrypts from here on.
    fn encrypt(&mut self, config: &Arc<rustls::ServerConfig>, until: Instant) -> io::Result<()>;
}

/// A connected socket, shared with whoever may shut it down.
pub(in crate::nbd) struct Socket {
    pub(in crate::nbd) fd: Arc<OwnedFd>,
}

impl Transport for Socket {
    fn receive(&mut self, into: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize> {
        let flags = match patience {
            Patience::None => RecvFlags::DONTWAIT,
            Patience::Endless => RecvFlags::empty(),
        };
        loop {
            let outcome = if let [one] = &mut *into {
                recv(&self.fd, &mut **one, flags).map(|(count, _)| count)
            } else {
                recvmsg(&self.fd, into, &mut RecvAncillaryBuffer::default(), flags)
                    .map(|message| message.bytes)
            };
            match outcome {
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            match sendmsg(&self.fd, from, &mut SendAncillaryBuffer::default(), flags) {
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    fn hand_over(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    fn wait(&mut self, wants: Wants<'_>) -> io::Result<()> {
        wait_for(self.fd.as_fd(), wants)
    }

    fn encrypt(&mut self, _config: &Arc<rustls::ServerConfig>, _until: Instant) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Waits on a socket.
pub(in crate::nbd) fn wait_for(socket: BorrowedFd<'_>, wants: Wants<'_>) -> io::Result<()> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, wants.read);
    flags.set(PollFlags::OUT, wants.write);
    let timeout = wants.until.map(|until| {
        let left = until.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: i64::from(left.subsec_nanos()) }
    });
    let socket = PollFd::from_borrowed_fd(socket, flags);
    let outcome = match wants.wake {
        Some(wake) => poll(&mut [socket, PollFd::from_borrowed_fd(wake, PollFlags::IN)], timeout.as_ref()),
        None => poll(&mut [socket], timeout.as_ref()),
    };
    match outcome {
        // A signal is as good as any other reason to look again.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
