//! Grid of the possible starts of operations in a range, and the division of a range on it.

use plumb_block::Bytes;

use crate::byte_range::ByteRange;
use crate::share::Share;

/// Equidistant starts from the start of a range, each with room for the longest operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Distance between two starts; not zero.
    pub(crate) step: u64,
    /// Length of the longest operation; not zero.
    pub(crate) longest: u64,
}

impl Grid {
    /// Returns the number of starts in `length` bytes.
    pub(crate) fn places(self, length: u64) -> u64 {
        length.checked_sub(self.longest).map_or(0, |room| room / self.step + 1)
    }

    /// Returns the part of `range` for `share`. The parts are disjoint, start on the grid and cover the
    /// range; `None` if this part is too small for an operation.
    pub(crate) fn part(self, range: ByteRange, share: Share) -> Option<ByteRange> {
        let length = range.length.0;
        // If starts are further apart than operations are long, a last start without a full step counts as a
        // unit.
        let units = if self.step >= self.longest { self.places(length) } else { length / self.step };
        let (index, of) = (share.index(), share.shares().get());
        let start = self.step * share.start_of(units, index);
        let end = if index + 1 == of { length } else { self.step * share.start_of(units, index + 1) };
        let part =
            ByteRange { offset: Bytes(range.offset.0 + start), length: Bytes(end.saturating_sub(start)) };
        (self.places(part.length.0) > 0).then_some(part)
    }

    /// Returns `range` from the first multiple of the step after `origin` on; empty if nothing is left.
    pub(crate) fn aligned(self, range: ByteRange, origin: u64) -> ByteRange {
        let end = range.offset.0 + range.length.0;
        let start = (range.offset.0 - origin).checked_next_multiple_of(self.step);
        let start = start.map_or(u64::MAX, |start| origin.saturating_add(start));
        ByteRange { offset: Bytes(start), length: Bytes(end.saturating_sub(start)) }
    }
}
