//! A command of the window, and when it was in flight.

use plumb_block::LbaRange;

/// A point in the order of submissions and completions of one device, counted up. No two events share one.
pub type Moment = u64;

/// The moment of what has not happened: after all others.
pub const NEVER: Moment = Moment::MAX;

/// Time from the submission of a command to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// When it was submitted.
    pub submitted: Moment,
    /// When it completed as done; [`NEVER`] while it is in flight, and for ever if it failed or was not
    /// answered.
    pub completed: Moment,
}

impl Span {
    /// Returns true if it completed as done.
    pub const fn is_completed(self) -> bool {
        self.completed != NEVER
    }

    /// Returns true if it completed before the other was submitted. Of two that were in flight together
    /// neither is older.
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
        /// True if it certainly leaves zeroes. If not, it may do nothing.
        zeroes: bool,
    },
}

impl Kind {
    /// Returns true if it asks for FUA.
    pub const fn is_fua(self) -> bool {
        matches!(self, Self::Write { fua: true } | Self::WriteZeroes { fua: true })
    }

    /// Returns true if older versions are certainly gone once it is durable.
    pub const fn displaces(self) -> bool {
        !matches!(self, Self::Discard { zeroes: false })
    }
}

/// When a command took the place of what was in its blocks: somewhere in its span. Of two that were in flight
/// together the one that landed later is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// The command lands when it is submitted.
    AtSubmission,
    /// The command lands when it completes.
    AtCompletion,
    /// Nobody knows: of two in flight together either may be the last.
    Unknown,
}

/// One command that may still change what a cut leaves, with what the caller attached to it.
#[derive(Debug, Clone)]
pub struct Command<T> {
    /// Effect of the command on its blocks.
    pub kind: Kind,
    /// Where.
    pub range: LbaRange,
    /// When.
    pub span: Span,
    /// When it landed; means nothing before it has completed.
    pub landing: Landing,
    /// True if it failed or was not answered.
    pub is_failed: bool,
    /// True if it is durable, and stays only for what is not newer than it.
    pub is_durable: bool,
    /// Value that the caller attached: a content, or a number for it.
    pub content: T,
    /// True if it was destaged before it completed.
    pub(crate) is_destaged: bool,
    /// Number of blocks in which the command still counts.
    pub(crate) live_blocks: u64,
}

impl<T> Command<T> {
    /// Creates a command that is in flight since `submitted`.
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

    /// Returns true if a cut may take it although it completed.
    pub const fn is_at_risk(&self) -> bool {
        self.span.is_completed() && !self.is_durable
    }

    /// Returns true if the host was told that it is done.
    pub const fn is_acknowledged(&self) -> bool {
        self.span.is_completed() && !self.is_failed
    }

    /// Returns when it landed; as late as possible if nobody knows.
    pub const fn landed(&self) -> Moment {
        match self.landing {
            Landing::AtSubmission => self.span.submitted,
            Landing::AtCompletion | Landing::Unknown => self.span.completed,
        }
    }

    /// Returns true if everything older than it is gone from its blocks.
    pub(crate) const fn is_decisive(&self) -> bool {
        self.is_durable && self.kind.displaces()
    }
}
