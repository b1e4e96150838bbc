//! Steps of a command between the host and the members.

/// Something that happens on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A piece comes to a member.
    Arrive { place: u32, member: u32, first: u64, count: u64 },
    /// An answer comes back from a member of `column`.
    Return { place: u32, column: u32 },
    /// The host is told.
    Answer { place: u32 },
}
