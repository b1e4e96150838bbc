//! Scheduled events inside a flash drive.

use crate::command::CommandId;

/// A scheduled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The cells were read; this many bytes go out over the link.
    ReadDone(CommandId, u32),
    /// A command is answered.
    Answer(CommandId),
    /// A command is answered and its data has left the cache.
    AnswerPersisted(CommandId),
    /// A unit was programmed.
    Programmed(u32),
}
