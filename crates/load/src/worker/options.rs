//! Options of a worker beside its workload, and the result of each of its steps.

use plumb_block::Nanos;
use plumb_workload::{Cursor, RecordedEvents, Share};

/// How a worker behaves apart from its workload.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Part of the workload that is this worker's.
    pub share: Share,
    /// Time that a request may go without an answer before the run is ended.
    pub answer_within: Nanos,
    /// The position of interlocked workers, of which all hold the same.
    pub cursor: Cursor,
    /// Go on after a failed read, write or trim, and count it.
    pub continue_on_error: bool,
    /// True if the worker counts a refused write (EINVAL, EOPNOTSUPP) and continues: the kernel cannot send
    /// every untorn write as one.
    pub counts_refusals: bool,
    /// Delay of the worker after the start of the run.
    pub start_delay: Nanos,
    /// The events of a trace, in place of what the workload generates, which only stands for them: see
    /// [`RecordedEvents::stand_in`].
    pub replay: Option<RecordedEvents>,
}

impl Default for WorkerOptions {
    /// Returns all of the workload, and 30 s: as long as Linux by default gives a command to a SCSI disk.
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

/// Result of a step, and what to do before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Something was submitted or completed: step again.
    Progressed,
    /// Requests are in flight and none completed. In real time the queue has already waited: step again. In
    /// virtual time the world must move, to `until` at the latest.
    Waiting {
        /// When the worker has something to do even if nothing completes.
        until: Nanos,
    },
    /// Nothing is in flight and nothing is to start before `until`.
    Idle {
        /// When.
        until: Nanos,
    },
    /// All is done.
    Done,
}
