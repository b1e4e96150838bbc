//! The extent index: the newest version of every block that a live record changes.
//!
//! Invariant: a block has an entry in a segment from the tail on exactly if recovery could replay a record
//! for it, whether destaged or not. A write to blocks without such an entry may bypass the log (order (c)).
//!
//! An entry in a segment before the tail is *kept*: the backing device has the data durably, and it is read
//! from the log until the segment is reused. A write that bypasses the log removes it. Entries of segments
//! that reads no longer find stay until [`Base::forget_freed`](crate::base::Base::forget_freed).

use std::ops::Deref;

use plumb_block::{ExtentMap, Lba, LbaRange};

use crate::format::record::Kind;
use crate::geometry::Geometry;

/// Newest version of a run of blocks. It applies to each block equally, so a run can be split anywhere.
///
/// Bits 0 to 60: for data the address in the log minus the LBA, wrapping; for others the segment of the
/// record. Bits 61 and 62: the kind. Bit 63: whether the backing device has it too, durably or not. Addresses
/// stay below 2^57, LBAs below 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u64);

const KIND: u32 = 61;
const AT: u64 = (1 << KIND) - 1;
const CLEAN: u64 = 1 << 63;

impl Entry {
    /// Entry for blocks that no leg can read and that the log has given up. Reads of them fail. The segment
    /// of the entry is never reached.
    pub(crate) const UNREADABLE: Self = Self(AT | (Kind::Zeroes as u64) << KIND);

    /// Creates the entry for blocks of `kind` from `lba` on, whose payload, if any, starts at `block` of
    /// `segment`.
    pub(crate) fn new(geometry: &Geometry, kind: Kind, lba: Lba, segment: u64, block: u32) -> Self {
        let at = match kind {
            Kind::Data => geometry.address(segment, block).wrapping_sub(lba.0) & AT,
            Kind::Zeroes | Kind::ZeroesReserved | Kind::Discard => segment,
        };
        Self(at | (kind as u64) << KIND)
    }

    pub(crate) const fn kind(self) -> Kind {
        Kind::ALL[(self.0 >> KIND & 3) as usize]
    }

    pub(crate) fn is_unreadable(self) -> bool {
        self == Self::UNREADABLE
    }

    pub(crate) const fn is_clean(self) -> bool {
        self.0 & CLEAN != 0
    }

    /// Returns true if only the log has the data.
    fn is_dirty(self) -> bool {
        !self.is_clean() && !self.is_unreadable()
    }

    /// Returns the address in the log of the payload for `lba`, which the entry must cover.
    pub(crate) fn address(self, lba: Lba) -> u64 {
        self.0.wrapping_add(lba.0) & AT
    }

    /// Returns the segment of the record.
    pub(crate) fn segment(self, geometry: &Geometry, lba: Lba) -> u64 {
        match self.kind() {
            Kind::Data => geometry.locate(self.address(lba)).0,
            Kind::Zeroes | Kind::ZeroesReserved | Kind::Discard => self.0 & AT,
        }
    }

    /// Returns the entry marked as destaged.
    pub(crate) const fn cleaned(self) -> Self {
        Self(self.0 | CLEAN)
    }
}

/// The index, with the amount of dirty data.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: ExtentMap<Entry>,
    dirty: Dirty,
}

/// Number of blocks that the backing device does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dirty {
    pub(crate) data: u64,
    /// Zeroed or discarded blocks.
    pub(crate) zeroes: u64,
}

impl Dirty {
    pub(crate) const fn all(self) -> u64 {
        self.data + self.zeroes
    }

    const fn counter_mut(&mut self, entry: Entry) -> &mut u64 {
        match entry.kind() {
            Kind::Data => &mut self.data,
            Kind::Zeroes | Kind::ZeroesReserved | Kind::Discard => &mut self.zeroes,
        }
    }

    /// Removes a piece from the counts. Returns how much of it was dirty.
    fn lose(&mut self, range: LbaRange, entry: Entry) -> u64 {
        let lost = if entry.is_dirty() { range.nlb } else { 0 };
        *self.counter_mut(entry) -= lost;
        lost
    }
}

