//! Scheduled events inside a drive, by time.

use std::collections::BTreeMap;

/// Scheduled events; of two at the same time the one scheduled first comes first.
#[derive(Debug, Clone)]
pub(super) struct Agenda<D> {
    due: BTreeMap<(u64, u64), D>,
    order: u64,
}

impl<D> Default for Agenda<D> {
    fn default() -> Self {
        Self { due: BTreeMap::new(), order: 0 }
    }
}

impl<D> Agenda<D> {
    /// Schedules `due` at `at`.
    pub(super) fn put(&mut self, at: u64, due: D) {
        self.order += 1;
        self.due.insert((at, self.order), due);
    }

    /// Returns the time of the next event.
    pub(super) fn next(&self) -> Option<u64> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the earliest event due at or before `now`.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<(u64, D)> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= now)?;
        let at = first.key().0;
        Some((at, first.remove()))
    }

    pub(super) fn clear(&mut self) {
        self.due.clear();
    }
}
