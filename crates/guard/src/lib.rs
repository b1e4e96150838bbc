//! The guard against writing where one must not: the names of files, devices, exports and simulated drives,
//! what stands behind each, the rules, and each opened as a device. What caches leave on devices and on this
//! machine ([`cache`]) it knows, too; caches themselves are opened by the crates above.
//!
//! ```text
//! Name ──locate──► a path, or what a `#N` stands for
//!          │
//!          ▼
//!        look ──► facts::Found  (kind, mounts, holders, swap, loop devices, signatures, identity)
//!          │                               │
//!          ▼                               ▼
//!        open ◄── rules::Allowed ◄── rules::judge(facts, Intent, Permission)   pure rules
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
//! that is served by one of these names is not seen by the other. On NFS, CIFS, SMB and 9p a run keeps no
//! lock on its file.

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
