//! How a file or a block device of this machine is opened: the same words in scenarios, in the kernel's
//! backend and in recordings.

use serde::{Deserialize, Serialize};

/// How targets are opened. What the kernel does not know is opened in one way, whatever is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Use of the page cache between the requests and the device.
    pub caching: Caching,
    /// How requests reach the kernel; with a mapping it says nothing.
    pub engine: EngineChoice,
    /// System call that carries out a flush.
    pub flush: FlushCall,
    /// Flag that makes a write durable.
    pub durable_write: DurableWrite,
    /// True if a simulated drive sees every flush and every FUA, rather than those that Linux would send it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw_flush: bool,
    /// True if each write is taken whole or refused, so that a power cut does not tear it (`RWF_ATOMIC`).
    /// Only with [`Caching::Direct`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untorn: bool,
}

/// Use of the page cache between the requests and the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// I/O through the page cache: reads may be answered from memory, writes stay in memory until they are
    /// written back.
    #[default]
    Cached,
    /// Past it (O_DIRECT).
    Direct,
    /// Through it, and dropped from it at once: what was read when the request is over, what was written once
    /// it is written back (`RWF_DONTCACHE`, Linux 6.14, and not every file system). Where that is refused,
    /// opening fails.
    DropBehind,
    /// Loads and stores to a mapping of the file; a flush is msync. Only with [`FlushCall::Fdatasync`] and
    /// [`DurableWrite::Dsync`], which stand for msync there.
    Mapped,
}

/// How requests are to reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// io_uring where that is allowed, else one call at a time; which is said. One request at a time through
    /// the page cache is a call.
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// pread and pwrite, one after the other: the depth is 1.
    Synchronous,
}

/// System call that carries out a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushCall {
    /// fdatasync(2): the data, and the metadata without which it cannot be read back.
    Fdatasync,
    /// fsync(2): the data and all metadata.
    Fsync,
    /// sync_file_range(2) over the whole file: dirty pages are handed to the device and waited for.
    ///
    /// **No durability at all.** It breaks the contract of [`Device`](crate::Device) on the user's wish: a
    /// flush completes as done and nothing is durable by it. There to measure what durability costs.
    Range,
}

/// Flag that makes a FUA write durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurableWrite {
    /// `RWF_DSYNC`, as O_DSYNC: the data, and the metadata without which it cannot be read back.
    Dsync,
    /// `RWF_SYNC`, as O_SYNC: all metadata too.
    Sync,
}

/// Ways to make one write durable whose costs a check compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncMethod {
    /// 4 KiB over existing data, then fdatasync: one flush, no metadata.
    OverwriteFdatasync,
    /// 4 KiB over existing data, then fsync: the changed times of the file must become durable too.
    OverwriteFsync,
    /// 4 KiB at the end of the file, then fdatasync: the new size must become durable too.
    AppendFdatasync,
    /// 4 KiB over existing data through O_DIRECT|O_DSYNC: FUA where the device has it, else write and flush.
    DirectDsync,
}

impl Caching {
    /// Returns true if data may stay in the page cache.
    pub const fn is_cached(self) -> bool {
        matches!(self, Self::Cached | Self::Mapped)
    }

    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Direct => "direct",
            Self::DropBehind => "drop-behind",
            Self::Mapped => "mapped",
        }
    }
}

impl Opening {
    /// I/O through the page cache, as most applications do it.
    pub const CACHED: Self = Self {
        caching: Caching::Cached,
        engine: EngineChoice::Auto,
        flush: FlushCall::Fdatasync,
        durable_write: DurableWrite::Dsync,
        raw_flush: false,
        untorn: false,
    };
    /// Past the page cache.
    pub const DIRECT: Self = Self { caching: Caching::Direct, ..Self::CACHED };

    /// Returns true if one request of a queue at a time reaches the kernel.
    pub fn is_serial(&self) -> bool {
        self.caching == Caching::Mapped || self.engine == EngineChoice::Synchronous
    }
}
