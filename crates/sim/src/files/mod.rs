//! A small file system with a page cache over a device in virtual time: what a program that works on files
//! does to a simulated drive.
//!
//! ```text
//!   FileStore call ─► State: names, files, pages ──dirty pages, oldest first──► Io ─► Device
//!                        │                                                       ▲
//!                        └── fsync: data, then a commit of the journal ──────────┘
//! ```
//!
//! # What it models
//! - **Page cache** of 4 KiB pages. A write is a copy into memory. Dirty pages are written when they are 30 s
//!   old, all of them once a tenth of the memory is dirty, and a write waits while a fifth is (Linux,
//!   Documentation/admin-guide/sysctl/vm.rst: `dirty_expire_centisecs`, `dirty_background_ratio`,
//!   `dirty_ratio`). Neighbours are written in one request.
//! - **fsync** as ext4 in ordered mode (Documentation/filesystems/ext4/journal.rst): data, then the journal's
//!   blocks, a flush, and the commit block, durable by FUA, or by another flush where the drive has no FUA.
//!   Without changed metadata it is the data and a flush. A drive without a volatile cache is sent no flush
//!   and no FUA, as the kernel's block layer leaves them out.
//! - **Time** of a call: a fixed part and that of copying, on one processor. Reads that miss wait for the
//!   drive, with read-ahead.
//!
//! # Limitations
//! It keeps no contents (a read returns zeroes), has no directories of its own (a path is a name), never uses
//! space again, writes no checkpoint of its journal, and commits only when somebody syncs, not every 5 s. One
//! caller at a time; others wait for it.

mod io;
mod state;
mod store;

use plumb_block::{Bytes, Nanos};

pub use store::SimulatedFiles;

/// The machine in front of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Memory of the host.
    pub memory: Bytes,
    /// Time that each call costs, without copying.
    pub call: Nanos,
    /// How fast it copies to and from the page cache, in bytes a second.
    pub copy_per_second: u64,
    /// The longest request that it makes.
    pub request_max: Bytes,
    /// True if [`syncfs`](plumb_block::FileStore::syncfs) also empties the page cache, so that what was
    /// prepared is read from the drive.
    pub cold_after_syncfs: bool,
}

impl Host {
    /// A desktop of 2002: 256 MiB of memory; a call and the rate of copying are estimated.
    pub const DESKTOP_2002: Self = Self {
        memory: Bytes::mib(256),
        call: Nanos::micros(10),
        copy_per_second: 400_000_000,
        request_max: Bytes::kib(128),
        cold_after_syncfs: false,
    };
    /// A server: 64 GiB of memory; a call and the rate of copying are estimated.
    pub const SERVER: Self = Self {
        memory: Bytes::gib(64),
        call: Nanos(1_500),
        copy_per_second: 5_000_000_000,
        request_max: Bytes::kib(256),
        cold_after_syncfs: false,
    };
}
