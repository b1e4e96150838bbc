//! Grid of the places in a range where operations may start, and the parts into which a range is cut on it.

use plumb_block::Bytes;

use crate::byte_range::ByteRange;
use crate::share::Share;

/// Starts at equal distances from the start of a range, each with room for the longest operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Distance between two starts, above zero.
    pub(crate) step: u64,
    /// The longest operation, above zero.
    pub(crate) longest: u64,
}

impl Grid {
    /// Returns the number of starts in `length` bytes.
    pub(crate) fn places(self, length: u64) -> u64 {
        length.checked_sub(self.longest).map_or(0, |room| room / self.step + 1)
    }

    /// Returns the part of `range` that is `share`'s. The parts are disjoint, begin on the grid and cover the
    /// range; `None` if this one has no room for an operation.
    pub(crate) fn part(self, range: ByteRange, share: Share) -> Option<ByteRange> {
        let length = range.length.0;
        // Where starts are further apart than operations are long, the last start is enough of a unit for a
        // part.
        let units = if self.step >= self.longest { self.places(length) } else { length / self.step };
        let (index, of) = (share.index(), share.shares().get());
        let start = self.step * share.start_of(units, index);
        let end = if index + 1 == of { length } else { self.step * share.start_of(units, index + 1) };
        let part =
            ByteRange { offset: Bytes(range.offset.0 + start), length: Bytes(end.saturating_sub(start)) };
        (self.places(part.length.0) > 0).then_some(part)
    }

    /// Returns `range` without what comes before the first multiple of the step from `origin`; empty if
    /// nothing is left.
    pub(crate) fn aligned(self, range: ByteRange, origin: u64) -> ByteRange {
        let end = range.offset.0 + range.length.0;
        let start = (range.offset.0 - origin).checked_next_multiple_of(self.step);
        let start = start.map_or(u64::MAX, |start| origin.saturating_add(start));
        ByteRange { offset: Bytes(start), length: Bytes(end.saturating_sub(start)) }
    }
}
