//! DiskSpd's own description of a run: time spans, their targets, and what is printed.
//!
//! A command line and XML are two ways to write it. [`write_profile`](super::write_profile) writes any
//! profile as XML, and reading that back gives the same profile. Sizes are in bytes with all defaults filled
//! in, so nothing here depends on how it was typed.

pub use super::target::{
    CacheMode, Hints, IoPriority, MappedFlush, Target, ThreadTarget, Throughput, WriteContent,
};

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// A dot of progress for every so many I/Os of a thread; 0: none.
    pub progress: u32,
    /// DiskSpd's experiment flags. They have no meaning here.
    pub experiment_flags: u32,
    /// Format of the results.
    pub result_format: ResultFormat,
    /// More words while it runs.
    pub verbose: bool,
    /// How threads waited, after the results.
    pub verbose_stats: bool,
    /// Files that are made before the first span.
    pub precreate: Precreate,
    /// Settings of Windows event tracing that were requested; they have no meaning here.
    pub etw: Option<EtwSettings>,
    /// One after the other; at least one.
    pub time_spans: Vec<TimeSpan>,
}

/// Settings of Windows event tracing that are on, in the order of a profile.
pub type EtwSettings = [bool; 12];

/// Format of the results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultFormat {
    /// Tables.
    #[default]
    Text,
    /// XML.
    Xml,
}

/// Files of later spans that are made before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precreate {
    /// None: each is made before the span that names it.
    #[default]
    None,
    /// All, as large as the largest size any span gives them.
    UseMaxSize,
    /// Files that every span gives the same size.
    ConstantSizes,
    /// Files that every span gives the same size or none.
    ConstantOrZeroSizes,
}

/// Targets that are driven at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeSpan {
    /// Completion routines instead of completion ports.
    pub completion_routines: bool,
    /// Print latencies.
    pub measure_latency: bool,
    /// Print how I/Os per second varied.
    pub iops_deviation: bool,
    /// Threads run where the scheduler puts them.
    pub affinity_disabled: bool,
    /// Length of the measurement, in seconds.
    pub duration: u32,
    /// Length of the warm-up before the measurement, in seconds.
    pub warmup: u32,
    /// Length of the cool-down after the measurement, in seconds.
    pub cooldown: u32,
    /// Threads in all, each on every target; 0: each target has threads of its own.
    pub thread_count: u32,
    /// Outstanding I/Os of each thread over all targets, with `-F`; 0: each target has its own count.
    pub request_count: u32,
    /// Milliseconds of the intervals in which I/Os per second are counted.
    pub bucket_ms: u32,
    /// The seed.
    pub seed: u32,
    /// New random bytes for each write.
    pub random_write_data: bool,
    /// Processors for threads in turn; empty: all.
    pub affinity: Vec<Processor>,
    /// Targets; at least one.
    pub targets: Vec<Target>,
}

/// A processor as Windows counts them: in groups of at most 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// Group.
    pub group: u32,
    /// Number in the group.
    pub number: u32,
}

impl Profile {
    /// Creates a profile of these spans that prints text.
    pub fn new(time_spans: Vec<TimeSpan>) -> Self {
        Self { time_spans, ..Self::default() }
    }
}

impl TimeSpan {
    /// Creates a profile with DiskSpd's defaults: 5 s of warm-up, 10 s measured.
    pub fn new(targets: Vec<Target>) -> Self {
        Self { duration: 10, warmup: 5, bucket_ms: 1000, targets, ..Self::default() }
    }

    /// Returns true if outstanding I/Os are those of a thread over all its targets.
    pub const fn requests_are_shared(&self) -> bool {
        self.thread_count > 0 && self.request_count > 0
    }
}
