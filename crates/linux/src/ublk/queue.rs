//! A queue of a ublk device. Its tags move between the kernel and the one thread that has fetched them.
//!
//! Each command lends the kernel memory for the largest request. The kernel copies the data of a write into
//! it; data of a read is copied out of it while the kernel takes the next command.

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

/// Event of a queue.
#[derive(Debug)]
pub enum Event {
    /// A request of the kernel.
    Request {
        /// Tag to commit afterwards.
        tag: u16,
        /// `struct ublksrv_io_desc`, as the kernel wrote it.
        descriptor: [u8; DESCRIPTOR_BYTES],
        /// Lent memory; it holds the data of a write.
        memory: BufferMut,
    },
    /// The kernel has given up a tag: ENODEV when the device is stopped, otherwise it refused a command.
    Ended {
        /// Tag that has ended and must not be used again.
        tag: u16,
        /// Error number.
        errno: i32,
        /// Lent memory.
        memory: BufferMut,
    },
}

/// A queue, used only by the thread that creates it.
pub struct UblkQueue {
    ring: CommandRing<squeue::Entry>,
    device: Arc<CharDevice>,
    descriptors: Descriptors,
    queue: u16,
    /// Buffers that the kernel holds, by tag.
    lent: Vec<Option<BufferMut>>,
}

impl UblkQueue {
    /// Opens queue `queue` of `device`, with an additional descriptor to [watch](Self::watch).
    ///
    /// # Errors
    /// Fails as mmap(2) and io_uring_setup(2) do.
    pub fn open(device: Arc<CharDevice>, queue: u16, watched: Option<OwnedFd>) -> io::Result<Self> {
        let descriptors = Descriptors::map(&device, queue)?;
        let ring = CommandRing::new(device.depth().into(), watched)?;
        let lent = std::iter::repeat_with(|| None).take(device.depth().into()).collect();
        Ok(Self { ring, device, descriptors, queue, lent })
    }

    /// Offers `tag` for a request, for the first time. Takes effect at the next wait for events.
    ///
    /// # Errors
    /// EINVAL for a tag that does not exist or that the kernel owns, and for memory too small for the largest
    /// request.
    pub fn fetch(&mut self, tag: u16, memory: BufferMut) -> io::Result<()> {
        self.push(self.device.numbering.fetch(), tag, 0, memory)
    }

    /// Completes the request of `tag` with `result`, a number of bytes or -errno, and offers the tag for the
    /// next one. Data of a read must be at the start of `memory`.
    ///
    /// # Errors
    /// Fails as [`fetch`](Self::fetch) does.
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
        // SAFETY: the command refers to `memory`, which is large enough for any request of the device. It is
        // in `lent` until the command has completed, and never freed before that.
        unsafe { self.ring.push(&entry) }
    }

    /// Starts to watch the descriptor for readability. Has no effect without a descriptor, or while it is
    /// being watched.
    ///
    /// # Errors
    /// Fails as io_uring_enter(2) does.
    pub fn watch(&mut self) -> io::Result<()> {
        self.ring.watch()
    }

    /// Submits offers, completions and the watch, waits for an event or the watched descriptor, and appends
    /// all available events.
    ///
    /// # Errors
    /// Fails as io_uring_enter(2) does.
    pub fn wait(&mut self, patience: Patience, events: &mut Vec<Event>) -> io::Result<()> {
        let Self { ring, descriptors, lent, .. } = self;
        ring.wait(patience, |tag, result| {
            let Ok(tag) = u16::try_from(tag) else { return };
            let Some(memory) = lent.get_mut(usize::from(tag)).and_then(Option::take) else { return };
            events.push(match result {
                0 => Event::Request { tag, descriptor: descriptors.get(tag), memory },
                // A positive result is `UBLK_IO_RES_NEED_GET_DATA`, a feature that is not used.
                other => Event::Ended { tag, errno: if other < 0 { -other } else { libc::EPROTO }, memory },
            });
        })
    }
}

impl Drop for UblkQueue {
    fn drop(&mut self) {
        // The kernel tears a ring down some time after it is closed, and may copy a request into lent memory
        // until then.
        for memory in self.lent.drain(..).flatten() {
            std::mem::forget(memory);
        }
    }
}
