//! [`Then`]: what to do when an action completes.

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
    /// A flush of a leg, or of the backing device if `leg` is `None`.
    Flush {
        leg: Option<usize>,
        purpose: Purpose,
    },
    Part(Box<PartRead>),
    Copy(Copy),
    /// A client's write that bypasses the log.
    Bypass {
        client: u64,
    },
    Destage {
        run: Run,
        at: Nanos,
    },
}

impl Then {
    /// Returns true if the action writes to a leg or flushes it. Reads are excluded, since they keep their
    /// segments pinned.
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

/// A part of a gather while it is being read.
#[derive(Debug)]
pub(crate) struct PartRead {
    pub(crate) gather: u64,
    pub(crate) part: Part,
    /// True if it is read directly into the target.
    pub(crate) is_direct: bool,
    /// Leg that a part in the log is read from; `failed` lists those that did not have it intact.
    pub(crate) leg: usize,
    pub(crate) failed: Vec<usize>,
}

/// Blocks that are read in one transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: LbaRange,
    /// Offset in the target in bytes.
    pub(crate) offset: u64,
    pub(crate) source: Source,
    /// True if the backing device has this data or something newer.
    pub(crate) is_kept: bool,
}

/// Location of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the log, at this address.
    Log(u64),
    Backing,
    Zeroes,
    /// The part was in the log, but no leg can read it.
    Nowhere,
}

/// Write of blocks to a leg that another leg has, in a segment pinned for it.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) leg: usize,
    pub(crate) segment: u64,
    /// Part that waits for the copy.
    pub(crate) part: Option<Box<PartRead>>,
}

/// Run of blocks destaged together, with its entries at the time when it was taken from the index.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) range: LbaRange,
    pub(crate) pieces: Vec<(LbaRange, Entry)>,
}
