//! Events that happen by themselves inside a drive with a cache.

use super::slots::Slot;

/// Something that happens by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The controller has read a command, and has its data if it is a write.
    Admitted(Slot),
    /// The data of a read are with the host.
    Delivered(Slot),
    /// Dirty data have waited long enough.
    Destage,
}
