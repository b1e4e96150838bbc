//! The load generator: workers that run a workload on devices, in real or in virtual time.
//!
//! A [`Worker`] is a state machine: each [`step`](Worker::step) submits the requests that may start, polls
//! its queue, and records the completions. It has no thread and reads no clock, so the same worker runs on a
//! disk in real time and on a simulated one in virtual time ([`run_teams`]). It does not depend on the kind
//! of device.
//!
//! Guarantees to the reader of the figures:
//!
//! - Every operation whose intended start is in the window is counted, whenever it completes. Without a
//!   cool-down the window ends with the last of them, so the slowest is never left out.
//! - With a rate limit both the service time and the time since the intended start are recorded, so a backlog
//!   is visible.
//! - A write is never reported as durable before the flush after it has succeeded. Writes, flushes, and both
//!   together are counted and timed separately.
//! - The first failed request ends the run, unless failures are to be counted. No result of a flush is
//!   ignored: a failed one always ends the run.

mod batch;
mod content;
pub mod fault;
pub mod flush;
pub mod in_flight;
pub mod ledger;
pub mod observer;
pub mod outcome;
mod phases;
pub mod progress;
mod rate_watch;
pub mod read_back;
mod recorder;
mod run_options;
pub mod runner;
mod share;
pub mod span;
pub mod team;
#[cfg(test)]
mod tests;
pub mod window;
pub mod worker;

pub use content::stamp_seed;
pub use fault::{Error, Fault, FaultPlace, UnsupportedRequest};
pub use flush::{FlushError, flush};
pub use in_flight::Kind;
pub use ledger::Ledger;
pub use observer::{Event, Observer, Phase, TargetNow};
pub use outcome::{Direction, Ending, Failure, LoadOutcome, Transactions};
pub use progress::{LiveLatency, Progress, Totals};
pub use read_back::{ReadBack, read_back};
pub use run_options::RunOptions;
pub use runner::run_teams;
pub use span::{CpuUse, Part, ProcessorUse, SpanResult, TargetResult, ThreadResult};
pub use team::{Prepare, SharedDepth, Team, TeamOutcome, TeamsFailure, WorkerOutcome};
pub use window::Window;
pub use worker::{Step, Worker, WorkerOptions};

/// Largest error of a recorded latency with many requests in flight: the first completion of a batch waits at
/// most this long for the others. Requests sent one at a time are timed individually. Stalls are the
/// exception, and are counted: [`LoadOutcome::latencies_late`].
pub const LATENCY_EXCESS_MAX: plumb_block::Nanos = batch::Batch::EXCESS_MAX;
