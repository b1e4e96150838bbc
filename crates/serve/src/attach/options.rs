//! Options of attaching a device: threads, queue depth, directory, time limit, control file.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plumb_block::{Errno, Nanos};
use plumb_linux::fuse_ring;

use crate::served_device::REQUEST_TIMEOUT;

/// Number of entries in all, whose payloads are of 1 MiB each: a server may have to lock its memory.
const ENTRIES_MAX: u16 = 128;
/// Number of entries that each of the kernel's queues should have. A sender's requests go through the queue
/// of its processor alone.
const ENTRIES_OF_A_QUEUE: RangeInclusive<u16> = 16..=32;

/// Options of an attachment.
#[derive(Debug, Clone, Default)]
pub struct AttachOptions {
    /// Number of threads, each with a queue of the device; 0 for one per two processors, 1 to 4, since the
    /// kernel and the sender of the requests need as many again. A queue that carries out one request after
    /// the other needs as many threads as requests shall be in flight.
    pub queues: u32,
    /// Number of requests that each thread may have in flight; 0 for 64. Each takes address space for the
    /// largest transfer, and memory as far as it is used.
    pub depth: u32,
    /// Directory of the attachments, for this user alone (0700); `None` for /run/plumb/attach, or a directory
    /// for temporary files if that cannot be made.
    pub directory: Option<PathBuf>,
    /// Time limit of a request, after which its sender gets EIO; zero for 30 s.
    pub request_timeout: Duration,
    /// True if the kernel shall read only what is requested, page by page, so that the blocks that were read
    /// are known.
    pub no_read_ahead: bool,
    /// Receiver of writes to a [control file](super::Attachment::control_file); `None` for no such file.
    /// Other users may write to it wherever they can reach it, such as through a bind mount.
    pub control: Option<ControlFile>,
}

/// Receiver of the bytes of each write(2) to the control file; a write of more than 4 KiB may come in pieces.
/// The write returns after the function has, with its result: so the writes have their place in one order
/// with the requests of the device. The threads that serve the device call it, and wait for it.
#[derive(Clone)]
pub struct ControlFile(pub Arc<TakeWrite>);

/// Function that takes the bytes of a write, and returns its error if any.
type TakeWrite = dyn Fn(&[u8]) -> std::result::Result<(), Errno> + Send + Sync;

impl std::fmt::Debug for ControlFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ControlFile")
    }
}

impl AttachOptions {
    /// Returns the time limit of a request.
    pub(super) fn request_timeout(&self) -> Nanos {
        if self.request_timeout.is_zero() { REQUEST_TIMEOUT } else { self.request_timeout.into() }
    }

    /// Returns the number of threads, and of requests for each.
    pub(super) fn threads(&self) -> Threads {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Threads {
            queues: if self.queues == 0 { (processors / 2).clamp(1, 4) as u32 } else { self.queues },
            depth: if self.depth == 0 { 64 } else { self.depth },
        }
    }
}

/// Returns the number of entries of each of the kernel's queues; `None` where these are too many.
pub(super) fn entries_of_a_queue() -> Option<u16> {
    let each = ENTRIES_MAX / fuse_ring::queues()?;
    (each >= *ENTRIES_OF_A_QUEUE.start()).then_some(each.min(*ENTRIES_OF_A_QUEUE.end()))
}

/// Number of threads, and of requests in flight for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threads {
    pub(super) queues: u32,
    pub(super) depth: u32,
}
