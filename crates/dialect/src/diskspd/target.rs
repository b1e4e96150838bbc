//! A target of a profile: where it is, and what is done to it.
//!
//! All defaults are filled in: `alignment`, for one, is the block where nothing else was said.

use super::distribution::Distribution;

/// A target and what is done to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// A path, `#N`, a scheme, or the template `*N`.
    pub path: String,
    /// Bytes of an I/O.
    pub block: u32,
    /// Start of the range.
    pub base: u64,
    /// End of the range; 0: with the target.
    pub max_size: u64,
    /// Access hints.
    pub hints: Hints,
    /// Large memory pages for buffers.
    pub large_pages: bool,
    /// Caches of the system that stand between.
    pub cache: CacheMode,
    /// Writes reach the medium before they complete.
    pub write_through: bool,
    /// Loads and stores to a mapping.
    pub mapped: bool,
    /// How stores to a mapping are flushed.
    pub flush: Option<MappedFlush>,
    /// Content of writes.
    pub content: WriteContent,
    /// All outstanding I/Os walk from the same offset.
    pub parallel: bool,
    /// I/Os of a burst, over all threads of the target; 0: no bursts.
    pub burst: u32,
    /// Milliseconds between bursts; 0: no bursts.
    pub think_ms: u32,
    /// Make the file this large.
    pub file_size: Option<u64>,
    /// How many of 100 I/Os go to a random place: 0 is sequential, 100 random.
    pub random_percent: u8,
    /// Random: what offsets are multiples of. Sequential: the stride.
    pub alignment: u64,
    /// How random I/Os are spread over the range.
    pub distribution: Option<Distribution>,
    /// All threads take the next offset from one position.
    pub interlocked: bool,
    /// The n-th thread starts n times so far from the base.
    pub thread_stride: u64,
    /// Outstanding I/Os of each thread.
    pub requests: u32,
    /// How many of 100 I/Os are writes.
    pub write_percent: u8,
    /// A limit of each thread.
    pub throughput: Option<Throughput>,
    /// Threads of this target.
    pub threads: u32,
    /// I/O priority.
    pub priority: IoPriority,
    /// How often it is chosen where threads have outstanding I/Os over all targets.
    pub weight: u32,
    /// The only threads that work on it, where threads have outstanding I/Os over all targets.
    pub thread_targets: Vec<ThreadTarget>,
}

/// Hints with which a file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// Random access.
    pub random: bool,
    /// Sequential scan.
    pub sequential: bool,
    /// A temporary file.
    pub temporary: bool,
}

/// Caches of the system that stand between: whether there are any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Yes.
    #[default]
    Cached,
    /// Not this machine's; a file server's may.
    LocalOff,
    /// No.
    Off,
}

/// How stores to a mapping are flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappedFlush {
    /// FlushViewOfFile.
    ViewOfFile,
    /// RtlFlushNonVolatileMemory.
    NonVolatileMemory,
    /// RtlFlushNonVolatileMemory, without waiting for it to drain.
    NonVolatileMemoryNoDrain,
}

/// Content of writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WriteContent {
    /// The bytes 0 to 255 over and over.
    #[default]
    Counting,
    /// Zeroes.
    Zero,
    /// Random bytes; a profile may say so without the size of a buffer.
    Random,
    /// A buffer; each write starts at another place in it.
    Buffer {
        /// Size of the buffer.
        size: u64,
        /// File from which the buffer is filled; `None`: random bytes.
        file: Option<String>,
    },
}

/// A limit on the throughput of a thread on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throughput {
    /// Bytes per millisecond.
    BytesPerMillisecond(u32),
    /// I/Os per second.
    Iops(u32),
}

/// I/O priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IoPriority {
    /// 1.
    VeryLow,
    /// 2.
    Low,
    /// 3.
    #[default]
    Normal,
}

/// A thread that works on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTarget {
    /// Number of the thread.
    pub thread: u32,
    /// The weight of the target for this thread; 0: that of the target.
    pub weight: u32,
}

impl Target {
    /// DiskSpd's default block.
    pub const BLOCK: u32 = 64 << 10;

    /// Creates a target with DiskSpd's defaults: 64 KiB reads one after the other, two outstanding.
    pub fn at(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            block: Self::BLOCK,
            alignment: u64::from(Self::BLOCK),
            requests: 2,
            threads: 1,
            weight: 1,
            ..Self::default()
        }
    }

    /// Returns true if it is a whole drive, `#N`.
    pub fn is_drive(&self) -> bool {
        self.path.starts_with('#')
    }

    /// Returns true if it stands for a target that is named later, `*N`.
    pub fn is_template(&self) -> bool {
        self.path.starts_with('*')
    }
}
