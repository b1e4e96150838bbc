//! When a command was submitted and answered, and what follows for two of them.

use super::planted::{Bug, planted};

/// A point in the order of submissions and answers of one drive, counted up. No two events share one.
pub type Moment = u64;

/// The moment of what has not happened: after all others.
pub const NEVER: Moment = Moment::MAX;

/// From the submission of a command to its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// When it was submitted.
    pub submitted: Moment,
    /// When it was answered as done; [`NEVER`] while it is in flight, and for ever if it failed or was not answered.
    pub completed: Moment,
}

impl Span {
    /// In flight since `submitted`.
    pub const fn in_flight(submitted: Moment) -> Self {
        Self { submitted, completed: NEVER }
    }

    /// Whether it was answered as done.
    pub const fn is_completed(self) -> bool {
        self.completed != NEVER
    }

    /// Whether it was done before the other was submitted. Of two that were in flight together neither is older.
    pub const fn is_older_than(self, other: Self) -> bool {
        self.completed < other.submitted
    }
}

/// Whether a flush that was submitted at `flush_submitted`, once it is answered, has made `command` durable.
pub fn flush_covers(flush_submitted: Moment, command: Span) -> bool {
    if planted(Bug::FlushCoversSubmitted) {
        return command.submitted < flush_submitted;
    }
    command.completed < flush_submitted
}
