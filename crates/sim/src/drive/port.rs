//! The ports of a drive, one for each queue.

use plumb_block::Completion;

/// Number of the queue that a command came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortNumber(pub(crate) u32);

/// End of a queue at the drive.
#[derive(Debug, Default)]
pub(super) struct Port {
    pub(super) is_open: bool,
    pub(super) ready: Vec<Completion>,
}
