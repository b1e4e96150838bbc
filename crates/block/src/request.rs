//! Requests to a device, and completions.

use serde::{Deserialize, Serialize};

use crate::buffer::{Buffer, BufferMut};
use crate::error::Errno;
use crate::pattern::Pattern;
use crate::units::{Bytes, Lba, Nanos};

/// A run of logical blocks, as in an NVMe command: where it starts and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LbaRange {
    /// The first block.
    pub lba: Lba,
    /// Number of logical blocks, not 0's based as in NVMe.
    pub nlb: u64,
}

impl LbaRange {
    /// Empty range, used by flushes.
    pub const EMPTY: Self = Self { lba: Lba(0), nlb: 0 };

    /// Creates a range of `nlb` blocks from `lba` on.
    pub const fn new(lba: Lba, nlb: u64) -> Self {
        Self { lba, nlb }
    }

    /// Returns the first block after the range.
    pub const fn end(self) -> Lba {
        Lba(self.lba.0 + self.nlb)
    }

    /// Returns true if the two ranges have a block in common.
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
        /// Force unit access: these blocks are durable when the write completes. Earlier writes are not
        /// affected.
        fua: bool,
    },
    /// Make durable every write, discard and write-zeroes that completed on any queue before this was
    /// submitted.
    Flush,
    /// Tell the device that the blocks are not needed. Afterwards they read as before or as zeroes.
    Discard,
    /// Write zeroes without transferring data.
    WriteZeroes {
        /// Durable when complete.
        fua: bool,
        /// Keep the space allocated: do not unmap.
        no_hole: bool,
        /// Fail with EOPNOTSUPP instead of writing zeroes from a buffer.
        fast_only: bool,
    },
}

impl Op {
    /// Returns true for a write that is to be durable when it completes.
    #[inline]
    pub const fn is_fua(self) -> bool {
        matches!(self, Self::Write { fua: true } | Self::WriteZeroes { fua: true, .. })
    }

    /// Returns the operation without FUA.
    #[must_use]
    #[inline]
    pub const fn without_fua(self) -> Self {
        match self {
            Self::Write { .. } => Self::Write { fua: false },
            Self::WriteZeroes { no_hole, fast_only, .. } => {
                Self::WriteZeroes { fua: false, no_hole, fast_only }
            }
            other => other,
        }
    }
}

/// Identifier chosen by the submitter and returned in the completion. The device does not interpret it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// The data of a request. It travels with the request and comes back with the completion, so memory is never
/// freed while a device may still touch it.
#[derive(Debug, Default)]
pub enum Payload {
    /// No data: a flush, a discard, or a read whose bytes nobody wants (the device still reads them).
    #[default]
    None,
    /// Buffer for the data of a read; its length must be that of the range.
    Into(BufferMut),
    /// Data of a write; its length must be that of the range.
    Bytes(Buffer),
    /// Data of a write as a reproducible pattern. Simulated media store the pattern itself.
    Pattern(Pattern),
}

/// One request. No order holds between requests in flight.
#[derive(Debug)]
pub struct Request {
    /// Identifier that the completion returns.
    pub tag: Tag,
    /// Operation that the device is to perform.
    pub op: Op,
    /// Blocks of the request; [`LbaRange::EMPTY`] for a flush.
    pub range: LbaRange,
    /// Data to write, or a buffer to read into.
    pub payload: Payload,
    /// Time after which the request completes as [`Outcome::Unknown`] if it has no answer. Requests cannot be
    /// cancelled.
    pub deadline: Option<Nanos>,
}

impl Request {
    /// Returns the completion of the request, submitted and completed at `at`.
    pub fn completed(self, outcome: Outcome, at: Nanos) -> Completion {
        let Self { tag, payload, .. } = self;
        Completion { tag, outcome, submitted_at: at, completed_at: at, payload }
    }

    /// Creates a read that discards the data.
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

    /// Returns true if the payload suits the operation: its bytes, if it has any, are `length`, which is that
    /// of the range.
    #[inline]
    pub fn carries(&self, length: Bytes) -> bool {
        match (self.op, &self.payload) {
            (Op::Read, Payload::Into(buffer)) => buffer.len() as u64 == length.0,
            (Op::Write { .. }, Payload::Bytes(bytes)) => bytes.len() as u64 == length.0,
            (Op::Write { .. }, payload) => matches!(payload, Payload::Pattern(_)),
            (_, payload) => matches!(payload, Payload::None),
        }
    }
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The request was carried out as submitted, in full length.
    Done,
    /// The request failed: each block of a write is old, new or unreadable.
    Failed(Errno),
    /// No answer arrived (a timeout, a reconnect). Treat it as failed; a write may still land later.
    Unknown,
    /// The device lost power before the request completed.
    PowerLost,
}

impl Outcome {
    /// Returns true if the request succeeded.
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}

/// A completed request.
#[derive(Debug)]
pub struct Completion {
    /// Tag of the request.
    pub tag: Tag,
    /// Result of the request.
    pub outcome: Outcome,
    /// Time when the device received the request, by the clock of the queue.
    pub submitted_at: Nanos,
    /// Time when the queue saw the answer, by its own clock. One reading may serve a whole batch; it is then
    /// taken after the batch was reaped, so that no latency is reported too short.
    pub completed_at: Nanos,
    /// Payload of the request. For [`Outcome::Unknown`] it is [`Payload::None`] if the device may still touch
    /// the memory; the queue then keeps the memory until the device is done with it.
    pub payload: Payload,
}

impl Completion {
    /// Returns the time between submission and completion.
    pub const fn service_time(&self) -> Nanos {
        self.completed_at.since(self.submitted_at)
    }
}
