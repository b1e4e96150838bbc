//! The write cache policy of drives: reads it, plans a change, applies it in waves, reads it back, restores
//! it, persists it.
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
//!    descriptor that it then uses.
//! 2. What a change has done is known from reading back the device and the kernel, never from its having been
//!    asked.
//! 3. Everything that is needed to go back is on stable storage before the first change.

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
