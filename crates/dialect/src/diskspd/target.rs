//! A target of a profile, with all defaults filled in: `alignment`, for example, is the block size unless
//! set.

use super::distribution::Distribution;

/// A target and its load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Path, `#N`, name with a scheme, or template `*N`.
    pub path: String,
    /// Length of an I/O in bytes.
    pub block: u32,
    /// Start of the range, in bytes.
    pub base: u64,
    /// End of the range, in bytes; 0 for the end of the target.
    pub max_size: u64,
    /// Access hints.
    pub hints: Hints,
    /// Large memory pages for buffers.
    pub large_pages: bool,
    /// Caches of the system in use.
    pub cache: CacheMode,
    /// Writes are durable when they complete.
    pub write_through: bool,
    /// Access by loads and stores to a mapping.
    pub mapped: bool,
    /// Method of flushing stores to a mapping.
    pub flush: Option<MappedFlush>,
    /// Content of writes.
    pub content: WriteContent,
    /// All outstanding I/Os of a thread start from the same offset.
    pub parallel: bool,
    /// I/Os of a burst, over all threads of the target; 0 for no bursts.
    pub burst: u32,
    /// Milliseconds between bursts; 0 for no bursts.
    pub think_ms: u32,
    /// Size of the file to create, in bytes.
    pub file_size: Option<u64>,
    /// Percentage of I/Os at random offsets: 0 for sequential, 100 for random.
    pub random_percent: u8,
    /// Random access: alignment of offsets. Sequential access: stride. In bytes.
    pub alignment: u64,
    /// Distribution of random I/Os over the range.
    pub distribution: Option<Distribution>,
    /// All threads share one sequential position.
    pub interlocked: bool,
    /// Distance between the start offsets of consecutive threads, in bytes.
    pub thread_stride: u64,
    /// Outstanding I/Os of each thread.
    pub requests: u32,
    /// Percentage of I/Os that are writes.
    pub write_percent: u8,
    /// Rate limit of each thread.
    pub throughput: Option<Throughput>,
    /// Number of threads of this target.
    pub threads: u32,
    /// I/O priority.
    pub priority: IoPriority,
    /// Weight of the target, where outstanding I/Os are shared by targets.
    pub weight: u32,
    /// Threads that use the target, where outstanding I/Os are shared by targets; empty for all.
    pub thread_targets: Vec<ThreadTarget>,
}

/// Access hints for opening a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// Random access.
    pub random: bool,
    /// Sequential scan.
    pub sequential: bool,
    /// A temporary file.
    pub temporary: bool,
}

/// Caches of the system in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// All caches.
    #[default]
    Cached,
    /// No local cache; a file server's may be used.
    LocalOff,
    /// None.
    Off,
}

/// Method of flushing stores to a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappedFlush {
    /// FlushViewOfFile.
    ViewOfFile,
    /// RtlFlushNonVolatileMemory.
    NonVolatileMemory,
    /// RtlFlushNonVolatileMemory, without waiting for completion.
    NonVolatileMemoryNoDrain,
}

/// Content of writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WriteContent {
    /// The bytes 0 to 255 repeated.
    #[default]
    Counting,
    /// Zeroes.
    Zero,
    /// Random bytes, without the size of a buffer in the profile.
    Random,
    /// A buffer, with a different start offset for each write.
    Buffer {
        /// Size of the buffer in bytes.
        size: u64,
        /// File that fills the buffer; `None` for random bytes.
        file: Option<String>,
    },
}

/// Rate limit of a thread on a target.
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
    /// Value 1.
    VeryLow,
    /// Value 2.
    Low,
    /// Value 3.
    #[default]
    Normal,
}

/// A thread that uses a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTarget {
    /// Number of the thread.
    pub thread: u32,
    /// Weight of the target for this thread; 0 for the target's own weight.
    pub weight: u32,
}

impl Target {
    /// DiskSpd's default block size in bytes.
    pub const BLOCK: u32 = 64 << 10;

    /// Creates a target with DiskSpd's defaults: sequential reads of 64 KiB, two outstanding.
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

    /// Returns true for a whole drive, `#N`.
    pub fn is_drive(&self) -> bool {
        self.path.starts_with('#')
    }

    /// Returns true for a template, `*N`, which the command line replaces.
    pub fn is_template(&self) -> bool {
        self.path.starts_with('*')
    }
}
