//! The kernel's side of a worker: two files of one connection, through which requests come and answers go.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use plumb_block::{BufferMut, Errno};
use rustix::io::Errno as Os;

use super::jobs::Transport;
use super::wire::{self, HEAD_BYTES};

/// The two files of a worker to one connection.
pub(super) struct Files {
    /// File whose reads wait.
    pub(super) waiting: OwnedFd,
    /// File whose reads do not wait.
    pub(super) returning: OwnedFd,
}

/// File that a request was read from, and is to be answered through.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Waiting,
    Returning,
}

/// A request of the kernel: its number, and where it came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestId {
    pub(super) unique: u64,
    pub(super) side: Side,
}

impl Files {
    fn side(&self, side: Side) -> BorrowedFd<'_> {
        match side {
            Side::Waiting => self.waiting.as_fd(),
            Side::Returning => self.returning.as_fd(),
        }
    }

    /// Reads one request, and how many bytes it has.
    pub(super) fn receive(
        &self,
        side: Side,
        head: &mut [u8; HEAD_BYTES],
        payload: &mut BufferMut,
    ) -> Result<usize, Os> {
        let mut into = [IoSliceMut::new(&mut head[..]), IoSliceMut::new(payload)];
        rustix::io::readv(self.side(side), &mut into)
    }
}

impl Transport for Files {
    type Id = RequestId;

    fn answer(&mut self, id: RequestId, answer: Result<&[u8], Errno>) -> Result<(), Os> {
        let (header, body) = wire::reply(id.unique, answer);
        match rustix::io::writev(self.side(id.side), &[IoSlice::new(&header), IoSlice::new(body)]) {
            // The kernel no longer waits for it: interrupted, or the connection was cut.
            Ok(_) | Err(Os::NOENT) => Ok(()),
            Err(other) => Err(other),
        }
    }
}
