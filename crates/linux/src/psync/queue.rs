//! A queue that executes its requests in `poll`, in the order of submission.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Errno, Nanos, Op, Outcome, Payload, Pool, Queue, QueueFull, QueueOptions, Request,
    Result, Wait,
};

use super::call::{self, Memory};
use crate::file::scratch::Scratch;
use crate::file::work::{Call, Progress, Work};
use crate::file::{Target, TargetKind};
use crate::mapped::Mapping;

/// How the calls of a queue are made.
pub(crate) enum Way {
    /// pread(2) and pwrite(2) through this description.
    Positioned(OwnedFd),
    /// Copies from and to this mapping.
    Mapped(Mapping),
}

impl Way {
    fn make(&mut self, target: &Target, call: Call, memory: Memory<'_>) -> std::result::Result<u64, Errno> {
        match self {
            Self::Positioned(file) => call::make(file.as_fd(), target.file(), call, memory),
            Self::Mapped(mapping) => mapping.make(target, call, memory),
        }
    }
}

/// A queue that makes one call after the other.
pub(crate) struct SerialQueue {
    target: Arc<Target>,
    way: Way,
    waiting: VecDeque<Request>,
    depth: usize,
    pool: Pool,
    scratch: Scratch,
}

impl SerialQueue {
    pub(crate) fn new(target: Arc<Target>, way: Way, options: QueueOptions) -> Self {
        debug_assert!(matches!(target.kind, TargetKind::RegularFile | TargetKind::BlockDevice));
        let depth = options.depth as usize;
        Self {
            target,
            way,
            waiting: VecDeque::with_capacity(depth),
            depth,
            pool: options.pool,
            scratch: Scratch::default(),
        }
    }

    fn execute(&mut self, mut request: Request) -> Completion {
        let target = &self.target;
        let admitted = Work::admit(&request, &target.grid, target.blocks(), target.latched_errno());
        let admitted = admitted.and_then(|work| self.lend(&request).map(|()| work));
        // Making the bytes is no part of the write.
        let submitted_at = self.target.clock.now();
        let outcome = match admitted {
            Ok(work) => self.carry_out(work, &mut request),
            Err(errno) => Outcome::Failed(errno),
        };
        Completion {
            tag: request.tag,
            outcome,
            submitted_at,
            completed_at: self.target.clock.now(),
            payload: request.payload,
        }
    }

    /// Gives a request the memory that it did not bring, filled with what it writes.
    fn lend(&mut self, request: &Request) -> std::result::Result<(), Errno> {
        let length = Bytes(self.target.logical_block().0 * request.range.nlb);
        let block = self.target.logical_block().0 as usize;
        match (request.op, &request.payload) {
            (Op::Read, Payload::None) => self.scratch.at_least(length, &self.pool).map(drop),
            (Op::Write { .. }, Payload::Pattern(pattern)) => {
                let bytes = self.scratch.at_least(length, &self.pool);
                bytes.map(|bytes| pattern.fill(block, &mut bytes[..length.0 as usize]))
            }
            _ => Ok(()),
        }
    }

    fn carry_out(&mut self, mut work: Work, request: &mut Request) -> Outcome {
        loop {
            let memory = match (&mut request.payload, self.scratch.bytes(), request.op) {
                (Payload::Into(buffer), _, _) => Memory::Into(buffer),
                (Payload::Bytes(buffer), _, _) => Memory::From(buffer),
                (_, Some(scratch), Op::Read) => Memory::Into(scratch),
                (_, Some(scratch), _) => Memory::From(scratch),
                (_, None, _) => Memory::None,
            };
            match work.answered(self.way.make(&self.target, work.call(), memory)) {
                Progress::Again => {}
                // Another queue may have learnt of a failed flush while this one ran.
                Progress::Ended(Outcome::Done) if request.op == Op::Flush => {
                    break self.target.latched_errno().map_or(Outcome::Done, Outcome::Failed);
                }
                Progress::Ended(outcome) => break outcome,
                Progress::Latching(errno) => {
                    self.target.latch(errno);
                    break Outcome::Failed(errno);
                }
            }
        }
    }
}

impl Queue for SerialQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.waiting.len() >= self.depth {
            return Err(QueueFull(request));
        }
        self.waiting.push_back(request);
        Ok(())
    }

    /// Executes as many requests as are waited for, and one if none are: nothing else would ever execute it. The
    /// deadline is looked at between requests. A request that is answered after its own deadline has its answer all
    /// the same; one whose deadline passed before its turn came is not executed any more.
    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let mut count = 0;
        while count < wait.completions.max(1) as usize {
            let Some(request) = self.waiting.pop_front() else { break };
            let now = self.target.clock.now();
            completions.push(if request.deadline.is_some_and(|deadline| deadline < now) {
                unanswered(request, now)
            } else {
                self.execute(request)
            });
            count += 1;
            if wait.deadline.is_some_and(|deadline| self.target.clock.now() >= deadline) {
                break;
            }
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn unanswered(request: Request, now: Nanos) -> Completion {
    Completion {
        tag: request.tag,
        outcome: Outcome::Unknown,
        submitted_at: now,
        completed_at: now,
        payload: request.payload,
    }
}
