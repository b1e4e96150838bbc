//! Safety guard for targets: parses the name of a target, examines what is there, applies the rules, and
//! opens it as a device.
//!
//! Targets are files, block devices, NBD exports and simulated drives. The crate also reads and writes the
//! traces that write-back caches leave on devices and in state directories ([`cache`]); opening a cache
//! itself is left to the crates above.
//!
//! ```text
//! Name ──locate──► path, with `#N` resolved
//!          │
//!          ▼
//!        look ──► facts::FoundObject  (kind, mounts, holders, swap, loop devices, signatures, identity)
//!          │                               │
//!          ▼                               ▼
//!        open ◄── rules::AllowedAccess ◄── rules::judge(facts, Intent, Permission)   pure
//!          │
//!          └── look and judge again on the opened descriptor ──► OpenedTarget
//! ```
//!
//! Invariants:
//! 1. An existing target is written only after the rules have allowed it twice: before it is opened, and on
//!    the descriptor that will be written, with the device claimed.
//! 2. Unknown uses lead to a refusal: a device without a directory in /sys, an unreadable mount table.
//! 3. All targets of a run are judged before any is opened for writing. Missing files are created last.
//! 4. A device opened for reading cannot be written: its descriptor is read-only.
//!
//! # Limitations
//! - A file that another program has open (a running virtual machine, a database) is not detected. Such a
//!   file was not created by plumb, so it needs `--overwrite`.
//! - A disk in use by another host shows no sign of it here.
//! - Mounts in another mount namespace are known only to the kernel; its EBUSY is reported as a refusal.
//! - A lock on a file of btrfs or overlayfs below a loop device is not found.
//! - A file in the merged directory of an overlay and the same file in its layer have separate locks
//!   (fs/overlayfs/file.c): a cache or drive served by one of these names is not detected by the other.
//! - On NFS, CIFS, SMB and 9p a run keeps no lock on its file.

mod blkid;
mod byte_extent;
pub mod cache;
mod changed;
mod error;
pub mod facts;
pub mod locate;
pub mod look;
pub mod machine;
mod make;
pub mod mark;
mod medium;
mod name;
pub mod network;
mod open;
pub mod opened;
mod permission;
pub mod rules;
pub mod shared;
pub mod signature;
pub mod simulated;
pub mod storage;
mod target_request;
mod test_file;

pub use byte_extent::ByteExtent;
pub use error::{Error, Kind, Result};
pub use mark::{MADE, mark_as_left, mark_as_made};
pub use medium::{MEDIUM, Medium, MediumWanted, PendingMedium};
pub use name::{Name, Scheme};
pub use open::{HELD, may_be_replaced, open, open_all, open_beside};
pub use opened::{OpenedTarget, Route, TargetKind};
pub use permission::{Intent, Permission};
pub use simulated::open_simulated;
pub use storage::{overlap, size_of};
pub use target_request::TargetRequest;
