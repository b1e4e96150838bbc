//! The write cache policy of drives: reading, planning, applying in waves, reading back, restoring,
//! persisting.
//!
//! ```text
//!   show ◄── view::DeviceView ◄── device (ATA, SCSI, NVMe, virtio, sysfs, holders, protection) ◄── gateway::Gateway (reads)
//!                 │
//!   select (--where) ──► plan::Plan (changes in order, refusals, hash) ──► apply ──► mechanism ──► Gateway (changes)
//!                                                                           │  ▲
//!                                                            journal (snapshot first, fsynced) ──► rollback, verify
//! ```
//!
//! Invariants:
//! 1. Only [`gateway::Gateway::carry_out`] changes anything, and it checks the identity of the disk on the
//!    same descriptor that it then uses.
//! 2. The effect of a change is determined by reading the device and the kernel back, never assumed from the
//!    command.
//! 3. Everything needed for a rollback is on stable storage before the first change.

pub mod apply;
pub mod claims;
pub mod device;
pub mod enforce;
pub mod error;
pub mod explain;
pub use plumb_state::whole_file as file;
mod configurators;
pub mod gateway;
pub mod heal;
pub mod job;
pub mod journal;
pub mod light_load;
pub mod machine;
mod many;
pub mod mechanism;
mod metrics;
#[cfg(feature = "mock")]
#[path = "../tests/mock/mod.rs"]
pub mod mock;
pub mod observe;
pub mod persist;
pub mod plan;
pub mod raid;
pub mod rollback;
pub mod select;
pub mod state;
mod time_text;
pub mod verify;
pub mod view;
pub mod watch;
pub mod waves;
pub mod wire;
