//! The way into a drive: what reads commands, one after the other, and the wire of their data.

use plumb_block::Bytes;

use crate::model::{Rate, Time};

/// A controller, or the software in front of an array, and its wire.
#[derive(Debug, Clone)]
pub(super) struct Link {
    overhead: u64,
    rate: Rate,
    is_duplex: bool,
    controller_free: u64,
    /// When the wire is free, from and to the host; the first of them is both if it is not duplex.
    wire_free: [u64; 2],
}

impl Link {
    /// Creates a link with `overhead` for each command; a duplex wire carries both directions at once.
    pub(super) const fn new(overhead: Time, rate: Rate, is_duplex: bool) -> Self {
        Self { overhead: overhead.0.0, rate, is_duplex, controller_free: 0, wire_free: [0; 2] }
    }

    /// Returns when a command that comes at `now` has been read.
    pub(super) fn admit(&mut self, now: u64) -> u64 {
        self.controller_free = self.controller_free.max(now) + self.overhead;
        self.controller_free
    }

    /// Returns when `length` that is ready at `at` has passed the wire.
    pub(super) fn carry(&mut self, at: u64, length: Bytes, to_host: bool) -> u64 {
        let free = &mut self.wire_free[usize::from(to_host && self.is_duplex)];
        *free = at.max(*free) + self.rate.time_for(length).0;
        *free
    }

    /// Forgets everything that is under way.
    pub(super) const fn clear(&mut self) {
        self.controller_free = 0;
        self.wire_free = [0; 2];
    }
}
