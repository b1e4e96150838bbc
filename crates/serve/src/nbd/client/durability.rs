//! What a flush may vouch for, across connections and servers.
//!
//! All connections of a device are made together, before the first request, and belong to one *epoch*. The first of them
//! is asked something after the last was made, so one server has them all; a server that says CAN_MULTI_CONN promises
//! that a flush on one covers what all of them were answered. So within an epoch a good flush vouches for every write
//! that was acknowledged before it.
//!
//! When any connection is lost, the epoch is over and all its connections are given up. The next ones may lead to a
//! server that was restarted, or to a machine that was, and that lost its volatile cache; and a flush in flight may
//! have failed without anyone hearing of it. Nothing in the protocol tells that apart from a mere network failure. So a
//! write that was acknowledged in one epoch can be vouched for by a flush of that epoch only:
//!
//! - if at the end of an epoch nothing was acknowledged since the last good flush, nothing is in doubt;
//! - otherwise the device is in doubt, and the next flush fails with ECONNRESET and latches it.
//!
//! What was in flight is unknown, not acknowledged, and is nobody's debt. Writes with FUA of the server's own are
//! durable by themselves and never in doubt.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_block::{Errno, Latch, Nanos};

/// Connection reset by peer: what a flush fails with that cannot vouch for what was acknowledged before a loss.
pub(super) const IN_DOUBT: Errno = Errno(104);

/// The number of a set of connections; the first is 0.
pub(super) type Epoch = u64;

/// The books of one device.
#[derive(Default)]
pub(super) struct Durability(Mutex<State>);

#[derive(Default)]
struct State {
    epoch: Epoch,
    /// How many requests that change blocks and are not durable by themselves were acknowledged.
    acknowledged: u64,
    /// How many of them a good flush covers.
    durable: u64,
    is_in_doubt: bool,
    latch: Option<Latch>,
}

impl Durability {
    fn state(&self) -> MutexGuard<'_, State> {
        // The fields are numbers and flags, each right by itself, so a panic elsewhere leaves nothing half-done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The epoch now.
    pub(super) fn epoch(&self) -> Epoch {
        self.state().epoch
    }

    /// `count` changes are about to be acknowledged that connections of `epoch` answered.
    pub(super) fn acknowledge(&self, epoch: Epoch, count: u64) {
        let mut state = self.state();
        state.acknowledged += count;
        // The answer came before the loss and is read after it.
        state.is_in_doubt |= epoch != state.epoch;
    }

    /// A flush is about to be sent: how much it covers if it ends well.
    pub(super) fn begin_flush(&self, now: Nanos) -> Result<u64, Errno> {
        let mut state = self.state();
        if state.is_in_doubt {
            state.latch.get_or_insert(Latch { errno: IN_DOUBT, at: now });
        }
        match state.latch {
            Some(latch) => Err(latch.errno),
            None => Ok(state.acknowledged),
        }
    }

    /// A flush that covers `covered` ended well, unless another has failed meanwhile.
    pub(super) fn flushed(&self, covered: u64) -> Result<(), Errno> {
        let mut state = self.state();
        match state.latch {
            Some(latch) => Err(latch.errno),
            None => {
                state.durable = state.durable.max(covered);
                Ok(())
            }
        }
    }

    /// A flush failed.
    pub(super) fn flush_failed(&self, errno: Errno, now: Nanos) {
        self.state().latch.get_or_insert(Latch { errno, at: now });
    }

    /// A connection of `epoch` was lost. Whether that ended the epoch: not if it had ended before.
    pub(super) fn lost(&self, epoch: Epoch) -> bool {
        let mut state = self.state();
        if state.epoch != epoch {
            return false;
        }
        state.epoch += 1;
        state.is_in_doubt |= state.acknowledged > state.durable;
        true
    }

    /// The failed flush that latched the device.
    pub(super) fn latch(&self) -> Option<Latch> {
        self.state().latch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos(5);

    #[test]
    fn nothing_unflushed_leaves_no_doubt() {
        let books = Durability::default();
        books.acknowledge(0, 3);
        let covered = books.begin_flush(NOW).unwrap();
        books.flushed(covered).unwrap();
        assert!(books.lost(0) && !books.lost(0), "the first to notice ends the epoch");
        assert_eq!(books.begin_flush(NOW), Ok(3));
    }

    #[test]
    fn an_unflushed_write_makes_the_next_flush_fail_for_good() {
        let books = Durability::default();
        let covered = books.begin_flush(NOW).unwrap();
        books.acknowledge(0, 1);
        books.flushed(covered).unwrap();
        assert!(books.lost(0));
        assert_eq!(books.latch(), None, "no flush has failed yet");
        assert_eq!(books.begin_flush(NOW), Err(IN_DOUBT));
        assert_eq!(books.latch(), Some(Latch { errno: IN_DOUBT, at: NOW }));
    }

    #[test]
    fn an_answer_read_after_the_loss_is_in_doubt_too() {
        let books = Durability::default();
        assert!(books.lost(0));
        books.acknowledge(0, 1);
        assert_eq!(books.begin_flush(NOW), Err(IN_DOUBT));
    }

    #[test]
    fn a_failed_flush_fails_those_under_way() {
        let books = Durability::default();
        let covered = books.begin_flush(NOW).unwrap();
        books.flush_failed(Errno::EIO, NOW);
        assert_eq!(books.flushed(covered), Err(Errno::EIO));
        assert_eq!(books.begin_flush(NOW), Err(Errno::EIO));
    }
}
