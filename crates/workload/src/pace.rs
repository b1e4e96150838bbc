//! Rate at which operations start, and the limits that end a workload.

use plumb_block::Nanos;
use serde::{Deserialize, Serialize};

/// How fast operations start, over all workers of a job on a target together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Operations start as soon as the depth allows.
    Unlimited,
    /// Schedule made in advance. An operation that could not start in time starts late and its lateness is
    /// measured; the schedule does not move.
    Scheduled {
        /// How many.
        amount: Amount,
        /// Distribution of the intervals.
        arrival: Arrival,
    },
}

/// How many a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Operations per second.
    Iops(f64),
    /// Bytes per second: each operation takes as much of the schedule as it is long.
    BytesPerSecond(f64),
}

/// Distribution of the intervals between the intended starts of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// Equal ones.
    Fixed,
    /// Exponentially distributed ones, as when many independent clients ask (a Poisson process).
    Poisson,
}

impl Rate {
    /// Returns a rate of `per_second` operations per second at equal intervals.
    pub const fn iops(per_second: f64) -> Self {
        Self::Scheduled { amount: Amount::Iops(per_second), arrival: Arrival::Fixed }
    }
}

/// Bursts: so many operations of a worker, then nothing new for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Operations of each worker, at least 1.
    pub operations: u32,
    /// Time from the start of the last operation of a burst to the start of the next burst.
    pub pause: Nanos,
}

/// When a workload is over: at the first of these that comes; all `None` is never, which is
/// refused. Requests in flight then are waited
/// for, and a flush that is due is carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// No read, write or trim starts after this time since the measurement began.
    pub duration: Option<Nanos>,
    /// Number of reads, writes and trims to do, over all workers together. Flushes do not count.
    pub operations: Option<u64>,
    /// Number of bytes to move, over all workers together.
    pub bytes: Option<u64>,
}

impl Stop {
    /// A time in which nothing is measured: as near to none as a workload can say.
    pub const NO_TIME: Nanos = Nanos(1);

    /// Creates a limit of time.
    pub const fn after(duration: Nanos) -> Self {
        Self { duration: Some(duration), operations: None, bytes: None }
    }

    /// Creates a limit of operations.
    pub const fn operations(count: u64) -> Self {
        Self { duration: None, operations: Some(count), bytes: None }
    }
}
