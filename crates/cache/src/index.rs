//! The extent index: for every block that a live record changes, what its newest version is.
//!
//! Invariant: a block is in the index exactly if some record that recovery could replay changes it, whether that was
//! destaged or not. So what is not in the index may go past the log (order (c)).

use plumb_block::{ExtentMap, Lba, LbaRange};

use crate::format::record::Kind;
use crate::geometry::Geometry;

/// The newest version of a run of blocks. It holds for each block alike, so that a run can be divided anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Of data: the address in the log less the LBA, wrapping. Of others: the segment of the record.
    at: u64,
    pub(crate) kind: Kind,
    /// Whether the backing device has it too, durable or not.
    pub(crate) is_clean: bool,
}

/// With the checksums of the segments, 15.5 MiB for a GiB of 4 KiB writes at random places, each in a record of its own: 61 bytes for each.
const _: () = assert!(size_of::<Entry>() == 16, "the memory for a dirty GiB follows from this");

impl Entry {
    /// What `kind` from `range` on is, whose payload, if it has one, begins at `block` of `segment`.
    pub(crate) fn new(geometry: &Geometry, kind: Kind, lba: Lba, (segment, block): (u64, u32)) -> Self {
        let at = match kind {
            Kind::Data => geometry.address(segment, block).wrapping_sub(lba.0),
            Kind::Zeroes | Kind::ZeroesReserved | Kind::Discard => segment,
        };
        Self { at, kind, is_clean: false }
    }

    /// The address in the log of the payload of `lba`, which the entry covers.
    pub(crate) fn address(self, lba: Lba) -> u64 {
        self.at.wrapping_add(lba.0)
    }

    /// The segment of the record.
    pub(crate) fn segment(self, geometry: &Geometry, lba: Lba) -> u64 {
        match self.kind {
            Kind::Data => geometry.locate(self.address(lba)).0,
            Kind::Zeroes | Kind::ZeroesReserved | Kind::Discard => self.at,
        }
    }

    /// The same, but destaged.
    pub(crate) fn cleaned(self) -> Self {
        Self { is_clean: true, ..self }
    }
}

/// The extents of `index` over `range`, and the gaps between them.
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

/// Marks what of `pieces` is still the newest version as destaged.
pub(crate) fn mark_clean(index: &mut ExtentMap<Entry>, pieces: &[(LbaRange, Entry)]) {
    for (range, entry) in pieces {
        let unchanged: Vec<_> =
            index.over(*range).filter(|(_, found)| *found == entry).map(|(range, _)| range).collect();
        for range in unchanged {
            index.insert(range, entry.cleaned());
        }
    }
}

/// Takes away what of `ranges` is in a segment before `tail`.
pub(crate) fn forget(index: &mut ExtentMap<Entry>, geometry: &Geometry, ranges: &[LbaRange], tail: u64) {
    for range in ranges {
        let old: Vec<_> = index
            .over(*range)
            .filter(|(range, entry)| entry.segment(geometry, range.lba) < tail)
            .map(|(range, _)| range)
            .collect();
        for range in old {
            index.remove(range);
        }
    }
}
