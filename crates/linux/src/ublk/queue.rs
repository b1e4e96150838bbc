//! A queue of a ublk device: its tags go back and forth between the kernel and the one thread that has
//! fetched them.
//!
//! Memory is lent to the kernel with each command, as long as the largest request: into it the kernel copies
//! what is to be written, and out of it, while it takes the next command, what was read.

#![expect(unsafe_code, reason = "the kernel gets the addresses of buffers")]

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;

use io_uring::types::Fd;
use io_uring::{opcode, squeue};
use plumb_block::BufferMut;

use super::command;
use super::control::CharDevice;
use super::descriptors::{DESCRIPTOR_BYTES, Descriptors};
use crate::command_ring::{CommandRing, Patience};

/// Result of waiting.
#[derive(Debug)]
pub enum Event {
    /// The kernel asks for something.
    Request {
        /// Tag that is to be committed afterwards.
        tag: u16,
        /// `struct ublksrv_io_desc`, as the kernel wrote it.
        descriptor: [u8; DESCRIPTOR_BYTES],
        /// Memory that was lent; it holds the data of a write.
        memory: BufferMut,
    },
    /// The kernel has done with a tag: ENODEV when the device is stopped, else it refused a command.
    Ended {
        /// Tag that has ended; not to be used again.
        tag: u16,
        /// The error.
        errno: i32,
        /// Memory that was lent.
        memory: BufferMut,
    },
}

/// A queue, for the thread that makes it.
pub struct UblkQueue {
    ring: CommandRing<squeue::Entry>,
    device: Arc<CharDevice>,
    descriptors: Descriptors,
    queue: u16,
    /// Buffers that the kernel holds, by tag.
    lent: Vec<Option<BufferMut>>,
}

impl UblkQueue {
    /// Queue `queue` of `device`, and a descriptor that can be [watched](Self::watch) beside it.
    ///
    /// # Errors
    /// As mmap(2) and io_uring_setup(2).
    pub fn open(device: Arc<CharDevice>, queue: u16, watched: Option<OwnedFd>) -> io::Result<Self> {
        let descriptors = Descriptors::map(&device, queue)?;
        let ring = CommandRing::new(device.depth().into(), watched)?;
        let lent = std::iter::repeat_with(|| None).take(device.depth().into()).collect();
        Ok(Self { ring, device, descriptors, queue, lent })
    }

    /// Offers `tag` for a request, for the first time. It takes effect when events are next waited for.
    ///
    /// # Errors
    /// EINVAL for a tag that there is not or that the kernel has, and for memory without room for the largest
    /// request.
    pub fn fetch(&mut self, tag: u16, memory: BufferMut) -> io::Result<()> {
        self.push(self.device.numbering.fetch(), tag, 0, memory)
    }

    /// Answers the request of `tag` with `result`, bytes or -errno, and offers the tag for the next one. What
    /// was read is at the start of `memory`.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub fn commit(&mut self, tag: u16, result: i32, memory: BufferMut) -> io::Result<()> {
        self.push(self.device.numbering.commit_and_fetch(), tag, result, memory)
    }

    fn push(&mut self, op: u32, tag: u16, result: i32, mut memory: BufferMut) -> io::Result<()> {
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let has_room = memory.len() as u64 >= self.device.request_max().0;
        let is_answer =
            usize::try_from(result).is_ok_and(|bytes| bytes as u64 <= self.device.request_max().0);
        let lent = self.lent.get_mut(usize::from(tag)).ok_or_else(invalid)?;
        if lent.is_some() || !has_room || (result > 0 && !is_answer) {
            return Err(invalid());
        }
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let bytes = command::io(self.queue, tag, result, address);
        let entry = opcode::UringCmd16::new(Fd(self.device.as_fd().as_raw_fd()), op)
            .cmd(bytes)
            .build()
            .user_data(tag.into());
        *lent = Some(memory);
        // SAFETY: the command names `memory`, which has room for the largest request of the device; it is in
        // `lent` until the command has come back, and never given up before that.
        unsafe { self.ring.push(&entry) }
    }

    /// Watches the descriptor until it is readable; nothing if there is none, or it is being watched.
    ///
    /// # Errors
    /// As io_uring_enter(2).
    pub fn watch(&mut self) -> io::Result<()> {
        self.ring.watch()
    }

    /// Hands over what was offered, answered and watched, waits for an event or the watched descriptor, and
    /// appends all events that there are.
    ///
    /// # Errors
    /// As io_uring_enter(2).
    pub fn wait(&mut self, patience: Patience, events: &mut Vec<Event>) -> io::Result<()> {
        let Self { ring, descriptors, lent, .. } = self;
        ring.wait(patience, |tag, result| {
            let Ok(tag) = u16::try_from(tag) else { return };
            let Some(memory) = lent.get_mut(usize::from(tag)).and_then(Option::take) else { return };
            events.push(match result {
                0 => Event::Request { tag, descriptor: descriptors.get(tag), memory },
                // A positive one is `UBLK_IO_RES_NEED_GET_DATA`, which was not asked for.
                other => Event::Ended { tag, errno: if other < 0 { -other } else { libc::EPROTO }, memory },
            });
        })
    }
}

impl Drop for UblkQueue {
    fn drop(&mut self) {
        // The ring is torn down some time after it is closed; until then the kernel may copy a request into
        // what it has.
        for memory in self.lent.drain(..).flatten() {
            std::mem::forget(memory);
        }
    }
}
