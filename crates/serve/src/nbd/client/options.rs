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
    /// How long connecting and negotiating may take, and the answer to a question about extents.
    pub connect_timeout: Nanos,
    /// How long a queue that is dropped waits for answers. Afterwards they are thrown away when they come.
    pub drop_patience: Nanos,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 4,
            clock: Arc::new(RealClock::start()),
            connect_timeout: Nanos::secs(10),
            drop_patience: Nanos::secs(5),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("drop_patience", &self.drop_patience)
            .finish_non_exhaustive()
    }
}
