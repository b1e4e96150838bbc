//! Mapping in which the kernel describes the requests of a queue, by tag.
//!
//! Invariants: no reference to the mapped memory ever exists; only whole words within the mapping are read.
//! The kernel writes a descriptor before it completes the tag's command, and not again before the next one.

#![expect(unsafe_code, reason = "memory that the kernel writes is mapped and read")]

use std::io;
use std::os::fd::AsFd as _;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags};

use super::control::CharDevice;

/// Size of `struct ublksrv_io_desc` in bytes.
pub const DESCRIPTOR_BYTES: usize = 24;
/// `UBLK_MAX_QUEUE_DEPTH`: queues are spaced as if each had this many tags.
const DEPTH_MAX: usize = 4096;

/// The descriptors of one queue.
#[derive(Debug)]
pub(super) struct Descriptors {
    start: NonNull<u8>,
    length: usize,
    depth: u16,
}

impl Descriptors {
    /// Maps the descriptors of queue `queue` of `device`.
    ///
    /// # Errors
    /// Fails as mmap(2) does; EINVAL for a queue that does not exist, or in a process other than the first
    /// one to map.
    pub(super) fn map(device: &CharDevice, queue: u16) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let depth = device.depth();
        let length = (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(page);
        let apart = (DEPTH_MAX * DESCRIPTOR_BYTES).next_multiple_of(page);
        let offset = (usize::from(queue) * apart) as u64;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses cannot overlap other memory.
        let mapped =
            unsafe { rustix::mm::mmap(null_mut(), length, ProtFlags::READ, flags, device.as_fd(), offset) }?;
        let start = NonNull::new(mapped.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { start, length, depth })
    }

    /// Returns a copy of the descriptor of `tag`, all zeroes for a tag that does not exist.
    pub(super) fn get(&self, tag: u16) -> [u8; DESCRIPTOR_BYTES] {
        let mut copy = [0; DESCRIPTOR_BYTES];
        if tag < self.depth {
            let at = usize::from(tag) * DESCRIPTOR_BYTES;
            for (index, word) in copy.chunks_exact_mut(8).enumerate() {
                // SAFETY: the word lies within the mapping, which is at least `depth` descriptors long and
                // lives as long as `self`. Its address is a multiple of 8, since the mapping starts at a
                // page.
                let value = unsafe { self.start.as_ptr().add(at + 8 * index).cast::<u64>().read_volatile() };
                word.copy_from_slice(&value.to_ne_bytes());
            }
        }
        copy
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the range is our own mapping, whose addresses are no longer used.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
        // munmap fails only for an invalid range, or when it splits a mapping, which this call does not do.
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
