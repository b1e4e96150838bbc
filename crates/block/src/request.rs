//! Requests to a device, and their completions.

use serde::{Deserialize, Serialize};

use crate::buffer::{Buffer, BufferMut};
use crate::error::Errno;
use crate::pattern::Pattern;
use crate::units::{Lba, Nanos};

/// A run of logical blocks, as in an NVMe command: where it starts and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LbaRange {
    /// The first block.
    pub lba: Lba,
    /// The number of logical blocks. Not 0's based.
    pub nlb: u64,
}

impl LbaRange {
    /// No blocks: the range of a flush.
    pub const EMPTY: Self = Self { lba: Lba(0), nlb: 0 };

    /// Returns `nlb` blocks from `lba` on.
    pub const fn new(lba: Lba, nlb: u64) -> Self {
        Self { lba, nlb }
    }

    /// Returns the first block after the range.
    pub const fn end(self) -> Lba {
        Lba(self.lba.0 + self.nlb)
    }

    /// Returns true if the two have a block in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.lba.0 < other.end().0 && other.lba.0 < self.end().0
    }
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Read blocks.
    Read,
    /// Write blocks.
    Write {
        /// Durable when complete (force unit access): these blocks only, nothing written before them.
        fua: bool,
    },
    /// Make durable every write, discard and write-zeroes that completed on any queue before this was
    /// submitted.
    Flush,
    /// Say that the blocks are not needed. Afterwards they read as before or as zeroes.
    Discard,
    /// Write zeroes without sending them.
    WriteZeroes {
        /// Durable when complete.
        fua: bool,
        /// Keep the space reserved: do not unmap.
        no_hole: bool,
        /// Fail with EOPNOTSUPP rather than write zeroes the slow way.
        fast_only: bool,
    },
}

/// Chosen by the submitter, returned in the completion. The device does not look at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// The data of a request. It travels with the request and comes back with the completion, so memory is never
/// freed while a device may still touch it.
#[derive(Debug, Default)]
pub enum Payload {
    /// No data: a flush, a discard, or a read whose bytes nobody wants (the device still reads them).
    #[default]
    None,
    /// A read puts its bytes here; the length must be that of the range.
    Into(BufferMut),
    /// A write takes its bytes from here; the length must be that of the range.
    Bytes(Buffer),
    /// A write of bytes that regenerate. Simulated media keep the pattern as such.
    Pattern(Pattern),
}

/// One request. No order holds between requests in flight.
#[derive(Debug)]
pub struct Request {
    /// Returned in the completion.
    pub tag: Tag,
    /// Operation that the device is to perform.
    pub op: Op,
    /// Where; [`LbaRange::EMPTY`] for a flush.
    pub range: LbaRange,
    /// Data to write.
    pub payload: Payload,
    /// When to stop waiting for an answer: past it the request completes as [`Outcome::Unknown`]. There is no
    /// cancel.
    pub deadline: Option<Nanos>,
}

impl Request {
    /// Creates a read whose bytes are not wanted.
    pub const fn read(tag: Tag, range: LbaRange) -> Self {
        Self { tag, op: Op::Read, range, payload: Payload::None, deadline: None }
    }

    /// Creates a read into `buffer`.
    pub const fn read_into(tag: Tag, range: LbaRange, buffer: BufferMut) -> Self {
        Self { tag, op: Op::Read, range, payload: Payload::Into(buffer), deadline: None }
    }

    /// Creates a write of `payload` that only a later flush makes durable.
    pub const fn write(tag: Tag, range: LbaRange, payload: Payload) -> Self {
        Self { tag, op: Op::Write { fua: false }, range, payload, deadline: None }
    }

    /// Creates a write of `payload` that is durable when complete.
    pub const fn write_fua(tag: Tag, range: LbaRange, payload: Payload) -> Self {
        Self { tag, op: Op::Write { fua: true }, range, payload, deadline: None }
    }

    /// Creates a flush.
    pub const fn flush(tag: Tag) -> Self {
        Self { tag, op: Op::Flush, range: LbaRange::EMPTY, payload: Payload::None, deadline: None }
    }

    /// Creates a discard of `range`.
    pub const fn discard(tag: Tag, range: LbaRange) -> Self {
        Self { tag, op: Op::Discard, range, payload: Payload::None, deadline: None }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The request was carried out as submitted, in full length.
    Done,
    /// The request failed: each block of a write is old, new or unreadable.
    Failed(Errno),
    /// No answer came (a timeout, a reconnect): as if failed, and a write may still land later.
    Unknown,
    /// The device lost power before it answered.
    PowerLost,
}

impl Outcome {
    /// Returns true if the request did what was asked.
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}

/// The end of a request.
#[derive(Debug)]
pub struct Completion {
    /// The tag of the request.
    pub tag: Tag,
    /// How it ended.
    pub outcome: Outcome,
    /// When the device was handed the request, by the clock of the queue.
    pub submitted_at: Nanos,
    /// When the queue saw the answer, by the clock of the queue. One reading may serve a whole batch; it is
    /// then the reading taken after the batch was reaped, so a latency is never reported too short.
    pub completed_at: Nanos,
    /// The payload of the request. [`Payload::None`] for one of [`Outcome::Unknown`] that the device may
    /// still touch: the queue then keeps the memory until the device is done with it.
    pub payload: Payload,
}

impl Completion {
    /// Returns how long the device had the request.
    pub const fn service_time(&self) -> Nanos {
        self.completed_at.since(self.submitted_at)
    }
}
