//! The members behind a controller's cache, as its [`Mechanics`].
//!
//! What the controller counts as written must be out of the members' caches too, or its battery would keep
//! the wrong half. So it turns off those that a power cut would empty, as such controllers do, and whatever a
//! member answers is on its medium or in a cache that outlives the cut.

use plumb_block::{Nanos, Op};

use super::timing::ArrayTiming;
use crate::command::{Command, CommandId};
use crate::timing::mechanics::{Job, JobId, JobKind, Mechanics};
use crate::timing::{Event, Timing};

/// Number of accesses that each column makes use of: as many as a queue of native command queueing holds.
const COLUMN_DEPTH: usize = 32;

/// An array without a cache of its own, for the one in front of it.
pub struct Members {
    array: ArrayTiming,
    parallelism: usize,
    /// Kept for its memory.
    heard: Vec<Event>,
}

impl Members {
    /// Returns the members of `array`, their volatile caches off.
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

    /// Members know of no urgency.
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
