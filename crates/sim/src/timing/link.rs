//! Entry to a drive: serial processing of commands, and the wire for their data.

use plumb_block::Bytes;

use crate::model::{Rate, Time};

/// A controller, or the software in front of an array, with its wire.
#[derive(Debug, Clone)]
pub(super) struct Link {
    overhead: u64,
    rate: Rate,
    is_duplex: bool,
    controller_free: u64,
    /// Times at which the wire is free, from and to the host; only the first is used if it is not duplex.
    wire_free: [u64; 2],
}

impl Link {
    /// Creates a link with an `overhead` for each command; a duplex wire carries both directions at once.
    pub(super) const fn new(overhead: Time, rate: Rate, is_duplex: bool) -> Self {
        Self { overhead: overhead.0.0, rate, is_duplex, controller_free: 0, wire_free: [0; 2] }
    }

    /// Returns the time when a command that arrives at `now` has been read.
    pub(super) fn admit(&mut self, now: u64) -> u64 {
        self.controller_free = self.controller_free.max(now) + self.overhead;
        self.controller_free
    }

    /// Returns the time when `length`, ready at `at`, has passed the wire.
    pub(super) fn carry(&mut self, at: u64, length: Bytes, to_host: bool) -> u64 {
        let free = &mut self.wire_free[usize::from(to_host && self.is_duplex)];
        *free = at.max(*free) + self.rate.time_for(length).0;
        *free
    }

    /// Removes everything in progress.
    pub(super) const fn clear(&mut self) {
        self.controller_free = 0;
        self.wire_free = [0; 2];
    }
}
