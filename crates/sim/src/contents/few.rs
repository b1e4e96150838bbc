//! The entries of a region of which few pages were ever said: each page by itself, and all others alike.
//!
//! A large drive that is written at random has a few pages in each of thousands of regions. Tables by address would be
//! almost empty there, and most of what a write costs would be making them. Open addressing; nothing is taken out, as
//! what is discarded is said to be a hole.

use super::leaves::Entry;

/// The least size, as a power of two.
const BITS_MIN: u32 = 4;
/// With more pages than this, tables by address take about as much memory, and are faster.
const PAGES_MAX: u32 = 1024;

/// Entries by the number of the page in its region.
#[derive(Debug)]
pub(super) struct Few {
    /// The page plus one, 0 for an empty place; and its entry.
    places: Box<[(u32, Entry)]>,
    bits: u32,
    count: u32,
    /// What the other pages are.
    rest: Entry,
}

impl Few {
    /// A region of which all pages are `rest`.
    pub(super) fn new(rest: Entry) -> Self {
        Self { places: empty(BITS_MIN), bits: BITS_MIN, count: 0, rest }
    }

    pub(super) const fn rest(&self) -> Entry {
        self.rest
    }

    /// Whether the next page had better go to a table by address.
    pub(super) const fn is_full(&self) -> bool {
        self.count == PAGES_MAX
    }

    /// Knuth's multiplicative hashing with the golden ratio.
    #[inline]
    const fn home(&self, page: u32) -> usize {
        (page.wrapping_mul(0x9e37_79b9) >> (32 - self.bits)) as usize
    }

    /// Where the page is, or where it would be put.
    #[inline]
    fn place(&self, page: u32) -> usize {
        let mut place = self.home(page);
        while self.places[place].0 != 0 && self.places[place].0 != page + 1 {
            place = (place + 1) & ((1 << self.bits) - 1);
        }
        place
    }

    /// What a page is.
    #[inline]
    pub(super) fn get(&self, page: u32) -> Entry {
        let (found, entry) = self.places[self.place(page)];
        if found == 0 { self.rest } else { entry }
    }

    /// What stands where looking for a page begins.
    #[inline]
    pub(super) fn near(&self, page: u32) -> u32 {
        self.places[self.home(page)].0
    }

    /// Says what a page is; what it was. Not if it [is full](Self::is_full).
    #[inline]
    pub(super) fn replace(&mut self, page: u32, entry: Entry) -> Entry {
        let place = self.place(page);
        let (found, before) = std::mem::replace(&mut self.places[place], (page + 1, entry));
        if found != 0 {
            return before;
        }
        self.count += 1;
        if self.count as usize * 4 > self.places.len() * 3 {
            self.grow();
        }
        self.rest
    }

    fn grow(&mut self) {
        self.bits += 1;
        let before = std::mem::replace(&mut self.places, empty(self.bits));
        for (page, entry) in before.into_iter().filter(|(page, _)| *page != 0) {
            let place = self.place(page - 1);
            self.places[place] = (page, entry);
        }
    }

    /// The pages that were said, in no order.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, Entry)> {
        self.places.iter().filter(|(page, _)| *page != 0).map(|(page, entry)| (page - 1, *entry))
    }

    /// For how many pages from this one on, and at most `far`, nothing else is known than of this one.
    pub(super) fn run(&self, page: u32, far: u64) -> u64 {
        if far == 1 || self.places[self.place(page)].0 != 0 {
            return 1;
        }
        let next = self.each().map(|(other, _)| other).filter(|other| *other > page).min();
        next.map_or(far, |next| far.min(u64::from(next - page)))
    }

    /// Makes all of these pages like the others. What they were goes to `dropped`.
    pub(super) fn clear(&mut self, pages: std::ops::Range<u32>, dropped: &mut impl FnMut(Entry)) {
        let said = self.places.iter_mut().filter(|(page, _)| *page != 0 && pages.contains(&(page - 1)));
        said.for_each(|(_, entry)| dropped(std::mem::replace(entry, self.rest)));
    }
}

fn empty(bits: u32) -> Box<[(u32, Entry)]> {
    vec![(0, Entry::of(0)); 1 << bits].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::super::page_map::Tag;
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
    use std::collections::BTreeMap;

    #[test]
    fn few_entries_are_a_map() {
        for seed in 0..20 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut few, mut map) = (Few::new(Entry::of(1)), BTreeMap::new());
            let pages = 100 << (seed % 8);
            while !few.is_full() && map.len() < 90 {
                let page = (chance.next_u64() % pages) as u32;
                let tag = Tag::Bytes(chance.next_u64() as u32 >> 4);
                let before = map.insert(page, tag).unwrap_or(Tag::Zeroes);
                assert_eq!(few.replace(page, tag.into()).tag(), before, "seed {seed}");
                let asked = (chance.next_u64() % pages) as u32;
                assert_eq!(few.get(asked).tag(), map.get(&asked).copied().unwrap_or(Tag::Zeroes));
                let next = map.range(asked..).next().map_or(1 << 17, |(next, _)| *next);
                let run = if next == asked { 1 } else { u64::from(next - asked) };
                assert_eq!(few.run(asked, u64::from((1 << 17) - asked)), run, "seed {seed}");
            }
            let (mut dropped, half) = (Vec::new(), pages as u32 / 2);
            few.clear(0..half, &mut |entry| dropped.push(entry.tag()));
            assert_eq!(dropped.len(), map.range(..half).count(), "seed {seed}");
            assert!((0..half).all(|page| few.get(page).tag() == Tag::Zeroes), "seed {seed}");
            assert!(map.range(half..).all(|(page, tag)| few.get(*page).tag() == *tag), "seed {seed}");
        }
    }
}
