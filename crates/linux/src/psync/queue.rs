//! A queue that executes its requests in `poll`, in the order of submission.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use plumb_block::{
    Completion, Errno, Op, Outcome, Payload, Pool, Queue, QueueFull, QueueOptions, Request, Result, Wait,
};

use super::call::{self, Memory};
use crate::file::scratch::Scratch;
use crate::file::work::{Call, Work};
use crate::file::{Target, TargetKind};
use crate::mapped::Mapping;

/// Way to perform the calls of a queue.
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

/// A queue that performs one call at a time.
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
        let admitted = admitted.and_then(|work| {
            let block = target.logical_block();
            let lent =
                self.scratch.lend(request.op, &request.payload, block * request.range.nlb, block, &self.pool);
            lent.map(|()| work)
        });
        // The time to generate a pattern does not count as part of the write.
        let submitted_at = self.target.clock.now();
        let outcome = match admitted {
            Ok(work) => self.carry_out(work, &mut request),
            Err(errno) => Outcome::Failed(errno),
        };
        Completion { submitted_at, ..request.completed(outcome, self.target.clock.now()) }
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
            let progress = work.answered(self.way.make(&self.target, work.call(), memory));
            if let Some(outcome) = self.target.ended(request.op, progress) {
                break outcome;
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

    /// Executes as many requests as `wait` asks for, and at least one, because nothing else executes them.
    /// The deadline of the wait is checked between requests. A request executed past its own deadline still
    /// reports its result; one whose deadline has passed before its turn is not executed.
    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let mut count = 0;
        while count < wait.completions.max(1) as usize {
            let Some(request) = self.waiting.pop_front() else { break };
            let now = self.target.clock.now();
            completions.push(if request.deadline.is_some_and(|deadline| deadline < now) {
                request.completed(Outcome::Unknown, now)
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
