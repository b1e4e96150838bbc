//! What happens between the host and the members, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A piece comes to a member.
    Arrive { place: u32, member: u32, first: u64, count: u64 },
    /// An answer comes back from a member of `column`.
    Return { place: u32, column: u32 },
    /// The host is told.
    Answer { place: u32 },
}

/// Steps to come; of two at one time the one that was decided on first is first.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    steps: BinaryHeap<Reverse<(u64, u64, Step)>>,
    order: u64,
}

impl Agenda {
    pub(super) fn put(&mut self, at: u64, step: Step) {
        self.order += 1;
        self.steps.push(Reverse((at, self.order, step)));
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<u64> {
        self.steps.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn take(&mut self) -> Option<(u64, Step)> {
        self.steps.pop().map(|Reverse((at, _, step))| (at, step))
    }

    pub(super) fn clear(&mut self) {
        self.steps.clear();
    }
}
