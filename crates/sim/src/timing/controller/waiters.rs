//! Waiters for runs that have to leave the cache.

use super::slots::Slot;
use crate::command::CommandId;

pub(super) type WaiterId = u32;

/// Action to perform when all awaited runs have left the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    /// Report an answered command as persisted.
    Persisted(CommandId),
    /// Answer a command.
    Write(Slot),
    /// Answer a flush.
    Flush(Slot),
}

/// Waiters by number, each with the number of runs that it waits for.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiters {
    waiters: Vec<(u32, Waiter)>,
    free: Vec<WaiterId>,
}

impl Waiters {
    /// Adds a waiter for `runs` runs. Returns its number.
    pub(super) fn add(&mut self, runs: u32, waiter: Waiter) -> WaiterId {
        if let Some(id) = self.free.pop() {
            self.waiters[id as usize] = (runs, waiter);
            return id;
        }
        self.waiters.push((runs, waiter));
        (self.waiters.len() - 1) as WaiterId
    }

    /// Sets the number of runs that the waiter `id` waits for.
    pub(super) fn await_runs(&mut self, id: WaiterId, runs: u32) {
        self.waiters[id as usize].0 = runs;
    }

    /// Records that one of the runs has left the cache. Returns the waiter if it was the last.
    pub(super) fn run_destaged(&mut self, id: WaiterId) -> Option<Waiter> {
        let (runs, waiter) = &mut self.waiters[id as usize];
        *runs -= 1;
        (*runs == 0).then(|| {
            self.free.push(id);
            *waiter
        })
    }

    /// Removes a waiter that waits for nothing.
    pub(super) fn remove(&mut self, id: WaiterId) {
        self.free.push(id);
    }

    pub(super) fn clear(&mut self) {
        self.waiters.clear();
        self.free.clear();
    }
}
