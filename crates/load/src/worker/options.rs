//! Options of a worker apart from its workload, and the result of each of its steps.

use plumb_block::Nanos;
use plumb_workload::{Cursor, RecordedEvents, Share};

/// Options of a worker apart from its workload.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Share of the workload for this worker.
    pub share: Share,
    /// Time limit for the answer to a request, after which the run ends.
    pub answer_within: Nanos,
    /// Position shared by interlocked workers.
    pub cursor: Cursor,
    /// True if the worker counts a failed read, write or trim and continues.
    pub continue_on_error: bool,
    /// True if the worker counts a refused write (EINVAL, EOPNOTSUPP) and continues: the kernel cannot send
    /// every untorn write as one.
    pub counts_refusals: bool,
    /// Delay of the worker after the start of the run.
    pub start_delay: Nanos,
    /// Events of a trace, which replace the operations that the workload would generate: see
    /// [`RecordedEvents::stand_in`].
    pub replay: Option<RecordedEvents>,
}

impl Default for WorkerOptions {
    /// Returns the options for the whole workload, with a limit of 30 s: the default time limit of Linux for
    /// a SCSI command.
    fn default() -> Self {
        Self {
            share: Share::WHOLE,
            answer_within: Nanos::secs(30),
            cursor: Cursor::default(),
            continue_on_error: false,
            counts_refusals: false,
            start_delay: Nanos::ZERO,
            replay: None,
        }
    }
}

/// Result of a step, and the next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A request was submitted or completed: step again.
    Progressed,
    /// Requests are in flight and none completed. In real time the queue has already waited: step again. In
    /// virtual time the clock must move, to `until` at the latest.
    Waiting {
        /// Time at which the worker has work even without a completion.
        until: Nanos,
    },
    /// No request is in flight and none starts before `until`.
    Idle {
        /// Start of the next request.
        until: Nanos,
    },
    /// All work is done.
    Done,
}
