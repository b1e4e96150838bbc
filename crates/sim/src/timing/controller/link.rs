//! The way into the drive: one controller, one wire.

use plumb_block::Bytes;

use crate::model::Rate;

/// Controller and wire; both do one thing at a time.
#[derive(Debug, Clone)]
pub(super) struct Link {
    overhead: u64,
    rate: Rate,
    controller_free: u64,
    wire_free: u64,
}

impl Link {
    pub(super) const fn new(overhead: u64, rate: Rate) -> Self {
        Self { overhead, rate, controller_free: 0, wire_free: 0 }
    }

    /// When the controller has read a command that comes at `now`.
    pub(super) fn admit(&mut self, now: u64) -> u64 {
        self.controller_free = self.controller_free.max(now) + self.overhead;
        self.controller_free
    }

    /// When `length` that is ready at `now` has passed the wire.
    pub(super) fn transfer(&mut self, now: u64, length: Bytes) -> u64 {
        self.wire_free = self.wire_free.max(now) + self.rate.time_for(length).0;
        self.wire_free
    }

    pub(super) fn clear(&mut self) {
        self.controller_free = 0;
        self.wire_free = 0;
    }
}
