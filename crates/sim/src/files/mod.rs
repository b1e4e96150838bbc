//! A small file system with a page cache on a device in virtual time, to run programs that use files on a
//! simulated drive.
//!
//! ```text
//!   FileStore call ─► State: names, files, pages ──dirty pages, oldest first──► Io ─► Device
//!                        │                                                       ▲
//!                        └── fsync: data, then a commit of the journal ──────────┘
//! ```
//!
//! # What it models
//! - **Page cache** of 4 KiB pages. A write is a copy into memory. Dirty pages are written back at an age of
//!   30 s, and all of them once they exceed a tenth of the memory; a write waits while they exceed a fifth
//!   (Linux, Documentation/admin-guide/sysctl/vm.rst: `dirty_expire_centisecs`, `dirty_background_ratio`,
//!   `dirty_ratio`). Adjacent pages are written in one request.
//! - **fsync** as in ext4 in ordered mode (Documentation/filesystems/ext4/journal.rst): data, then the
//!   journal's blocks, a flush, and the commit block, made durable by FUA, or by another flush if the drive
//!   has no FUA. Without changed metadata it is data and a flush. A drive without a volatile cache receives
//!   no flush and no FUA, as with the kernel's block layer.
//! - **Time** of a call: a fixed part plus copying, on one processor. Reads that miss the cache wait for the
//!   drive, with read-ahead.
//!
//! # Limitations
//! Not modelled: contents (a read returns zeroes), directories (a path is a name), reuse of space,
//! checkpoints of the journal, and periodic commits every 5 s. Only one caller runs at a time; others wait.

mod io;
mod state;
mod store;

use plumb_block::{Bytes, Nanos};

pub use store::SimulatedFiles;

/// Host machine of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Memory of the host.
    pub memory: Bytes,
    /// Fixed cost of a call, without copying.
    pub call: Nanos,
    /// Copy rate to and from the page cache, in bytes per second.
    pub copy_per_second: u64,
    /// Maximum size of a request.
    pub request_max: Bytes,
    /// True if [`syncfs`](plumb_block::FileStore::syncfs) also empties the page cache, so that prepared data
    /// is read from the drive.
    pub cold_after_syncfs: bool,
}

impl Host {
    /// A desktop of 2002: 256 MiB of memory; the costs of calls and copying are estimates.
    pub const DESKTOP_2002: Self = Self {
        memory: Bytes::mib(256),
        call: Nanos::micros(10),
        copy_per_second: 400_000_000,
        request_max: Bytes::kib(128),
        cold_after_syncfs: false,
    };
    /// A server: 64 GiB of memory; the costs of calls and copying are estimates.
    pub const SERVER: Self = Self {
        memory: Bytes::gib(64),
        call: Nanos(1_500),
        copy_per_second: 5_000_000_000,
        request_max: Bytes::kib(256),
        cold_after_syncfs: false,
    };
}
