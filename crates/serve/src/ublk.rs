//! Export of any [`Device`](plumb_block::Device) as a block device of this machine, through the kernel's ublk
//! driver (Linux 6.0).
//!
//! ```text
//!   file system, database, fio
//!   /dev/ublkbN           the block layer, with a volatile cache and native FUA where the device has it
//!   ublk_drv              requests as completions of io_uring commands, data copied to and from lent memory
//!   worker threads        one for each queue, each with a Queue of the device
//!   Device
//! ```
//! [`UblkDevice::new`] exports. [`UblkDevice::detach`] flushes and removes everything, or refuses and names
//! the remaining users. [`UblkDevice::recover`] takes over from a killed server. [`sweep()`] removes its
//! remains instead, unless they are in use; every new export does so first.
//!
//! # What the device sees
//! Requests arrive as the block layer sends them: a FUA write arrives as such if the device has native FUA.
//! The cache is always reported as volatile, since it may be enabled later and the kernel could not be
//! notified.
//!
//! # Failures
//! A request that failed, was not answered, or met a device without power is reported as EIO. A failed flush
//! or FUA write latches: all later ones fail without reaching the device, for its whole life.
//!
//! # When the server is killed
//! A device whose contents are in the server ([`Survives::Nothing`]) ends with it. Any other requests
//! USER_RECOVERY and REISSUE: the block device stays, unanswered and new requests wait, and are sent to the
//! next server. Reissuing is safe, because nobody knows the fate of requests in flight: reads and flushes
//! change nothing, and a write that had already landed lands again with the same data. An overlapping write
//! was either concurrent, so that any order is right, or was sent after an answer that the first one never
//! got. Without REISSUE a file system would see write errors after a restart of the server, and stop.
//!
//! *Answered* requests are different. Acknowledged writes in a cache of the killed process are lost, and the
//! kernel does not know. A successful flush would then claim durability of lost data. So the server keeps a
//! record (`risk`) of whether there are such writes, written before the first is acknowledged. A server that
//! takes over from a record that is not clean serves reads and writes but no flushes, which makes file
//! systems stop and report it ([`UblkDevice::is_lossy`]). The same applies after a failed flush. A device
//! that keeps everything acknowledged ([`Survives::Acknowledged`]: a cache, which acknowledges data once it
//! is in the log) has no such risk.
//!
//! # Deadlocks
//! - The process, including the device's own threads, must never do I/O to a file system on its own block
//!   device.
//! - Memory allocation in a worker must not wait for writes to the device that it serves: workers are
//!   `IO_FLUSHER`s, as those of [`attach`](crate::attach) are.
//! - Only the thread that fetched a tag may commit it: workers never change.
//!
//! # Limitations
//! [`detach`](UblkDevice::detach) waits a minute for a device that never answers. The size and the block size
//! are those at the time of exporting. If taking over fails half-way, the kernel keeps the device quiesced
//! until it is swept. Between two flushes a killed server counts as having lost writes even if its cache was
//! empty.

mod driver;
mod exported;
mod options;
mod plan;
mod records;
mod risk;
mod served;
mod sweep;
mod wire;
mod worker;

pub use crate::records::Swept;
pub use exported::UblkDevice;
pub use options::{Survives, UblkOptions};
pub use sweep::{sweep, unserved, waiting};
