//! Transport of the bytes of a connection, for both sides: a socket, plain first, encrypted once that was
//! agreed on.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, send, sendmsg,
};

/// Time to wait for the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Fail with [`io::ErrorKind::WouldBlock`].
    None,
    /// Wait as long as it takes.
    Endless,
}

/// Events that a connection waits for.
#[derive(Clone, Copy, Default)]
pub(super) struct Wants<'a> {
    /// Bytes to read, or the end.
    pub(super) read: bool,
    /// Room to write.
    pub(super) write: bool,
    /// This descriptor to become readable.
    pub(super) wake: Option<BorrowedFd<'a>>,
    /// No longer than until then.
    pub(super) until: Option<Instant>,
}

/// A stream of bytes in both directions.
pub(super) trait Transport {
    /// Reads into `into`, in order. 0 is the end.
    fn receive(&mut self, into: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize>;

    /// Takes bytes off the front of `from`; never waits.
    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Hands over what was taken and kept; whether nothing is kept any more.
    fn hand_over(&mut self) -> io::Result<bool>;

    /// Waits for any of `wants`; when the time is over, that is fine too.
    fn wait(&mut self, wants: Wants<'_>) -> io::Result<()>;

    /// Encrypts from here on; the TLS handshake is over by `until`.
    fn encrypt(&mut self, tls: rustls::Connection, until: Instant) -> io::Result<()>;

    /// Sends all of `bytes` by `until`, or fails with [`io::ErrorKind::TimedOut`].
    fn send_all(&mut self, mut bytes: &[u8], until: Instant) -> io::Result<()> {
        loop {
            let outcome = match bytes {
                [] => match self.hand_over() {
                    Ok(true) => return Ok(()),
                    Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
                    Err(error) => Err(error),
                },
                _ => self.send(&[IoSlice::new(bytes)]),
            };
            match outcome {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(error) => self.wait_if_blocked(error, Wants { write: true, ..Wants::by(until) })?,
            }
        }
    }

    /// Receives once by `until`, or fails with [`io::ErrorKind::TimedOut`]. 0 is the end.
    fn receive_by(&mut self, into: &mut [u8], until: Instant) -> io::Result<usize> {
        loop {
            match self.receive(&mut [IoSliceMut::new(into)], Patience::None) {
                Err(error) => self.wait_if_blocked(error, Wants { read: true, ..Wants::by(until) })?,
                received => return received,
            }
        }
    }

    /// Waits if `error` says so, and if there is time.
    fn wait_if_blocked(&mut self, error: io::Error, wants: Wants<'_>) -> io::Result<()> {
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(error);
        }
        if wants.until.is_some_and(|until| Instant::now() >= until) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.wait(wants)
    }
}

impl Wants<'_> {
    /// Nothing yet, by `until`.
    fn by(until: Instant) -> Self {
        Self { until: Some(until), ..Self::default() }
    }
}

/// A connected socket, shared with whoever may shut it down.
pub(super) struct Socket {
    fd: Arc<OwnedFd>,
    tls: Option<Box<rustls::Connection>>,
}

impl Socket {
    /// Plain.
    pub(super) fn new(fd: Arc<OwnedFd>) -> Self {
        Self { fd, tls: None }
    }

    pub(super) fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Returns true if there may be more to receive after so many bytes came into room for `room`.
    pub(super) fn may_have_more(&self, received: usize, room: usize) -> bool {
        self.tls.is_some() || received == room
    }

    /// Receives encrypted bytes and decrypts what is whole; 0 is the end.
    fn receive_records(&mut self, patience: Patience) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let count = tls.read_tls(&mut Raw(&self.fd, patience))?;
        if let Err(error) = tls.process_new_packets() {
            // The alert that says why is worth a try; that it cannot be sent changes nothing.
            self.hand_over().unwrap_or_default();
            return Err(io::Error::other(error));
        }
        Ok(count)
    }
}

impl Transport for Socket {
    fn receive(&mut self, into: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else { return receive(&self.fd, into, patience) };
            match tls.reader().read_vectored(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Whoever cuts the stream short leaves, with or without the alert that says so: all that is
                // sent has its length.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if self.receive_records(patience)? == 0 {
                return Ok(0);
            }
            self.hand_over()?;
        }
    }

    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.tls.is_none() {
            return send_plain(&self.fd, from);
        }
        if !self.hand_over()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.as_mut().map_or(Ok(0), |tls| tls.writer().write_vectored(from))?;
        self.hand_over()?;
        Ok(taken)
    }

    fn hand_over(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Raw(&self.fd, Patience::None)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn wait(&mut self, wants: Wants<'_>) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wants.read);
        flags.set(PollFlags::OUT, wants.write);
        let timeout = wants.until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        let socket = PollFd::from_borrowed_fd(self.fd.as_fd(), flags);
        let outcome = match wants.wake {
            Some(wake) => {
                poll(&mut [socket, PollFd::from_borrowed_fd(wake, PollFlags::IN)], timeout.as_ref())
            }
            None => poll(&mut [socket], timeout.as_ref()),
        };
        match outcome {
            // A signal is as good as any other reason to look again.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn encrypt(&mut self, tls: rustls::Connection, until: Instant) -> io::Result<()> {
        self.tls = Some(Box::new(tls));
        while self.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            let write = !self.hand_over()?;
            match self.receive_records(Patience::None) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => self.wait_if_blocked(error, Wants { read: true, write, ..Wants::by(until) })?,
            }
        }
        Ok(())
    }
}

fn receive(socket: &OwnedFd, into: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize> {
    let flags = match patience {
        Patience::None => RecvFlags::DONTWAIT,
        Patience::Endless => RecvFlags::empty(),
    };
    loop {
        let outcome = match &mut *into {
            [one] => recv(socket, &mut **one, flags).map(|(count, _)| count),
            many => {
                recvmsg(socket, many, &mut RecvAncillaryBuffer::default(), flags).map(|message| message.bytes)
            }
        };
        match outcome {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

fn send_plain(socket: &OwnedFd, from: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        let outcome = match from {
            [one] => send(socket, one, flags),
            many => sendmsg(socket, many, &mut SendAncillaryBuffer::default(), flags),
        };
        match outcome {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// The socket as rustls reads and writes it.
struct Raw<'a>(&'a OwnedFd, Patience);

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.0, &mut [IoSliceMut::new(into)], self.1)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        send_plain(self.0, &[IoSlice::new(from)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
