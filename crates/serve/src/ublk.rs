//! Any [`Device`](plumb_block::Device) as a block device of this machine, through the kernel's ublk driver
//! (Linux 6.0).
//!
//! ```text
//!   file system, database, fio
//!   /dev/ublkbN           the block layer, with a volatile cache and native FUA where the device has it
//!   ublk_drv              requests as completions of io_uring commands, data copied to and from lent memory
//!   worker threads        one for each queue, each with a Queue of the device
//!   Device
//! ```
//! [`UblkDevice::new`] exports, [`UblkDevice::detach`] flushes and takes everything away, or refuses and says
//! who still uses the device, [`UblkDevice::recover`] takes over what a killed server left. [`sweep()`]
//! removes that instead, unless somebody uses it; every new export does so first.
//!
//! # What the device sees
//! What the block layer sends, as it sends it: a FUA write arrives as one where the device has native FUA.
//! The cache is always told as a volatile one, for it may be turned on later and the kernel could not be
//! told.
//!
//! # Failures
//! A request that failed, was not answered, or met a device without power is EIO above. A flush or a FUA
//! write that failed latches: every later one fails without asking the device, for as long as it lives.
//!
//! # When the server is killed
//! A device whose contents are in the server ([`Survives::Nothing`]) ends with it. Any other asks for
//! USER_RECOVERY and REISSUE: the block device stays, what was not answered and what comes waits, and the
//! next server is asked all of it. Asking again is safe, because of what was in flight nothing is known to
//! anybody: reads and flushes change nothing; a write that had already landed lands again with the same
//! bytes; and one that overlaps with it was in flight beside it, so either order was right, or it was sent
//! after an answer that the first one never got. Without REISSUE the file system would see write errors for a
//! restart of the server, and stop.
//!
//! What was *answered* is another matter. If acknowledged writes were in a cache in the killed process, they
//! are gone, and the kernel does not know. A flush that succeeded now would make durable what is not there.
//! So the server keeps a record of whether there are such writes (`risk`), written before the first is
//! acknowledged; one that takes over from a record that is not clean serves reads and writes but no flush,
//! which makes file systems stop and say so ([`UblkDevice::is_lossy`]). The same goes for a flush that had
//! failed. A device of which everything acknowledged survives ([`Survives::Acknowledged`]: a cache, which
//! acknowledges what its log has) has no such risk.
//!
//! # Deadlocks
//! - The process must never do I/O to a file system on its own block device, nor may the device's own
//!   threads.
//! - Memory that a worker needs must not wait for writes to the device it serves: workers are `IO_FLUSHER`s,
//!   as those of [`attach`](crate::attach) are.
//! - Only the thread that fetched a tag may commit it: workers never change.
//!
//! # Limitations
//! A device that never answers keeps [`detach`](UblkDevice::detach) waiting for a minute. The size and the
//! block size are those at the time of exporting. When taking over fails half-way, the kernel keeps the
//! device quiesced until it is swept. Between two flushes a killed server counts as having lost writes even
//! if its cache happened to be empty.

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
