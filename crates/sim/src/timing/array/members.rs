//! The members behind a controller's cache, as its [`Mechanics`].
//!
//! Data that the controller counts as written must have left the members' caches too, or its battery would
//! protect the wrong half. The controller therefore disables member caches that a power cut would empty, as
//! such controllers do. Data answered by a member is then on its medium or in a protected cache.

use plumb_block::{Nanos, Op};

use super::timing::ArrayTiming;
use crate::command::{Command, CommandId};
use crate::timing::mechanics::{Job, JobId, JobKind, Mechanics};
use crate::timing::{Event, Timing};

/// Number of concurrent accesses for each column: the depth of a native command queue.
const COLUMN_DEPTH: usize = 32;

/// An array without a cache of its own, behind a controller's cache.
pub struct Members {
    array: ArrayTiming,
    parallelism: usize,
    /// Buffer for events of the members, kept to reuse its memory.
    heard: Vec<Event>,
}

impl Members {
    /// Creates the members of `array` with their volatile caches disabled.
    pub fn new(mut array: ArrayTiming) -> Self {
        array.set_wce(Nanos::ZERO, false);
        Self { parallelism: array.columns as usize * COLUMN_DEPTH, array, heard: Vec::new() }
    }
}

impl Mechanics for Members {
    fn submit(&mut self, now: Nanos, job: Job) {
        let op = match job.kind {
            JobKind::Read => Op::Read,
            JobKind::Write => Op::Write { fua: false },
            JobKind::Trim => Op::Discard,
        };
        self.array.submit(now, Command { id: CommandId(job.id.0), op, sectors: job.sectors });
    }

    /// Does nothing, since members do not distinguish urgency.
    fn hurry(&mut self, _now: Nanos, _job: JobId) {}

    fn next_event(&self) -> Option<Nanos> {
        self.array.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<(JobId, Nanos)>) {
        self.array.advance(now, &mut self.heard);
        done.extend(self.heard.drain(..).filter_map(|event| match event {
            Event::Completed { id, at } => Some((JobId(id.0), at)),
            Event::Persisted { .. } => None,
        }));
    }

    fn parallelism(&self) -> usize {
        self.parallelism
    }

    fn power_cut(&mut self, now: Nanos) {
        self.array.power_cut(now);
    }
}
