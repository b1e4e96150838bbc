//! A sealed log, which is no longer written because its devices fail writes or it is to be replaced. Its
//! contents are written back, and client writes bypass it to the backing device.
//!
//! ```text
//!   records in flight answered ──► flush of the legs ──► sealing mark ──► writes go past the log; it is written back
//!                                                                            mark with each new tail ──► segments free
//! ```
//!
//! The log can no longer record its start and end, so the mark on the backing device does: recovery accepts
//! only the records from [`Mark::tail`] to [`Mark::durable`]. A failed record that landed after all is beyond
//! that end; its writes bypass the log once the mark is durable ([`Wait::SealMarked`](crate::Wait)). A write
//! must not bypass the log if a record from the tail on overlaps it, because recovery would restore the older
//! version. It waits until that record is written back and the mark says so.
//!
//! A sealed log stays sealed until the cache is detached or [moves](Seal::begin_move) to another log:
//!
//! ```text
//!   sealed, everything written back ──► superblocks on the new legs, flushed ──► mark that names their session: the old log is refused
//! ```

use plumb_block::Bytes;

use crate::settings::{Layout, Mark};

/// Refusal of changes to a sealed log.
pub(crate) const SEALED: &str = "its log is no longer written (`plumb cache status` says why): give the \
                                 cache another one with `plumb cache replace-log`";

/// Description of a log that a cache moves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLog {
    /// Bytes to use of each leg.
    pub size: Bytes,
    /// Layout of the log over the legs.
    pub layout: Layout,
}

/// State of a sealed log.
#[derive(Debug)]
pub(crate) struct Seal {
    because: String,
    /// Session in the sealing mark: that of the previous mark, which is durable in the log.
    session: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Records are in flight.
    Answering,
    /// The legs are being flushed; with the number of incomplete flushes.
    Flushing(usize),
    /// Everything in the log is durable and known.
    Ready,
    /// Superblocks are being written to other legs, followed by the mark.
    Moving,
}

impl Seal {
    /// Creates the seal of a log whose last marked session is `session`.
    pub(crate) const fn new(because: String, session: u64) -> Self {
        Self { because, session, stage: Stage::Answering }
    }

    /// Returns the reason as a sentence.
    pub(crate) fn because(&self) -> &str {
        &self.because
    }

    pub(crate) fn is_answering(&self) -> bool {
        self.stage == Stage::Answering
    }

    /// Returns true if the contents of the log are final and durable.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready | Stage::Moving)
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.stage == Stage::Moving
    }

    /// Starts to flush the legs.
    pub(crate) fn begin_flush(&mut self) {
        self.stage = Stage::Flushing(0);
    }

    /// Returns the counter of pending flushes.
    pub(crate) fn pending(&mut self) -> Option<&mut usize> {
        if let Stage::Flushing(left) = &mut self.stage { Some(left) } else { None }
    }

    /// Ends the flushes if all are complete. Returns true if they have just ended.
    pub(crate) fn end_flush(&mut self) -> bool {
        let is_over = self.stage == Stage::Flushing(0);
        self.stage = if is_over { Stage::Ready } else { self.stage };
        is_over
    }

    /// Moves to another log, whose superblocks are written next.
    pub(crate) fn begin_move(&mut self) {
        self.stage = Stage::Moving;
    }

    /// Records that the new log is unusable. The old one was empty, so nothing is lost.
    pub(crate) fn fail_move(&mut self, because: String) {
        (self.because, self.stage) = (because, Stage::Ready);
    }

    /// Returns `mark` with the seal: only records from the log's tail to its end count.
    pub(crate) fn seal(&self, mark: Mark) -> Mark {
        Mark { session: self.session, is_sealed: true, ..mark }
    }
}
