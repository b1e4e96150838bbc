//! Events that happen by themselves inside a flash drive.

use crate::command::CommandId;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The cells were read; so many bytes go out over the link.
    ReadDone(CommandId, u32),
    /// A command is answered.
    Answer(CommandId),
    /// A command is answered, and what it wrote is out of the cache.
    AnswerPersisted(CommandId),
    /// A unit was programmed.
    Programmed(u32),
}
