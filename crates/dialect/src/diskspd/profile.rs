//! DiskSpd's description of a run: time spans, their targets, and output options.
//!
//! Command lines and XML are two notations for it. [`write_profile`](super::write_profile) writes any profile
//! as XML, from which the same profile can be read. Sizes are in bytes, and all defaults are filled in, so
//! nothing here depends on the notation.

pub use super::target::{
    CacheMode, Hints, IoPriority, MappedFlush, Target, ThreadTarget, Throughput, WriteContent,
};

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Number of I/Os of a thread for each progress dot; 0 for none.
    pub progress: u32,
    /// DiskSpd's experiment flags, which have no effect here.
    pub experiment_flags: u32,
    /// Format of the results.
    pub result_format: ResultFormat,
    /// Print more while running.
    pub verbose: bool,
    /// Print how threads waited, after the results.
    pub verbose_stats: bool,
    /// Files to create before the first span.
    pub precreate: Precreate,
    /// Requested settings of Windows event tracing, which have no effect here.
    pub etw: Option<EtwSettings>,
    /// Consecutive time spans; at least one.
    pub time_spans: Vec<TimeSpan>,
}

/// Settings of Windows event tracing, in the order of a profile.
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

/// Files of later spans to create before the first span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precreate {
    /// None: each is created before the span that names it.
    #[default]
    None,
    /// All, with the largest size in any span.
    UseMaxSize,
    /// Files with the same size in every span.
    ConstantSizes,
    /// Files with the same size, or no size, in every span.
    ConstantOrZeroSizes,
}

/// Targets that are used at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeSpan {
    /// Completion routines instead of completion ports.
    pub completion_routines: bool,
    /// Print latencies.
    pub measure_latency: bool,
    /// Print the deviation of I/Os per second.
    pub iops_deviation: bool,
    /// Leave the placement of threads to the scheduler.
    pub affinity_disabled: bool,
    /// Length of the measurement, in seconds.
    pub duration: u32,
    /// Length of the warm-up before the measurement, in seconds.
    pub warmup: u32,
    /// Length of the cool-down after the measurement, in seconds.
    pub cooldown: u32,
    /// Total number of threads, each on every target; 0 if each target has its own threads.
    pub thread_count: u32,
    /// Outstanding I/Os of each thread over all targets, with `-F`; 0 if each target has its own number.
    pub request_count: u32,
    /// Length of the intervals for I/Os per second, in milliseconds.
    pub bucket_ms: u32,
    /// Seed of random choices.
    pub seed: u32,
    /// New random bytes for each write.
    pub random_write_data: bool,
    /// Processors to which threads are assigned in turn; empty for all.
    pub affinity: Vec<Processor>,
    /// Targets; at least one.
    pub targets: Vec<Target>,
}

/// A processor in Windows numbering: groups of at most 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// Number of the group.
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
    /// Creates a time span with DiskSpd's defaults: 5 s of warm-up, 10 s measured.
    pub fn new(targets: Vec<Target>) -> Self {
        Self { duration: 10, warmup: 5, bucket_ms: 1000, targets, ..Self::default() }
    }

    /// Returns true if the outstanding I/Os of a thread are shared by its targets.
    pub const fn requests_are_shared(&self) -> bool {
        self.thread_count > 0 && self.request_count > 0
    }
}
