//! Any [`Device`](plumb_block::Device) as a block device of this machine, without a kernel module: a file
//! that this process serves through FUSE, under a loop device.
//!
//! ```text
//!   file system, database, fio
//!   /dev/loopN                direct I/O; vanishes with its last opener
//!   .../NAME/mount/disk       one file, past the page cache, reads and writes side by side; `control` beside it, if wanted
//!   /dev/fuse                 several files of one connection, two for each thread; or rings, one for each thread
//!   worker threads            one Queue each
//!   Device
//! ```
//! [`Attachment::new`] attaches, [`Attachment::detach`] flushes and takes everything away, or refuses and
//! says who still uses the device. [`sweep()`] removes what a killed server left; every new attachment does
//! so first.
//!
//! `worker` serves through the files, `ring_worker` through rings (FUSE over io_uring), where the kernel
//! offers them: its setting `enable_uring` is the user's. An agreement of a connection cannot be taken
//! back, so where a ring is refused the file system is mounted again without.
//!
//! # What the device sees
//! As many requests in flight as the block layer sends, a flush beside writes. Any other mode of FUSE sends
//! one write after the other and so hides reorderings; a kernel that cannot do better (before Linux 6.2) is
//! refused. No write-back cache, for it merges writes. An fsync of a file system above is always a
//! [`Flush`](plumb_block::Op::Flush); FUA never comes: the block layer sends a write with a flush behind it.
//! `plan` says what becomes a discard.
//!
//! # Failures
//! A request that failed, was not answered within 30 s (the time that the kernel gives SCSI and NVMe disks;
//! [`AttachOptions::request_timeout`]), or met a device without power is EIO above. A flush that failed
//! latches: every later one fails without asking the device, for as long as it is attached. When the process
//! is killed, the kernel cuts the connection and everything in flight and after is EIO: that is not a power
//! cut, for the device's own state dies with the process.
//!
//! # Deadlocks
//! - The process must never do I/O to a file system on its own loop device, nor may the device's own threads.
//! - Memory that a worker needs must not wait for writes to the device it serves: workers are `IO_FLUSHER`s
//!   (prctl(2)), so an allocation of theirs never starts such writes. A device that has threads of its own
//!   does the same for them. Locking the process's memory is not needed for that, and would pin the media of
//!   simulated drives; it is needed if the machine swaps to the attached device or runs this program from it:
//!   do neither.
//! - No mount namespace of its own is needed: nothing here walks into the mount after the file is open, and
//!   the directory is its owner's alone. A copy of the mount in the namespace of a container keeps the file
//!   system alive but not the connection, which is cut on detaching.
//! - `session` says why descriptors are in a certain order, and who may wait for the file system at all.
//!
//! # Limitations
//! A device whose queues have no descriptor to wait for, or wait for its answers when they are dropped, keeps
//! [`detach`](Attachment::detach), and dropping, waiting if it never answers. The size and the block size are
//! those at the time of attaching. While a flush is in progress the loop driver holds back the requests that
//! come behind it, so no write that was sent after a flush overtakes it here. The loop device always reports
//! a write-back cache, and its physical block is the logical one.

mod attachment;
mod directory;
mod files;
mod jobs;
mod loop_queue;
mod options;
mod plan;
mod ring_worker;
mod served;
mod session;
mod sweep;
mod wire;
mod worker;

pub use crate::records::Swept;
pub use attachment::Attachment;
pub use options::{AttachOptions, ControlFile};
pub use sweep::{sweep, sweep_of, try_unserved, unserved};
