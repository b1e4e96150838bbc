//! Kernel side of a worker: two files of one connection, which carry requests and answers.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use plumb_block::{BufferMut, Errno};
use rustix::io::Errno as Os;

use super::jobs::Transport;
use super::wire::{self, HEAD_BYTES};

/// The two files of a worker to one connection.
pub(super) struct Files {
    /// File with blocking reads.
    pub(super) waiting: OwnedFd,
    /// File with non-blocking reads.
    pub(super) returning: OwnedFd,
}

/// File from which a request was read, and through which it must be answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Waiting,
    Returning,
}

/// A request of the kernel: its number and its file.
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

    /// Reads one request. Returns its length in bytes.
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
            // The kernel no longer waits for the answer: the request was interrupted, or the connection
            // aborted.
            Ok(_) | Err(Os::NOENT) => Ok(()),
            Err(other) => Err(other),
        }
    }
}
