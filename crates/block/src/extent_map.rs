//! A map from block ranges to values: one entry for each run of blocks with a common value.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::request::LbaRange;
use crate::units::Lba;

/// Non-overlapping extents, each with a value. A value applies to every block of its extent equally, so an
/// extent can be split anywhere.
#[derive(Debug, Clone)]
pub struct ExtentMap<V> {
    /// Extents by first block.
    extents: BTreeMap<u64, Extent<V>>,
}

#[derive(Debug, Clone)]
struct Extent<V> {
    /// First block after the extent.
    end: u64,
    value: V,
}

impl<V> Default for ExtentMap<V> {
    fn default() -> Self {
        Self { extents: BTreeMap::new() }
    }
}

impl<V: Clone> ExtentMap<V> {
    /// Returns true if no block has a value.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Returns the number of extents.
    pub fn len(&self) -> usize {
        self.extents.len()
    }

    /// Returns all extents in order.
    pub fn iter(&self) -> impl Iterator<Item = (LbaRange, &V)> {
        self.extents.iter().map(|(first, extent)| (range_of(*first, extent.end), &extent.value))
    }

    /// Returns the extents that overlap `range`, clipped to it, in order.
    pub fn over(&self, range: LbaRange) -> impl Iterator<Item = (LbaRange, &V)> {
        let (start, end) = (range.lba.0, range.end().0.max(range.lba.0));
        let before = self.extents.range(..start).next_back();
        let before = before.filter(|(_, extent)| extent.end > start && start < end);
        before
            .into_iter()
            .chain(self.extents.range(start..end))
            .map(move |(first, extent)| (range_of((*first).max(start), extent.end.min(end)), &extent.value))
    }

    /// Returns the first extent that overlaps `range`, not clipped.
    pub fn first_over(&self, range: LbaRange) -> Option<(LbaRange, &V)> {
        let (start, end) = (range.lba.0, range.end().0);
        if start >= end {
            return None;
        }
        let before = self.extents.range(..=start).next_back().filter(|(_, extent)| extent.end > start);
        let (first, extent) = before.or_else(|| self.extents.range(start..end).next())?;
        Some((range_of(*first, extent.end), &extent.value))
    }

    /// Returns the value of the extent that starts at block `first`.
    pub fn starting_at(&mut self, first: Lba) -> Option<&mut V> {
        self.extents.get_mut(&first.0).map(|extent| &mut extent.value)
    }

    /// Removes the extent that starts at block `first`.
    pub fn remove_at(&mut self, first: Lba) {
        self.extents.remove(&first.0);
    }

    /// Removes the extent that is exactly `range` if its value satisfies `is_such`. Returns true if it did.
    /// Costs a single look-up.
    pub fn take_exact(&mut self, range: LbaRange, is_such: impl FnOnce(&V) -> bool) -> bool {
        match self.extents.entry(range.lba.0) {
            Entry::Occupied(found) if found.get().end == range.end().0 && is_such(&found.get().value) => {
                found.remove();
                true
            }
            _ => false,
        }
    }

    /// Removes all values in `range`.
    pub fn remove(&mut self, range: LbaRange) {
        self.take(range, |_, _| {});
    }

    /// Removes all values in `range` and calls `goes` with each removed piece, the last first.
    pub fn take(&mut self, range: LbaRange, mut goes: impl FnMut(LbaRange, &V)) {
        let (start, end) = (range.lba.0, range.end().0);
        while let Some((first, extent)) = self.extents.range_mut(..end).next_back() {
            let (first, old_end) = (*first, extent.end);
            if old_end <= start {
                return;
            }
            goes(range_of(first.max(start), old_end.min(end)), &extent.value);
            let rest = (old_end > end).then(|| extent.value.clone());
            if first < start {
                extent.end = start;
            } else {
                self.extents.remove(&first);
            }
            if let Some(value) = rest {
                self.extents.insert(end, Extent { end: old_end, value });
            }
        }
    }

    /// Updates every block of `range`: calls `change` on each existing value, and inserts `vacant` into the
    /// gaps. Afterwards no extent crosses the ends of `range`.
    pub fn update(&mut self, range: LbaRange, vacant: impl Fn() -> V, mut change: impl FnMut(&mut V)) {
        let (start, end) = (range.lba.0, range.end().0);
        let last = self.extents.range(..end).next_back();
        if last.is_none_or(|(_, extent)| extent.end <= start) {
            self.extents.insert(start, Extent { end, value: vacant() });
            return;
        }
        self.split(start);
        self.split(end);
        let (mut at, mut gaps) = (start, Vec::new());
        for (first, extent) in self.extents.range_mut(start..end) {
            if at < *first {
                gaps.push((at, *first));
            }
            change(&mut extent.value);
            at = extent.end;
        }
        if at < end {
            gaps.push((at, end));
        }
        for (first, end) in gaps {
            self.extents.insert(first, Extent { end, value: vacant() });
        }
    }

