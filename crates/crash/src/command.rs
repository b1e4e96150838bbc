//! A command in the window, and the time for which it was in flight.

use plumb_block::LbaRange;

/// Position in the sequence of submissions and completions of one device. No two events share one.
pub type Moment = u64;

/// Moment after all others, for events that have not happened.
pub const NEVER: Moment = Moment::MAX;

/// Time from the submission of a command to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Time of submission.
    pub submitted: Moment,
    /// Time of successful completion; [`NEVER`] while the command is in flight, and forever if it failed or
    /// was not answered before.
    pub completed: Moment,
}

impl Span {
    /// Returns true if the command completed successfully.
    pub const fn is_completed(self) -> bool {
        self.completed != NEVER
    }

    /// Returns true if the command completed before the other was submitted. Of two commands in flight at the
    /// same time neither is older.
    pub const fn is_older_than(self, other: Self) -> bool {
        self.completed < other.submitted
    }
}

/// Effect of a command on its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Writes data. It may be atomic.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// Writes zeroes without data.
    WriteZeroes {
        /// Force unit access.
        fua: bool,
    },
    /// Discards.
    Discard {
        /// True if the discard certainly leaves zeroes. Otherwise it may have no effect.
        zeroes: bool,
    },
}

impl Kind {
    /// Returns true if the command has FUA.
    pub const fn is_fua(self) -> bool {
        matches!(self, Self::Write { fua: true } | Self::WriteZeroes { fua: true })
    }

    /// Returns true if older versions are certainly gone once the command is durable.
    pub const fn displaces(self) -> bool {
        !matches!(self, Self::Discard { zeroes: false })
    }
}

/// Time within its span at which a command replaced the contents of its blocks. Of two commands in flight at
/// the same time, the one that landed later is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// The command lands when it is submitted.
    AtSubmission,
    /// The command lands when it completes.
    AtCompletion,
    /// Unknown: of two commands in flight at the same time either may be the last.
    Unknown,
}

/// A command that may still affect the state after a cut, with a value attached by the caller.
#[derive(Debug, Clone)]
pub struct Command<T> {
    /// Effect of the command on its blocks.
    pub kind: Kind,
    /// Blocks of the command.
    pub range: LbaRange,
    /// Time in flight.
    pub span: Span,
    /// Time of landing; meaningless before completion.
    pub landing: Landing,
    /// True if the command failed or was not answered.
    pub is_failed: bool,
    /// True if the command is durable. It then stays in the window only because of commands that are not
    /// newer.
    pub is_durable: bool,
    /// Value that the caller attached: a content, or a number for it.
    pub content: T,
    /// True if the command was destaged before it completed.
    pub(crate) is_destaged: bool,
    /// Number of blocks in which the command is still relevant.
    pub(crate) live_blocks: u64,
}

impl<T> Command<T> {
    /// Creates a command in flight since `submitted`.
    pub(crate) const fn submitted(kind: Kind, range: LbaRange, submitted: Moment, content: T) -> Self {
        Self {
            kind,
            range,
            span: Span { submitted, completed: NEVER },
            landing: Landing::Unknown,
            is_failed: false,
            is_durable: false,
            content,
            is_destaged: false,
            live_blocks: range.nlb,
        }
    }

    /// Returns true if a cut may lose the command although it completed.
    pub const fn is_at_risk(&self) -> bool {
        self.span.is_completed() && !self.is_durable
    }

    /// Returns true if the completion was reported to the host.
    pub const fn is_acknowledged(&self) -> bool {
        self.span.is_completed() && !self.is_failed
    }

    /// Returns the time of landing; the latest possible if it is unknown.
    pub const fn landed(&self) -> Moment {
        match self.landing {
            Landing::AtSubmission => self.span.submitted,
            Landing::AtCompletion | Landing::Unknown => self.span.completed,
        }
    }

    /// Returns true if everything older is gone from the command's blocks.
    pub(crate) const fn is_decisive(&self) -> bool {
        self.is_durable && self.kind.displaces()
    }
}
