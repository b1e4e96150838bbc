//! Jobs that run at the same time within a run, with their warm-up and steadiness.

use plumb_block::{Caching, SyncMethod};
use serde::{Deserialize, Serialize};

use super::sides::{CpuSeconds, Sides};

/// Jobs that ran at the same time, and how they were measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSpan {
    /// Time that the jobs ran before they were measured, in seconds.
    pub warmup: f64,
    /// True if the rate had settled when measuring began; null if the warm-up was of a given length.
    pub settled: Option<bool>,
    /// The length of the window, in seconds.
    pub duration: f64,
    /// Time that the jobs ran on after it, in seconds.
    pub cooldown: f64,
    /// The jobs.
    pub jobs: Vec<RunJob>,
    /// The rounds, if it was repeated until the steady state; null if not.
    pub steady: Option<SteadyState>,
    /// The depth that was looked for; null if none was.
    pub latency_target: Option<LatencyTargetResult>,
    /// Time of each processor in the window, by use; empty if that is not known.
    pub processors: Vec<ProcessorSeconds>,
    /// All targets of the span together.
    pub total: Sides,
}

/// One job: what was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunJob {
    /// Name of the job.
    pub name: String,
    /// Description of the job, in words: `random writes of 8 KiB`.
    pub description: String,
    /// The way to make a write durable whose cost it measures: one writer, who waits for each. Null for other
    /// jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<SyncMethod>,
    /// Bytes of each operation; null if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Threads on each of its targets.
    pub threads: u32,
    /// Use of the page cache by the job.
    pub caching: Caching,
    /// True if operations start on a schedule, rather than when an earlier one has completed.
    pub scheduled: bool,
    /// Method of flushing; null if the job requests no flushes.
    pub flush: Option<FlushMethod>,
    /// Every how many writes one is to be durable when it completes; null if none is.
    pub durable_write_every: Option<u32>,
    /// Written content, in words: `noise that does not compress`.
    pub content: String,
    /// True if what is written compresses or repeats, so that a path that reduces data has less to do.
    pub reducible: bool,
    /// Processor time of its threads; null if it is not known.
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
    /// A FLUSH request of the device itself.
    Device,
    /// sync_file_range(2): makes nothing durable.
    Range,
}

/// Rounds until the steady state of SNIA's Performance Test Specification 2.0.2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// The rounds in the order in which they ran.
    pub rounds: Vec<Round>,
    /// True if the last five rounds span at most 20 % of their mean and their fitted line at most 10 %; null
    /// with fewer rounds.
    pub steady: Option<bool>,
}

/// One round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Length of the round, in seconds.
    pub seconds: f64,
    /// Rate of the round, in operations per second.
    pub iops: f64,
}

/// The greatest depth at which a latency was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyTargetResult {
    /// The latency to keep, in seconds.
    pub latency: f64,
    /// Percentage of the operations that the latency holds for.
    pub percentile: f64,
    /// The depth that was found; null if not even one request at a time kept it.
    pub depth: Option<u32>,
    /// Depths that were tried, in order.
    pub tried: Vec<DepthTried>,
}

/// One depth that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DepthTried {
    /// Requests in flight of each thread.
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
    /// In programs.
    pub user: f64,
    /// In the kernel, interrupts too.
    pub kernel: f64,
    /// Doing nothing, waiting for I/O too.
    pub idle: f64,
}
