//! Wake-up of the owner of a front queue.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use plumb_block::{Error, Result};
use rustix::event::{EventfdFlags, epoll, eventfd};

/// Descriptor that is readable when a front queue has completions and, while its owner is the watcher, when a
/// member may have completed something.
pub(super) struct Wake {
    both: OwnedFd,
    ready: OwnedFd,
    answered: Arc<OwnedFd>,
}

impl Wake {
    /// Creates the wake for a front queue whose owner may also wait for `answered`.
    ///
    /// # Errors
    /// If the kernel cannot create a descriptor.
    pub(super) fn new(answered: Arc<OwnedFd>) -> Result<Self> {
        let (both, ready) = (set_of_descriptors()?, signal()?);
        add(&both, ready.as_fd())?;
        Ok(Self { both, ready, answered })
    }

    /// Signals completions.
    pub(super) fn fire(&self) {
        fire(&self.ready);
    }

    /// Returns true if it was fired since the last call.
    pub(super) fn take_fired(&self) -> bool {
        rustix::io::read(&self.ready, &mut [0_u8; 8]).is_ok()
    }

    /// Sets whether the members also wake the owner. Returns false if the kernel refuses, for lack of memory.
    pub(super) fn watch(&self, on: bool) -> bool {
        if on {
            add(&self.both, self.answered.as_fd()).is_ok()
        } else {
            epoll::delete(&self.both, &*self.answered).is_ok()
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.both.as_fd()
    }
}

/// Creates an eventfd that is not readable yet.
pub(super) fn signal() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| refused("make an eventfd for", errno))
}

/// Makes an eventfd readable.
pub(super) fn fire(signal: &OwnedFd) {
    // The write fails only if the counter is full; then the eventfd is readable already.
    rustix::io::write(signal, &1_u64.to_ne_bytes()).ok();
}

/// Creates a descriptor that is readable when one of those [added](add) to it is.
pub(super) fn set_of_descriptors() -> Result<OwnedFd> {
    epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| refused("make an epoll set for", errno))
}

/// Adds `one` to the set.
pub(super) fn add(set: &OwnedFd, one: BorrowedFd<'_>) -> Result<()> {
    epoll::add(set, one, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
        .map_err(|errno| refused("wait for a device of", errno))
}

fn refused(operation: &'static str, errno: rustix::io::Errno) -> Error {
    Error::io(&errno.into(), operation, "a cache")
}