impl Deref for Index {
    type Target = ExtentMap<Entry>;

    fn deref(&self) -> &ExtentMap<Entry> {
        &self.entries
    }
}

impl Index {
    /// Returns the number of dirty blocks.
    pub(crate) const fn dirty(&self) -> Dirty {
        self.dirty
    }

    /// Sets a newer version for `range`. Returns the number of dirty blocks that it replaces.
    pub(crate) fn insert(&mut self, range: LbaRange, entry: Entry) -> u64 {
        let (dirty, mut replaced) = (&mut self.dirty, 0);
        self.entries.replace(range, entry, |range, old| replaced += dirty.lose(range, *old));
        if entry.is_dirty() {
            *self.dirty.counter_mut(entry) += range.nlb;
        }
        replaced
    }

    /// Returns the parts of `range` that satisfy `is_such`.
    fn parts(&self, range: LbaRange, is_such: impl Fn(LbaRange, Entry) -> bool) -> Vec<LbaRange> {
        let found = self.over(range).filter(|(range, entry)| is_such(*range, **entry));
        found.map(|(range, _)| range).collect()
    }

    /// Marks the pieces that are still the newest version as destaged.
    pub(crate) fn mark_clean(&mut self, pieces: &[(LbaRange, Entry)]) {
        for (range, entry) in pieces {
            for part in self.parts(*range, |_, found| found == *entry) {
                self.insert(part, entry.cleaned());
            }
        }
    }

    /// Marks the parts of a piece that are still the newest version as unreadable until overwritten. Returns
    /// these parts.
    pub(crate) fn leave_unreadable(&mut self, range: LbaRange, entry: Entry) -> Vec<LbaRange> {
        let parts = self.parts(range, |_, found| found == entry);
        for part in &parts {
            self.insert(*part, Entry::UNREADABLE);
        }
        parts
    }

    /// Removes the entries over `range` in segments before `end`.
    pub(crate) fn forget(&mut self, geometry: &Geometry, range: LbaRange, end: u64) {
        for part in self.parts(range, |range, entry| entry.segment(geometry, range.lba) < end) {
            let dirty = &mut self.dirty;
            self.entries.take(part, |range, old| {
                dirty.lose(range, *old);
            });
        }
    }
}

/// Returns the extents of `index` over `range`, and the gaps.
pub(crate) fn with_gaps(
    index: &ExtentMap<Entry>,
    range: LbaRange,
) -> impl Iterator<Item = (LbaRange, Option<Entry>)> {
    let mut at = range.lba;
    let end = (LbaRange::new(range.end(), 0), None);
    let found = index.over(range).map(|(range, entry)| (range, Some(*entry)));
    found.chain([end]).flat_map(move |(range, entry)| {
        let gap = LbaRange::new(at, range.lba.0 - at.0);
        at = range.end();
        [(gap, None), (range, entry)].into_iter().filter(|(range, _)| range.nlb > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Layout;

    #[test]
    fn an_entry_holds_the_last_block_of_the_largest_log_and_of_the_largest_device() {
        let (logical_block, segment_blocks) = (512, 16384);
        let geometry = Geometry {
            logical_block,
            segment_blocks,
            per_leg: 3,
            rotation: 0,
            layout: Layout::Mirror,
            legs: 1,
        };
        for kind in Kind::ALL {
            for (lba, place) in [(Lba((1 << 53) - 2), (0, 1)), (Lba(0), ((1 << 40) - 1, 16383))] {
                let entry = Entry::new(&geometry, kind, lba, place.0, place.1).cleaned();
                assert_eq!((entry.kind(), entry.is_clean()), (kind, true));
                assert_eq!(entry.segment(&geometry, lba), place.0);
                if kind == Kind::Data {
                    assert_eq!(entry.address(lba + 1), geometry.address(place.0, place.1) + 1);
                }
            }
        }
    }
}
