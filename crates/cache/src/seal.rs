//! A log that is no longer written: its devices fail writes, or it is to be replaced. Everything in it is
//! written back, and writes of clients go past it, to the backing device.
//!
//! ```text
//!   records in flight answered ──► flush of the legs ──► sealing mark ──► writes go past the log; it is written back
//!                                                                            mark with each new tail ──► segments free
//! ```
//!
//! The log can no longer say where it begins and ends, so the mark on the backing device does: recovery takes
//! of a sealed log the records from [`Mark::tail`] to [`Mark::durable`] and no other. A record that failed
//! and landed all the same is beyond that end; its writes go past the log once the mark is durable
//! ([`Wait::SealMarked`](crate::Wait)). No write goes past the log where a record from the tail on has a
//! block: recovery would put the older version over it. It waits until that is written back and the mark says
//! so.
//!
//! A sealed log stays sealed. It ends when the cache is detached or [moves](Seal::begin_move) to another log:
//!
//! ```text
//!   sealed, everything written back ──► superblocks on the new legs, flushed ──► mark that names their session: the old log is refused
//! ```

use plumb_block::Bytes;

use crate::settings::{Layout, Mark};

/// Refusal of a change of a log that is no longer written.
pub(crate) const SEALED: &str = "its log is no longer written (`plumb cache status` says why): give the \
                                 cache another one with `plumb cache replace-log`";

/// Log to which a cache is to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLog {
    /// Bytes that are used of each leg.
    pub size: Bytes,
    /// Layout of the log over the legs.
    pub layout: Layout,
}

/// Seal of a log that is no longer written.
#[derive(Debug)]
pub(crate) struct Seal {
    because: String,
    /// Session that the sealing mark names: that of the mark before, which the log has durably.
    session: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Records are in flight.
    Answering,
    /// The legs are flushed; so many flushes are not completed.
    Flushing(usize),
    /// Everything in the log is durable, and known.
    Ready,
    /// Superblocks are written to other legs, and the mark then.
    Moving,
}

impl Seal {
    /// Returns the seal of a log of which `session` is the last that was marked.
    pub(crate) const fn new(because: String, session: u64) -> Self {
        Self { because, session, stage: Stage::Answering }
    }

    /// Returns the reason, in a sentence.
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

    /// Begins to flush the legs.
    pub(crate) fn begin_flush(&mut self) {
        self.stage = Stage::Flushing(0);
    }

    /// Returns the number of pending flushes.
    pub(crate) fn pending(&mut self) -> Option<&mut usize> {
        if let Stage::Flushing(left) = &mut self.stage { Some(left) } else { None }
    }

    /// Takes note of the end of the flushes. Returns true if they have just ended.
    pub(crate) fn end_flush(&mut self) -> bool {
        let is_over = self.stage == Stage::Flushing(0);
        self.stage = if is_over { Stage::Ready } else { self.stage };
        is_over
    }

    /// Goes on to another log, whose superblocks are written next.
    pub(crate) fn begin_move(&mut self) {
        self.stage = Stage::Moving;
    }

    /// Takes note that the new log cannot be used. The old one was empty, so nothing is lost.
    pub(crate) fn fail_move(&mut self, because: String) {
        (self.because, self.stage) = (because, Stage::Ready);
    }

    /// Returns `mark` as that of the sealed log: the records from its tail to its end count.
    pub(crate) fn seal(&self, mark: Mark) -> Mark {
        Mark { session: self.session, is_sealed: true, ..mark }
    }
}
