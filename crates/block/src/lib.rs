//! The block device interface: [`Device`] and [`Queue`], their contract, and the units, requests and buffers
//! they use.
//!
//! Everything that can be written to is a [`Device`]: a disk of this machine, a file, a simulated drive, a
//! remote export. Every writer uses a [`Queue`]. Because both sides know only these two traits, one load
//! generator, one prover and one exporter work with every kind of device.
//!
//! Three words for written data are never mixed, in this crate or in those that use it:
//!
//! - **visible**: a later read returns it;
//! - **acknowledged**: its completion was seen;
//! - **durable**: it survives a power cut.
//!
//! The crate knows no file format, depends on no other crate of the workspace, and uses only poll(2) of the
//! kernel. The aligned buffer pool is the only unsafe code.

pub mod buffer;
pub mod clock;
#[cfg(feature = "conformance")]
#[path = "../tests/conformance/mod.rs"]
pub mod conformance;
pub mod counters;
pub mod device;
pub mod error;
pub mod extent_map;
pub mod info;
mod layered;
pub mod opening;
pub mod pattern;
pub mod request;
pub mod store;
pub mod units;
pub mod wait;

pub use buffer::{Buffer, BufferMut, Pool, PoolShape};
pub use clock::{Clock, EventSource, RealClock, Time, VirtualClock, unix_time};
pub use counters::{DeviceCounters, StorageCounters, StorageSnapshot};
pub use device::{Device, Latch, Power, Queue, QueueFull, QueueOptions, Wait};
pub use error::{Errno, Error, ErrorKind, FailureKind, Result, in_one_line};
pub use extent_map::ExtentMap;
pub use info::{DeviceInfo, Extent, ExtentState, VolatileCache, lost_blocks, written_share};
pub use layered::DeviceLayer;
pub use opening::{Caching, DurableWrite, EngineChoice, FlushCall, Opening, Priority, SyncMethod};
pub use pattern::{Pattern, Stamp, mixed};
pub use request::{Completion, LbaRange, Op, Outcome, Payload, Request, Tag};
pub use store::{FileId, FileStore, OpenOptions};
pub use units::{Bytes, Lba, Nanos, ParseBytesError, SizeBase};
pub use wait::{
    PollFlags, Poller, Waiter, Wakeups, receive_unless, retry_until, sleep_unless, wait_any, waiting_poll,
};
