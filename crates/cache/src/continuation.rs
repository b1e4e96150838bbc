//! [`Then`]: continuation of an action, done when it is completed.

use plumb_block::{LbaRange, Nanos};

use crate::action::Purpose;
use crate::index::Entry;

/// Continuation of an action.
#[derive(Debug)]
pub(crate) enum Then {
    /// A write of a superblock.
    Superblock {
        leg: usize,
    },
    Record {
        sequence: u64,
        leg: usize,
    },
    /// A flush of a leg or, without one, of the backing device.
    Flush {
        leg: Option<usize>,
        purpose: Purpose,
    },
    Part(Box<PartRead>),
    Copy(Copy),
    /// A client's write past the log.
    Bypass {
        client: u64,
    },
    Destage {
        run: Run,
        at: Nanos,
    },
}

impl Then {
    /// Returns true if the action writes to a leg or flushes it. Reads of a log keep its segments.
    pub(crate) const fn is_of_log(&self) -> bool {
        match self {
            Self::Superblock { .. }
            | Self::Record { .. }
            | Self::Copy(_)
            | Self::Flush { leg: Some(_), .. } => true,
            Self::Flush { leg: None, .. } | Self::Part(_) | Self::Bypass { .. } | Self::Destage { .. } => {
                false
            }
        }
    }
}

/// Part of a gather that is being read.
#[derive(Debug)]
pub(crate) struct PartRead {
    pub(crate) gather: u64,
    pub(crate) part: Part,
    /// True if it is read into the target itself.
    pub(crate) is_direct: bool,
    /// Leg that a part in the log is read from; `failed` has those that did not have it whole.
    pub(crate) leg: usize,
    pub(crate) failed: Vec<usize>,
}

/// Blocks that one transfer brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: LbaRange,
    /// Place in the target, in bytes.
    pub(crate) offset: u64,
    pub(crate) source: Source,
    /// True if the backing device has it, too, or something newer.
    pub(crate) is_kept: bool,
}

/// Place of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the log, at this address.
    Log(u64),
    Backing,
    Zeroes,
    /// The part was in the log, and can be read on no leg.
    Nowhere,
}

/// Write to a leg of blocks that another leg has, in a segment that is pinned for it.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) leg: usize,
    pub(crate) segment: u64,
    /// Part that waits for it.
    pub(crate) part: Option<Box<PartRead>>,
}

/// Run of blocks that is destaged together, with the entries that it had when it was taken from the index.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) range: LbaRange,
    pub(crate) pieces: Vec<(LbaRange, Entry)>,
}
