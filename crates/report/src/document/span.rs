//! Jobs that run at the same time within a run, with their warm-up and steadiness.

use plumb_block::{Caching, SyncMethod};
use serde::{Deserialize, Serialize};

use super::sides::{CpuSeconds, Sides};

/// Jobs that ran at the same time, and their measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSpan {
    /// Duration of the warm-up, in seconds.
    pub warmup: f64,
    /// True if the rate had settled when the measurement began; null if the length of the warm-up was given.
    pub settled: Option<bool>,
    /// Length of the window, in seconds.
    pub duration: f64,
    /// Duration of the cool-down, in seconds.
    pub cooldown: f64,
    /// Jobs.
    pub jobs: Vec<RunJob>,
    /// Rounds, if the span was repeated until the steady state; null otherwise.
    pub steady: Option<SteadyState>,
    /// Result of the search for a depth; null without one.
    pub latency_target: Option<LatencyTargetResult>,
    /// Time of each processor in the window, by use; empty if unknown.
    pub processors: Vec<ProcessorSeconds>,
    /// All targets of the span together.
    pub total: Sides,
}

/// Job, as requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunJob {
    /// Name of the job.
    pub name: String,
    /// Description of the job, in words: `random writes of 8 KiB`.
    pub description: String,
    /// Method whose cost of a durable write the job measures, with one writer that waits for each; null for
    /// other jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<SyncMethod>,
    /// Length of each operation in bytes; null if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Number of threads on each target.
    pub threads: u32,
    /// Use of the page cache by the job.
    pub caching: Caching,
    /// True if operations start on a schedule instead of after an earlier completion.
    pub scheduled: bool,
    /// Method of flushing; null if the job requests no flushes.
    pub flush: Option<FlushMethod>,
    /// Number of writes of which one is durable on completion; null if none is.
    pub durable_write_every: Option<u32>,
    /// Written content, in words: `noise that does not compress`.
    pub content: String,
    /// True if the written data compresses or repeats, so that a path that reduces data has less to do.
    pub reducible: bool,
    /// Processor time of the threads; null if unknown.
    pub cpu: Option<CpuSeconds>,
}

/// Method of flushing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushMethod {
    /// fdatasync(2).
    Fdatasync,
    /// fsync(2).
    Fsync,
    /// msync(2).
    Msync,
    /// FLUSH request to the device itself.
    Device,
    /// sync_file_range(2), which makes nothing durable.
    Range,
}

/// Rounds until the steady state of SNIA's Performance Test Specification 2.0.2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// Rounds in order.
    pub rounds: Vec<Round>,
    /// True if the last five rounds span at most 20 % of their mean and their fitted line at most 10 %; null
    /// with fewer rounds.
    pub steady: Option<bool>,
}

/// Round of a repeated span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Length of the round, in seconds.
    pub seconds: f64,
    /// Rate of the round, in operations per second.
    pub iops: f64,
}

/// Largest depth that meets a latency target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyTargetResult {
    /// Latency to meet, in seconds.
    pub latency: f64,
    /// Percentage of the operations that must meet the latency.
    pub percentile: f64,
    /// Depth that was found; null if not even a depth of 1 meets the latency.
    pub depth: Option<u32>,
    /// Depths tried, in order.
    pub tried: Vec<DepthTried>,
}

/// Depth that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DepthTried {
    /// Requests in flight per thread.
    pub depth: u32,
    /// Rate at the depth, in operations per second.
    pub iops: f64,
    /// Latency at the percentile, in seconds; null if nothing completed.
    pub latency: Option<f64>,
}

/// Time of one processor by use, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProcessorSeconds {
    /// Number of the processor.
    pub number: u32,
    /// Time in user mode.
    pub user: f64,
    /// Time in the kernel, including interrupts.
    pub kernel: f64,
    /// Idle time, including waits for I/O.
    pub idle: f64,
}
