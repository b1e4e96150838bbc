//! Options for opening an export.

use plumb_block::{Nanos, Time};

/// Options for opening an export.
#[derive(Clone)]
pub struct Options {
    /// Number of connections, at least 1. All are created at once if a flush on one covers all
    /// (CAN_MULTI_CONN); otherwise only one is. Queues are distributed evenly.
    pub connections: u32,
    /// Time base of the queues. With [custom transports](super::NbdDevice::over) it may be virtual.
    pub time: Time,
    /// Timeout of connecting and negotiating, and of queries about extents.
    pub connect_timeout: Nanos,
    /// Time for which a queue that is dropped waits for answers; later ones are discarded.
    pub drop_patience: Nanos,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 4,
            time: Time::real(),
            connect_timeout: Nanos::secs(10),
            drop_patience: Nanos::secs(5),
        }
    }
}
