//! How one thread tells another that there is mail: an eventfd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Readable from when it is woken until it is cleared.
pub(super) struct Wake(OwnedFd);

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(super) fn up(&self) {
        // It fails only if the counter is full, and then it is readable already.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).ok();
    }

    pub(super) fn clear(&self) {
        // It fails only if it was clear.
        rustix::io::read(&self.0, &mut [0_u8; 8]).ok();
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
