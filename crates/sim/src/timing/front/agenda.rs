//! What will happen inside a drive at a known time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slots::Slot;

/// Something that happens by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The controller has read a command, and has its data if it is a write.
    Admitted(Slot),
    /// The data of a read are with the host.
    Delivered(Slot),
    /// Dirty data have waited long enough.
    Destage,
}

/// Things that will happen, in the order of time; at the same time in the order in which they were noted.
#[derive(Debug, Clone, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u64, Due)>>,
    noted: u64,
}

impl Agenda {
    pub(super) fn note(&mut self, at: u64, due: Due) {
        self.noted += 1;
        self.heap.push(Reverse((at, self.noted, due)));
    }

    pub(super) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn take(&mut self) -> Option<(u64, Due)> {
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }
}
