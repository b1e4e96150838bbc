//! What carries the bytes of a connection: a socket, plain or encrypted. Nothing here waits but [`Transport::wait`].

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, send, sendmsg,
};
use rustls::ClientConnection;

/// A connected socket. The socket itself is shared with whoever may shut it down.
pub(super) struct Transport {
    socket: Arc<OwnedFd>,
    tls: Option<Box<ClientConnection>>,
}

impl Transport {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket: Arc::new(socket), tls: None }
    }

    pub(super) fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    /// Encrypts from here on; the TLS handshake happens until `until`.
    pub(super) fn encrypt(&mut self, mut tls: ClientConnection, until: Instant) -> io::Result<()> {
        let mut socket = Raw(&self.socket);
        while tls.is_handshaking() {
            match tls.complete_io(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(&self.socket, !tls.wants_write(), tls.wants_write(), until)?;
                }
                Err(error) => return Err(error),
            }
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Reads into `into`, in order. 0 is the end.
    pub(super) fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return receive(&self.socket, into) };
        loop {
            match tls.reader().read_vectored(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer closed without saying so: an end like any other here, for replies carry their lengths.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            tls.read_tls(&mut Raw(&self.socket))?;
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            if state.peer_has_closed() && state.plaintext_bytes_to_read() == 0 {
                return Ok(0);
            }
        }
    }

    /// Whether there may be more to receive after so many bytes came into room for `room`.
    pub(super) fn may_have_more(&self, received: usize, room: usize) -> bool {
        self.tls.is_some() || received == room
    }

    /// Takes bytes off the front of `from`.
    pub(super) fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.tls.is_none() {
            return send_plain(&self.socket, from);
        }
        if !self.hand_over()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.as_mut().map_or(Ok(0), |tls| tls.writer().write_vectored(from))?;
        self.hand_over()?;
        Ok(taken)
    }

    /// Sends what was taken and kept; whether nothing is kept any more.
    pub(super) fn hand_over(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Raw(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Waits until bytes can be read, or written if `to_write`; not longer than until `until`.
    pub(super) fn wait(&self, to_write: bool, until: Instant) -> io::Result<()> {
        wait_for(&self.socket, !to_write, to_write, until)
    }
}

fn wait_for(socket: &OwnedFd, read: bool, write: bool, until: Instant) -> io::Result<()> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, read);
    flags.set(PollFlags::OUT, write);
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let timeout =
        Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), flags)], Some(&timeout)) {
        // A signal is as good as any other reason to look again.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn receive(socket: &OwnedFd, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    loop {
        let outcome = match &mut *into {
            [one] => recv(socket, &mut **one, RecvFlags::DONTWAIT).map(|(count, _)| count),
            many => recvmsg(socket, many, &mut RecvAncillaryBuffer::default(), RecvFlags::DONTWAIT)
                .map(|message| message.bytes),
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
struct Raw<'a>(&'a OwnedFd);

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.0, &mut [IoSliceMut::new(into)])
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
