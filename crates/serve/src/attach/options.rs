//! Options of attaching a device: threads, queue depth, directory, time limit, control file.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plumb_block::{Errno, Nanos};
use plumb_linux::fuse_ring;

use crate::served_device::REQUEST_TIMEOUT;

/// Maximum total number of ring entries, each with a payload of 1 MiB, since a server may have to lock its
/// memory.
const ENTRIES_MAX: u16 = 128;
/// Desired number of entries of each kernel queue. A sender uses only the queue of its processor.
const ENTRIES_OF_A_QUEUE: RangeInclusive<u16> = 16..=32;

/// Options of an attachment.
#[derive(Debug, Clone, Default)]
pub struct AttachOptions {
    /// Number of threads, each with a device queue; 0 for one per two processors, 1 to 4, since the kernel
    /// and the senders need as many again. A queue that executes requests serially needs as many threads as
    /// requests in flight.
    pub queues: u32,
    /// Maximum number of requests in flight for each thread; 0 for 64. Each reserves address space for the
    /// largest transfer, and memory as it is used.
    pub depth: u32,
    /// Private directory (0700) for attachments; `None` for /run/plumb/attach, or a temporary directory if
    /// that cannot be created.
    pub directory: Option<PathBuf>,
    /// Time limit of a request, after which its sender gets EIO; zero for 30 s.
    pub request_timeout: Duration,
    /// True if the kernel must read only requested pages, so that the blocks read by a program are known.
    pub no_read_ahead: bool,
    /// Receiver of writes to a [control file](super::Attachment::control_file); `None` for no such file.
    /// Other users may write to it if they can reach it, for example through a bind mount.
    pub control: Option<ControlFile>,
}

/// Receiver of the data of each write(2) to the control file; a write of more than 4 KiB may arrive in
/// pieces. The write returns after the function, with its result, so writes are ordered with respect to the
/// device's requests. The serving threads call the function and wait for it.
#[derive(Clone)]
pub struct ControlFile(pub Arc<TakeWrite>);

/// Function that receives the data of a write. Its error becomes that of the write.
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

    /// Returns the number of threads, and of requests in flight for each.
    pub(super) fn threads(&self) -> Threads {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Threads {
            queues: if self.queues == 0 { (processors / 2).clamp(1, 4) as u32 } else { self.queues },
            depth: if self.depth == 0 { 64 } else { self.depth },
        }
    }
}

/// Returns the number of entries for each kernel queue; `None` if the total would be too large.
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
