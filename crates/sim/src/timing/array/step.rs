//! Steps of a command between the host and the members.

/// An event on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A piece arrives at a member.
    Arrive { place: u32, member: u32, first: u64, count: u64 },
    /// An answer arrives from a member of `column`.
    Return { place: u32, column: u32 },
    /// The host receives the answer.
    Answer { place: u32 },
}
