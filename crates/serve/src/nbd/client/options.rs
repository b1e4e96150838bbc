//! Options of opening an export.

use std::sync::Arc;

use plumb_block::{Nanos, RealClock, Time};

/// Options of opening an export.
#[derive(Clone)]
pub struct Options {
    /// Number of connections, at least 1. All are made at once if the server says that a flush on one covers
    /// all (CAN_MULTI_CONN); otherwise there is one. Queues share them evenly.
    pub connections: u32,
    /// Clock of the queues. Over [transports of its own](super::NbdDevice::over) it may be virtual.
    pub time: Time,
    /// Time limit of connecting and negotiating, and of the answer to a question about extents.
    pub connect_timeout: Nanos,
    /// Time for which a queue that is dropped waits for answers; later ones are discarded.
    pub drop_patience: Nanos,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 4,
            time: Time::Real(Arc::new(RealClock::start())),
            connect_timeout: Nanos::secs(10),
            drop_patience: Nanos::secs(5),
        }
    }
}
