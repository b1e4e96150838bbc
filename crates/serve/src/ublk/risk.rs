//! Data that would be lost if this process were killed now: acknowledged writes in its cache that no flush
//! has made durable.
//!
//! The kernel does not notice such a loss: it assumes the writes to be in the drive's cache, and a flush
//! answered by the next server would make it believe that they are durable. So the record is marked before
//! the first write after a flush is acknowledged, and cleared only when a flush has covered all writes. A
//! server that takes over from a record that is not clean never lets a flush succeed.
//!
//! Invariant: while the record is clean, every acknowledged write is durable.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::records::Record;

/// State in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Everything acknowledged is durable.
    Clean,
    /// Some acknowledged data may only be in the cache.
    Dirty,
    /// A flush has failed, and none has succeeded since.
    Failed,
}

impl State {
    pub(super) const fn letter(self) -> char {
        match self {
            Self::Clean => 'c',
            Self::Dirty => 'd',
            Self::Failed => 'f',
        }
    }

    pub(super) fn from_letter(letter: char) -> Option<Self> {
        [Self::Clean, Self::Dirty, Self::Failed].into_iter().find(|state| state.letter() == letter)
    }
}

/// Number of acknowledged writes when a flush was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AcknowledgedWrites(u64);

/// Record of the risk, over all queues.
#[derive(Debug)]
pub(super) struct Risk {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    record: Record,
    state: State,
    acknowledged: u64,
}

impl Risk {
    /// Creates the state from `record`.
    pub(super) fn new(record: Record) -> Self {
        let state = record.state;
        Self { inner: Mutex::new(Inner { record, state, acknowledged: 0 }) }
    }

    /// Records that a write that is not durable is about to be acknowledged.
    ///
    /// # Errors
    /// If that cannot be recorded; then it must not be acknowledged.
    pub(super) fn before_acknowledging(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.acknowledged += 1;
        if inner.state == State::Clean {
            inner.record.mark(State::Dirty)?;
            inner.state = State::Dirty;
        }
        Ok(())
    }

    /// Records that a flush is about to be sent.
    pub(super) fn before_flushing(&self) -> AcknowledgedWrites {
        AcknowledgedWrites(self.inner().acknowledged)
    }

    /// Records that the flush sent at `covered` has succeeded.
    pub(super) fn flushed(&self, covered: AcknowledgedWrites) {
        let mut inner = self.inner();
        let state = match inner.state {
            State::Clean => State::Clean,
            _ if inner.acknowledged == covered.0 => State::Clean,
            _ => State::Dirty,
        };
        // A state that cannot be recorded stays as it is, which errs on the safe side.
        if inner.state != state && inner.record.mark(state).is_ok() {
            inner.state = state;
        }
    }

    /// Records that a flush has failed.
    pub(super) fn failed(&self) {
        let mut inner = self.inner();
        inner.state = State::Failed;
        // If that fails, the record of a written cache stays dirty, which has the same effect.
        inner.record.mark(State::Failed).unwrap_or_default();
    }

    /// Removes the record of a device that is gone.
    pub(super) fn forget(&self) -> crate::error::Result<()> {
        self.inner().record.remove()
    }

    /// Appends a line to the record.
    pub(super) fn append(&self, line: &str) -> crate::error::Result<()> {
        self.inner().record.append(line)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::Base;
    use super::*;
    use plumb_state::Owner;

    /// Runs `steps` with a function that returns the record that the next server would find.
    fn with_record(steps: impl FnOnce(&Risk, &dyn Fn() -> String)) {
        let directory = tempfile::tempdir().unwrap();
        let base = Base::open(Some(&directory.path().join("ublk"))).unwrap();
        let locked = base.lock().unwrap();
        let risk = Risk::new(base.create(0, "a", "b", &locked).unwrap());
        let path = directory.path().join("ublk/0");
        steps(&risk, &|| std::fs::read_to_string(&path).unwrap()[..1].to_owned());
        drop(risk);
        assert!(matches!(base.find(0, &locked).unwrap(), Owner::Dead(_)));
    }

    #[test]
    fn a_write_is_at_risk_until_a_flush_that_was_sent_after_it() {
        with_record(|risk, state| {
            assert_eq!(state(), "c");
            risk.before_acknowledging().unwrap();
            assert_eq!(state(), "d");
            let early = risk.before_flushing();
            risk.before_acknowledging().unwrap();
            risk.flushed(early);
            assert_eq!(state(), "d", "the second write was acknowledged while the flush was on its way");
            let all = risk.before_flushing();
            risk.flushed(all);
            assert_eq!(state(), "c");
            risk.flushed(early);
            assert_eq!(state(), "c", "an older flush that comes late takes nothing back");
        });
    }

    #[test]
    fn a_failed_flush_is_remembered_until_one_succeeds() {
        with_record(|risk, state| {
            risk.before_acknowledging().unwrap();
            risk.failed();
            assert_eq!(state(), "f");
            risk.before_acknowledging().unwrap();
            assert_eq!(state(), "f", "a write changes nothing about it");
            risk.flushed(risk.before_flushing());
            assert_eq!(state(), "c");
        });
    }
}
