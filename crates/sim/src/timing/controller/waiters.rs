//! Waiters for runs that have to leave the cache.

use super::slots::Slot;
use crate::command::CommandId;

pub(super) type WaiterId = u32;

/// Action that is carried out when all runs that it waits for are out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    /// An answered command is reported as persisted.
    Persisted(CommandId),
    /// A command is answered.
    Write(Slot),
    /// A flush is answered.
    Flush(Slot),
}

/// Waiters by number, each with how many runs it waits for.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiters {
    waiters: Vec<(u32, Waiter)>,
    free: Vec<WaiterId>,
}

impl Waiters {
    /// Returns a number for one that waits for `runs` runs.
    pub(super) fn add(&mut self, runs: u32, waiter: Waiter) -> WaiterId {
        if let Some(id) = self.free.pop() {
            self.waiters[id as usize] = (runs, waiter);
            return id;
        }
        self.waiters.push((runs, waiter));
        (self.waiters.len() - 1) as WaiterId
    }

    /// Makes the waiter `id` wait for `runs` runs.
    pub(super) fn await_runs(&mut self, id: WaiterId, runs: u32) {
        self.waiters[id as usize].0 = runs;
    }

    /// Notes that one of the runs is out of the cache; returns the waiter if it was the last.
    pub(super) fn run_destaged(&mut self, id: WaiterId) -> Option<Waiter> {
        let (runs, waiter) = &mut self.waiters[id as usize];
        *runs -= 1;
        (*runs == 0).then(|| {
            self.free.push(id);
            *waiter
        })
    }

    /// Takes back a number of one that waits for nothing.
    pub(super) fn remove(&mut self, id: WaiterId) {
        self.free.push(id);
    }

    pub(super) fn clear(&mut self) {
        self.waiters.clear();
        self.free.clear();
    }
}
