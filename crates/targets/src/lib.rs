//! Targets: the names that a user can give, how each is opened as a device, and the guard that refuses unsafe
//! writes.
//!
//! ```text
//! Name ──locate──► a path, or what a `#N` stands for
//!          │
//!          ▼
//!        look ──► facts::Found  (kind, mounts, holders, swap, loop devices, signatures, identity)
//!          │                               │
//!          ▼                               ▼
//!        open ◄── guard::Allowed ◄── guard::judge(facts, Intent, Permission)   pure rules
//!          │
//!          └── the same look and the same rules again on the opened descriptor, then `OpenedTarget`
//! ```
//!
//! Invariants:
//! 1. Nothing is written to an existing target before the rules have allowed it twice: before it was opened,
//!    and on the descriptor that will be written, with the device claimed.
//! 2. What cannot be seen is refused, not assumed: a device without its directory in /sys, an unreadable
//!    mount table.
//! 3. Of several targets all are judged before any is opened for writing, and missing files are made last.
//! 4. A device that is opened for reading can never be written: the descriptor itself is read-only.
//!
//! # Limitations
//! A file that another program has open (a running virtual machine, a database) is not recognised; it was not
//! made by plumb, so it needs `--overwrite`. A disk that another host shares carries no sign of it here.
//! Mounts of another mount namespace are seen only by the kernel, whose EBUSY is then a refusal too. A lock
//! on a file of btrfs or overlayfs beneath a loop device is not found. A file in the merged directory of an
//! overlay and the same file in its layer have locks of their own (fs/overlayfs/file.c): a cache or a drive
//! that is served by one of these names is not seen by the other.

mod blkid;
mod byte_extent;
pub mod cache;
mod changed;
mod error;
pub mod facts;
pub mod guard;
mod locate;
mod look;
pub mod machine;
mod make;
mod mark;
mod medium;
mod name;
mod network;
mod open;
mod opened;
mod permission;
pub mod served_drive;
mod servers;
mod shared;
pub mod signature;
mod simulated;
mod storage;
mod target_request;
mod test_file;
mod time;

pub use byte_extent::ByteExtent;
pub use error::{Error, Kind, Result};
pub use mark::{MADE, mark_as_left, mark_as_made};
pub use medium::{MEDIUM, Medium, MediumWanted, PendingMedium};
pub use name::{Name, Scheme};
pub use open::{may_be_replaced, open, open_all, open_foreign, open_to_read};
pub use opened::{OpenedTarget, Route, TargetKind};
pub use permission::{Intent, Permission};
pub use plumb_block::Time;
pub use servers::Servers;
pub use simulated::{open_simulated, seed_of};
pub use storage::{overlap, size_of};
pub use target_request::TargetRequest;
pub use time::time_of;
