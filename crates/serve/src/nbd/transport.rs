//! Transport of a connection, for both sides: the required methods ([`Transport`]), and a socket, which
//! becomes encrypted when negotiated.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use plumb_block::{Clock, PollFlags, Poller, Queue, wait_any};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, recvmsg, send, sendmsg,
    shutdown,
};

use super::turn::Wants;

/// A bidirectional stream of bytes that never blocks. Operations that are not possible now fail with
/// [`WouldBlock`](io::ErrorKind::WouldBlock); any other error means that the stream is broken.
pub trait Transport: Send {
    /// Reads available data into `into`, in order. 0 means the end.
    ///
    /// # Errors
    /// Fails as described at the trait.
    fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize>;

    /// Sends bytes from the front of `from`. Returns their number.
    ///
    /// # Errors
    /// Fails as described at the trait.
    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Ends the stream in both directions.
    fn cut(&mut self);

    /// Sends buffered data. Returns true if nothing is left.
    ///
    /// # Errors
    /// If the stream is broken.
    fn hand_over(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// Returns true if there may be more data after `received` bytes arrived in space for `room`.
    fn may_have_more(&self, received: usize, room: usize) -> bool {
        received == room
    }

    /// Starts encryption. Nothing may be sent or received before the stream [is
    /// encrypted](Self::is_encrypted).
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the stream does not support it.
    fn encrypt(&mut self, _tls: rustls::Connection) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Continues the TLS handshake. Returns true once it is over.
    ///
    /// # Errors
    /// If the stream is broken, or the other side is not trusted.
    fn is_encrypted(&mut self) -> io::Result<bool> {
        Ok(false)
    }
}

/// A connected socket, shared with whoever may shut it down.
pub(super) struct Socket {
    fd: Arc<OwnedFd>,
    tls: Option<Box<rustls::Connection>>,
    /// True if the next receive blocks until the first byte.
    is_patient: bool,
}

impl Socket {
    /// Creates a plain transport.
    pub(super) fn new(fd: Arc<OwnedFd>) -> Self {
        Self { fd, tls: None, is_patient: false }
    }

    /// Makes the next [`receive`](Transport::receive) block until its first byte: one system call instead of
    /// two.
    pub(super) const fn wait_in_next_receive(&mut self) {
        self.is_patient = true;
    }

    /// Waits for the events in `wants` by `clock`; `queue` is that of the device.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub(super) fn wait(
        &self,
        wants: Wants,
        queue: Option<&dyn Queue>,
        clock: &dyn Clock,
    ) -> plumb_block::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wants.read);
        flags.set(PollFlags::OUT, wants.write);
        let mut poller = Poller::new(clock);
        if !flags.is_empty() {
            poller = poller.watching(self.fd.as_fd(), flags);
        }
        wait_any(queue, wants.until, &mut poller).map(drop)
    }

    /// Receives and decrypts data; 0 means the end.
    fn receive_records(&mut self) -> io::Result<usize> {
        let is_patient = std::mem::take(&mut self.is_patient);
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let count = tls.read_tls(&mut Raw { socket: &self.fd, is_patient })?;
        if let Err(error) = tls.process_new_packets() {
            // Try to send the alert with the reason; a failure changes nothing.
            self.hand_over().unwrap_or_default();
            return Err(io::Error::other(error));
        }
        Ok(count)
    }
}

impl Transport for Socket {
    fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else {
                return receive(&self.fd, into, std::mem::take(&mut self.is_patient));
            };
            match tls.reader().read_vectored(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A truncated stream means that the client left, with or without an alert: all messages have
                // explicit lengths.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if self.receive_records()? == 0 {
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

    fn cut(&mut self) {
        // A connection that is already gone needs nothing.
        shutdown(&*self.fd, Shutdown::Both).unwrap_or_default();
    }

    fn hand_over(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Raw { socket: &self.fd, is_patient: false }) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn may_have_more(&self, received: usize, room: usize) -> bool {
        self.tls.is_some() || received == room
    }

    fn encrypt(&mut self, tls: rustls::Connection) -> io::Result<()> {
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    fn is_encrypted(&mut self) -> io::Result<bool> {
        while self.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            self.hand_over()?;
            match self.receive_records() {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(self.tls.is_some())
    }
}

fn receive(socket: &OwnedFd, into: &mut [IoSliceMut<'_>], is_patient: bool) -> io::Result<usize> {
    let flags = if is_patient { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
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

/// Adapter for rustls.
struct Raw<'a> {
    socket: &'a OwnedFd,
    is_patient: bool,
}

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.socket, &mut [IoSliceMut::new(into)], self.is_patient)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        send_plain(self.socket, &[IoSlice::new(from)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
