//! Attachment of any [`Device`](plumb_block::Device) as a block device of this machine, without a kernel
//! module: a loop device over a file that this process serves through FUSE.
//!
//! ```text
//!   file system, database, fio
//!   /dev/loopN                direct I/O; vanishes with its last opener
//!   .../NAME/mount/disk       one file, past the page cache, reads and writes side by side; `control` beside it, if wanted
//!   /dev/fuse                 several files of one connection, two for each thread; or rings, one for each thread
//!   worker threads            one Queue each
//!   Device
//! ```
//! [`Attachment::new`] attaches. [`Attachment::detach`] flushes and removes everything, or refuses and names
//! the remaining users. [`sweep()`] removes the remains of a killed server; every new attachment does so
//! first.
//!
//! `worker` serves through files, `ring_worker` through rings (FUSE over io_uring) if the kernel offers them;
//! the setting `enable_uring` is left to the user. The negotiated protocol of a connection is final, so if a
//! ring is refused, the file system is mounted again without rings.
//!
//! # What the device sees
//! The device gets as many requests at once as the block layer sends, and a flush may overlap writes. Other
//! FUSE modes serialize writes and so hide reordering; a kernel without this mode (before Linux 6.2) is
//! refused. There is no write-back cache, because it would merge writes. An fsync of a file system above
//! always becomes a [`Flush`](plumb_block::Op::Flush). FUA never arrives: the block layer sends a write
//! followed by a flush. `plan` determines what becomes a discard.
//!
//! # Failures
//! A request is reported as EIO if it failed, met a device without power, or had no answer within 30 s (the
//! kernel's timeout for SCSI and NVMe disks; [`AttachOptions::request_timeout`]). A failed flush latches: all
//! later ones fail without reaching the device, as long as it is attached. When the process is killed, the
//! kernel aborts the connection, and all requests in flight and later fail with EIO. This is not a power cut,
//! since the device's own state dies with the process.
//!
//! # Deadlocks
//! - The process, including the device's own threads, must never do I/O to a file system on its own loop
//!   device.
//! - Memory allocation in a worker must not wait for writes to the device that it serves. Workers are
//!   `IO_FLUSHER`s (prctl(2)), so their allocations never start such writes. A device with its own threads
//!   does the same for them. Locking the process's memory is not needed, and would pin the media of simulated
//!   drives; it would be needed if the machine swapped to the attached device or ran this program from it: do
//!   neither.
//! - No separate mount namespace is needed: nothing enters the mount after the file is open, and only the
//!   owner can access the directory. A copy of the mount in a container's namespace keeps the file system
//!   alive but not the connection, which is aborted on detaching.
//! - `session` explains the required order of descriptors, and which threads may wait for the file system.
//!
//! # Limitations
//! If a queue of the device has no descriptor to wait for, or waits for answers when it is dropped,
//! [`detach`](Attachment::detach) and drop may block on a device that never answers. During a flush the loop
//! driver holds back later requests, so no write sent after a flush overtakes it here. The loop device always
//! reports a write-back cache, and its physical block equals the logical one.

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
pub use directory::MOUNTS_GO;
pub use options::{AttachOptions, ControlFile};
pub use sweep::{sweep, sweep_of, try_unserved, unserved};
