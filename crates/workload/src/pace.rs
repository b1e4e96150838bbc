//! Rate at which operations start, and the limits that end a workload.

use plumb_block::Nanos;
use serde::{Deserialize, Serialize};

/// Rate of starts, summed over all workers of a job on a target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Operations start as soon as the depth allows.
    Unlimited,
    /// A fixed schedule. An operation that could not start in time starts late and its lateness is measured;
    /// the schedule does not shift.
    Scheduled {
        /// Amount per second.
        amount: Amount,
        /// Distribution of the intervals.
        arrival: Arrival,
    },
}

/// Amount per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Operations per second.
    Iops(f64),
    /// Bytes per second: each operation takes time in proportion to its length.
    BytesPerSecond(f64),
}

/// Distribution of the intervals between the intended starts of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// Equal intervals.
    Fixed,
    /// Exponentially distributed intervals, as with many independent clients (a Poisson process).
    Poisson,
}

impl Rate {
    /// Creates a rate of `per_second` operations per second at equal intervals.
    pub const fn iops(per_second: f64) -> Self {
        Self::Scheduled { amount: Amount::Iops(per_second), arrival: Arrival::Fixed }
    }
}

/// Bursts: a number of operations of a worker, followed by a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Operations of each worker, at least 1.
    pub operations: u32,
    /// Time from the start of the last operation of a burst to the start of the next burst.
    pub pause: Nanos,
}

/// Limits that end a workload, at the first one reached. Requests in flight are then awaited, and a pending
/// flush is executed. A workload without limits would never end and is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Time since the start of the measurement after which no read, write or trim starts.
    pub duration: Option<Nanos>,
    /// Number of reads, writes and trims of all workers together. Flushes do not count.
    pub operations: Option<u64>,
    /// Number of bytes moved by all workers together.
    pub bytes: Option<u64>,
}

impl Stop {
    /// Shortest possible duration, for spans that measure nothing.
    pub const NO_TIME: Nanos = Nanos(1);

    /// Creates a time limit.
    pub const fn after(duration: Nanos) -> Self {
        Self { duration: Some(duration), operations: None, bytes: None }
    }

    /// Creates a limit on the number of operations.
    pub const fn operations(count: u64) -> Self {
        Self { duration: None, operations: Some(count), bytes: None }
    }
}
