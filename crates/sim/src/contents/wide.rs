//! Discards and zeroes over long runs that may still change: by their range, not by their pages.
//!
//! They are kept by the power of two of their length, each class sorted by its start: what lies over a block is found
//! in O(log n) as long as the runs of one length do not lie over each other by the hundred.

use std::collections::BTreeSet;

use plumb_block::LbaRange;

/// Numbers of commands by the range they cover.
#[derive(Debug)]
pub(super) struct Wide {
    classes: Vec<BTreeSet<(u64, u64, u32)>>,
    count: usize,
}

impl Wide {
    pub(super) fn new() -> Self {
        Self { classes: vec![BTreeSet::new(); 64], count: 0 }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn insert(&mut self, range: LbaRange, number: u32) {
        self.count += usize::from(self.classes[class(range)].insert((range.lba.0, range.nlb, number)));
    }

    pub(super) fn remove(&mut self, range: LbaRange, number: u32) {
        self.count -= usize::from(self.classes[class(range)].remove(&(range.lba.0, range.nlb, number)));
    }

    pub(super) fn clear(&mut self) {
        self.classes.iter_mut().for_each(BTreeSet::clear);
        self.count = 0;
    }

    /// Those that have a block in common with `range`.
    pub(super) fn over(&self, range: LbaRange) -> impl Iterator<Item = u32> {
        let classes = if self.is_empty() { &[] } else { self.classes.as_slice() };
        let occupied = classes.iter().enumerate().filter(|(_, set)| !set.is_empty());
        occupied.flat_map(move |(power, set)| {
            let reach = 2_u64.checked_shl(power as u32).unwrap_or(u64::MAX);
            let first = range.lba.0.saturating_sub(reach);
            let near = set.range((first, 0, 0)..(range.end().0, 0, 0));
            near.filter(move |(lba, nlb, _)| LbaRange::new(plumb_block::Lba(*lba), *nlb).overlaps(range))
                .map(|(_, _, number)| *number)
        })
    }

    /// The first start or end of one of them after block `lba`; `u64::MAX` if there is none.
    pub(super) fn next_edge(&self, lba: u64) -> u64 {
        let edges = self.classes.iter().flatten().flat_map(|(first, nlb, _)| [*first, first + nlb]);
        edges.filter(|edge| *edge > lba).min().unwrap_or(u64::MAX)
    }
}

const fn class(range: LbaRange) -> usize {
    range.nlb.ilog2() as usize
}
