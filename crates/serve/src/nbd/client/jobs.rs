//! Requests accepted by a connection, each a job of one or more commands.
//!
//! ```text
//!           taken             staged               all pieces answered
//!   request ─────► to be staged ─────► under way ─────────────────────► completion in the mail of its port
//!                        ▲                 │  │ deadline: completion Unknown; the job and its memory stay
//!                        └ flush for want ─┘  │ queue dropped: nobody wants it; its memory is let go
//!                          of FUA             └ connection lost: Unknown, or ENOTCONN if nothing of it was staged
//! ```

use plumb_block::{Completion, Errno, Nanos, Op, Outcome, Payload, Request};

use super::export::Plan;
use super::replies::Landing;
use crate::nbd::wire::{BlockDescriptor, Command};
use crate::slab::Slab;

/// Number of a queue at a connection.
pub(super) type PortId = u32;

/// Recipient of the end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobWaiter {
    /// The queue.
    Yes,
    /// None any more: an unknown completion was sent; the queue counts the job until it ends.
    TooLate,
    /// The queue is gone.
    No,
}

/// Part of a job being executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The request itself.
    Itself,
    /// The flush after it.
    Flush,
}

/// A request accepted by a connection.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) port: PortId,
    pub(super) request: Request,
    pub(super) plan: Plan,
    pub(super) wanted: JobWaiter,
    pub(super) phase: Phase,
    pub(super) submitted_at: Option<Nanos>,
    /// Number of bytes already turned into commands.
    pub(super) staged: u64,
    /// Number of unanswered commands.
    pub(super) pieces: u32,
    pub(super) failed: Option<Errno>,
    /// Received block status.
    pub(super) status: Vec<BlockDescriptor>,
}

impl Job {
    pub(super) fn new(port: PortId, request: Request, plan: Plan) -> Self {
        Self {
            port,
            request,
            plan,
            wanted: JobWaiter::Yes,
            phase: Phase::Itself,
            submitted_at: None,
            staged: 0,
            pieces: 0,
            failed: None,
            status: Vec::new(),
        }
    }

    /// Returns true if its next command is a flush.
    pub(super) fn is_at_flush(&self) -> bool {
        self.phase == Phase::Flush || self.plan.command == Command::FLUSH
    }

    /// Returns the offset in the request, and the length, of the next piece.
    pub(super) fn next_piece(&self) -> (u64, u64) {
        (self.staged, (self.plan.length - self.staged).min(self.plan.piece_max))
    }

    /// Returns true if all commands of this phase are staged.
    pub(super) fn is_staged(&self) -> bool {
        self.failed.is_some() || self.staged == self.plan.length
    }

    /// Returns true if the server may have seen any of it.
    pub(super) fn is_begun(&self) -> bool {
        self.submitted_at.is_some()
    }

    pub(super) fn into_completion(self, outcome: Outcome, now: Nanos) -> Completion {
        let submitted_at = self.submitted_at.unwrap_or(now);
        Completion { submitted_at, ..self.request.completed(outcome, now) }
    }
}

/// Jobs of one connection, by number.
pub(super) type Jobs = Slab<Job>;

impl Landing for Jobs {
    #[inline]
    fn memory(&mut self, job: u32, offset: u64, length: usize) -> Option<&mut [u8]> {
        let job = self.get(job)?;
        let start = usize::try_from(offset.checked_sub(job.plan.offset)?).ok()?;
        match &mut job.request.payload {
            Payload::Into(buffer) if job.request.op == Op::Read => {
                buffer.get_mut(start..start.checked_add(length)?)
            }
            _ => None,
        }
    }
}
