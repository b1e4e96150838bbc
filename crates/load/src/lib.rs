//! The load generator: workers that run a workload on devices, in real or in virtual time.
//!
//! A [`Worker`] is a state machine: each [`step`](Worker::step) submits what may start, polls its queue, and
//! records what completed. It owns no thread and reads no clock, so the same worker runs against a disk in
//! real time and against a simulated one in virtual time ([`run_teams`]). It knows no kind of device.
//!
//! What is promised to whoever reads the figures:
//!
//! - Every operation that was meant to start in the window is counted, whenever it completes, and without a
//!   cool-down the window ends with the last of them: the slowest is never cut off.
//! - With a rate limit both the service time and the time since the intended start are recorded; a backlog
//!   shows.
//! - A write is never reported as durable before the flush after it has succeeded, and writes, flushes and
//!   the two together are counted and timed apart.
//! - The first request that fails ends the run, unless failures are to be counted. No result of a flush is
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

/// Largest error of a recorded latency where many requests are in flight at once: the first completion of a
/// batch waits at most this long for the others. Requests sent one at a time are timed one by one. Stalls are
/// the exception, and counted: [`LoadOutcome::latencies_late`].
pub const LATENCY_EXCESS_MAX: plumb_block::Nanos = batch::Batch::EXCESS_MAX;
