//! How an export is opened.

use std::fmt;
use std::sync::Arc;

use plumb_block::{Clock, Nanos, RealClock};

/// How an export is opened.
#[derive(Clone)]
pub struct Options {
    /// How many connections to make, at least 1. Made all at once, and only if the server says that what one of them
    /// flushed is flushed for all (CAN_MULTI_CONN); otherwise there is one. Queues share them evenly.
    pub connections: u32,
    /// The clock of the queues. It must run in real time.
    pub clock: Arc<dyn Clock>,
    /// What to do when the connections are lost.
    pub reconnect: Reconnect,
    /// How long connecting and negotiating may take, and the answer to a question about extents.
    pub connect_timeout: Nanos,
    /// How long a queue that is dropped waits for answers. Afterwards they are thrown away when they come.
    pub drop_patience: Nanos,
}

/// What to do when the connections are lost. What was in flight is unknown in any case; this is about what comes after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reconnect {
    /// Every later request fails with ENOTCONN.
    Never,
    /// Requests wait while it is tried again and again, and fail with ENOTCONN from when it is given up.
    Retry {
        /// The pause before the second attempt; it doubles with each further one. The first is made at once.
        pause_first: Nanos,
        /// The longest pause.
        pause_max: Nanos,
        /// How long to go on after the loss.
        give_up_after: Nanos,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 4,
            clock: Arc::new(RealClock::start()),
            reconnect: Reconnect::Retry {
                pause_first: Nanos::millis(10),
                pause_max: Nanos::secs(1),
                give_up_after: Nanos::secs(60),
            },
            connect_timeout: Nanos::secs(10),
            drop_patience: Nanos::secs(5),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("connections", &self.connections)
            .field("reconnect", &self.reconnect)
            .field("connect_timeout", &self.connect_timeout)
            .field("drop_patience", &self.drop_patience)
            .finish_non_exhaustive()
    }
}
