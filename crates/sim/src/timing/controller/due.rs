//! Scheduled events inside a drive with a cache.

use super::slots::Slot;

/// A scheduled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The controller has read a command, including the data of a write.
    Admitted(Slot),
    /// The data of a read has reached the host.
    Delivered(Slot),
    /// Dirty data has waited long enough.
    Destage,
}
