//! Options for opening a file or block device of this machine, shared by scenarios, the kernel backend and
//! recordings.

use serde::{Deserialize, Serialize};

/// Options for opening a target. Targets outside the kernel ignore them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Use of the page cache between the requests and the device.
    pub caching: Caching,
    /// Interface for requests to the kernel; ignored for a mapping.
    pub engine: EngineChoice,
    /// System call that carries out a flush.
    pub flush: FlushCall,
    /// Flag that makes a write durable.
    pub durable_write: DurableWrite,
    /// True if a simulated drive receives every flush and every FUA, rather than only those that Linux would
    /// send.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw_flush: bool,
    /// True if each write is either atomic across a power cut or refused (`RWF_ATOMIC`). Only with
    /// [`Caching::Direct`].
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
    /// Direct I/O that bypasses the page cache (O_DIRECT).
    Direct,
    /// I/O through the page cache that drops pages at once: after the read, or after write-back
    /// (`RWF_DONTCACHE`, Linux 6.14, only some file systems). Opening fails where it is not supported.
    DropBehind,
    /// Loads and stores to a mapping of the file; a flush is msync. Only with [`FlushCall::Fdatasync`] and
    /// [`DurableWrite::Dsync`], which both mean msync here.
    Mapped,
}

/// Choice of the interface for requests to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// io_uring if it is allowed, else one system call at a time, with a note in the report. Serial requests
    /// through the page cache always use system calls.
    Auto,
    /// io_uring; opening fails where it is not allowed.
    IoUring,
    /// pread and pwrite, one at a time: the depth is 1.
    Synchronous,
}

/// I/O priority of a thread, for schedulers that use it (BFQ, mq-deadline; `none` does not).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Idle class: only when nobody else uses the device.
    Idle,
    /// Best effort, lowest level (7).
    Low,
    /// Best effort, middle level (4): the default of threads with a nice value of 0.
    Normal,
}

/// System call that carries out a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushCall {
    /// fdatasync(2): the data, and the metadata without which it cannot be read back.
    Fdatasync,
    /// fsync(2): the data and all metadata.
    Fsync,
    /// sync_file_range(2) over the whole file: writes dirty pages to the device and waits for them.
    ///
    /// **No durability at all.** At the user's request this breaks the contract of [`Device`](crate::Device):
    /// a flush completes successfully and makes nothing durable. Exists to measure the cost of durability.
    Range,
}

/// Flag that makes a FUA write durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurableWrite {
    /// `RWF_DSYNC`, like O_DSYNC: the data, and the metadata without which it cannot be read back.
    Dsync,
    /// `RWF_SYNC`, like O_SYNC: the data and all metadata.
    Sync,
}

/// Ways to make one write durable, whose costs a check compares.
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

    /// Returns the name of the mode in scenarios and reports.
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
    /// I/O through the page cache, as in most applications.
    pub const CACHED: Self = Self {
        caching: Caching::Cached,
        engine: EngineChoice::Auto,
        flush: FlushCall::Fdatasync,
        durable_write: DurableWrite::Dsync,
        raw_flush: false,
        untorn: false,
    };
    /// Direct I/O that bypasses the page cache.
    pub const DIRECT: Self = Self { caching: Caching::Direct, ..Self::CACHED };

    /// Returns true if a queue sends the kernel only one request at a time.
    pub fn is_serial(&self) -> bool {
        self.caching == Caching::Mapped || self.engine == EngineChoice::Synchronous
    }
}
