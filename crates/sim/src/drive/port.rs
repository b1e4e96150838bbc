//! The ports of a drive, one for each queue.

use plumb_block::Completion;

/// Number of the queue from which a command came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortNumber(pub(crate) u32);

/// Drive side of a queue.
#[derive(Debug, Default)]
pub(super) struct Port {
    pub(super) is_open: bool,
    pub(super) ready: Vec<Completion>,
}