    /// Splits the extent that contains block `at`, so that one starts there.
    fn split(&mut self, at: u64) {
        let Some((_, extent)) = self.extents.range_mut(..at).next_back() else { return };
        if extent.end > at {
            let rest = Extent { end: extent.end, value: extent.value.clone() };
            extent.end = at;
            self.extents.insert(at, rest);
        }
    }
}

impl<V: Clone + PartialEq> ExtentMap<V> {
    /// Sets the value of every block of `range`. A range without values joins an adjacent extent before it
    /// that has an equal value.
    pub fn insert(&mut self, range: LbaRange, value: V) {
        self.replace(range, value, |_, _| {});
    }

    /// Sets the value of every block of `range`, as [`insert`](Self::insert) does, and calls `goes` with each
    /// replaced piece, the last first. Costs one look-up instead of two.
    pub fn replace(&mut self, range: LbaRange, value: V, mut goes: impl FnMut(LbaRange, &V)) {
        let (start, end) = (range.lba.0, range.end().0);
        if start >= end {
            return;
        }
        match self.extents.range_mut(..end).next_back() {
            Some((first, extent)) if *first == start && extent.end == end => {
                goes(range, &extent.value);
                extent.value = value;
                return;
            }
            Some((_, before)) if before.end == start && before.value == value => {
                before.end = end;
                return;
            }
            Some((_, extent)) if extent.end > start => self.take(range, goes),
            _ => {}
        }
        self.extents.insert(start, Extent { end, value });
    }
}

const fn range_of(first: u64, end: u64) -> LbaRange {
    LbaRange::new(Lba(first), end - first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

    fn below(chance: &mut Xoshiro256PlusPlus, end: u64) -> u64 {
        chance.next_u64() % end
    }

    #[test]
    fn extents_are_an_array_of_blocks() {
        for seed in 0..50 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut map, mut blocks) = (ExtentMap::default(), [None; 40]);
            for step in 0..200_u64 {
                let first = below(&mut chance, 40);
                let range = LbaRange::new(Lba(first), below(&mut chance, 41 - first));
                let here = first as usize..range.end().0 as usize;
                let (mut gone, there) = ([None; 40], blocks[here.clone()].to_vec());
                let goes = |range: LbaRange, value: &u64| {
                    gone[range.lba.0 as usize..range.end().0 as usize].fill(Some(*value));
                };
                match below(&mut chance, 3) {
                    0 => {
                        map.replace(range, step % 3, goes);
                        assert_eq!(gone[here.clone()], there, "seed {seed}, step {step}");
                        blocks[here].fill(Some(step % 3));
                    }
                    1 => {
                        map.take(range, goes);
                        assert_eq!(gone[here.clone()], there, "seed {seed}, step {step}");
                        blocks[here].fill(None);
                    }
                    _ if range.nlb > 0 => {
                        map.update(range, || 7, |value| *value += 10);
                        let there = blocks[here].iter_mut();
                        there.for_each(|block| *block = Some(block.map_or(7, |value| value + 10)));
                    }
                    _ => {}
                }
                let asked = LbaRange::new(Lba(step % 20), step % 21);
                let mut found = [None; 40];
                for (range, value) in map.over(asked) {
                    assert!(range.nlb > 0 && range.lba >= asked.lba && range.end() <= asked.end());
                    found[range.lba.0 as usize..range.end().0 as usize].fill(Some(*value));
                }
                let wanted = |lba: usize| asked.overlaps(LbaRange::new(Lba(lba as u64), 1));
                let expected: Vec<_> = (0..40).map(|lba| blocks[lba].filter(|_| wanted(lba))).collect();
                assert_eq!(found.to_vec(), expected, "seed {seed}, step {step}");
                let first = map.over(asked).next().map(|(range, _)| range.lba);
                assert_eq!(map.first_over(asked).map(|(range, _)| range.lba.max(asked.lba)), first);
            }
        }
    }

    #[test]
    fn a_run_written_in_order_is_one_extent() {
        let mut map = ExtentMap::default();
        for lba in 0..6 {
            map.insert(LbaRange::new(Lba(lba), 1), 'x');
        }
        assert_eq!(map.iter().collect::<Vec<_>>(), [(LbaRange::new(Lba(0), 6), &'x')]);
    }
}
