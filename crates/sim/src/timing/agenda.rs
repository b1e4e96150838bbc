//! Events that are going to happen inside a drive, by time.

use std::collections::BTreeMap;

/// Things that are going to happen; of two at one time the one that was decided on first is first.
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
    /// Puts `due` down for `at`.
    pub(super) fn put(&mut self, at: u64, due: D) {
        self.order += 1;
        self.due.insert((at, self.order), due);
    }

    /// Returns when something happens next.
    pub(super) fn next(&self) -> Option<u64> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the earliest event that is due at `now` or before.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<(u64, D)> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= now)?;
        let at = first.key().0;
        Some((at, first.remove()))
    }

    pub(super) fn clear(&mut self) {
        self.due.clear();
    }
}
