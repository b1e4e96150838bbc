//! Flash translation layer, simulated for a sample of the drive's pages.
//!
//! The amount of data that a drive must move depends on ratios, not on its size. So one page of every
//! `2^shift` is simulated exactly (a random one of each group, so that a sequential write meets each group
//! once), in a correspondingly smaller drive: page map, erase blocks, greedy collection. The large drive
//! moves `2^shift` times as much as the small one. At most 65,536 pages are simulated, so the map takes half
//! a megabyte and almost no time at any capacity.
//!
//! Limitation: a working set of a few pages is either missed or over-represented.

use plumb_block::mixed;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Maximum number of simulated pages.
const FOLLOWED_MAX: u64 = 1 << 16;
/// Additional erase blocks beyond the host's capacity and the over-provisioning, so that collection always
/// terminates.
const BLOCKS_SPARE: u64 = 4;
/// Size of a page of the map.
pub(super) const PAGE: u64 = 4096;
/// Marks an unmapped page, or an empty slot.
const NONE: u32 = u32::MAX;

/// Page map with garbage collection, for the simulated pages.
#[derive(Debug)]
pub(super) struct Ftl {
    /// Binary logarithm of the pages in a group.
    shift: u32,
    seed: u64,
    /// Slot of each simulated page.
    slot_of: Vec<u32>,
    /// Valid page in each slot.
    page_in: Vec<u32>,
    /// Number of valid pages of each block; an erased block has none and is in `erased`.
    valid: Vec<u32>,
    /// Number of slots in a block.
    slots: u32,
    erased: Vec<u32>,
    is_erased: Vec<bool>,
    /// Next slot of the block being filled.
    open: u32,
    /// End of the block being filled.
    open_end: u32,
    /// Number of unmapped simulated pages; if zero, no look-up is needed.
    unmapped: usize,
    /// Simulated pages moved by collection and not yet reported.
    moved: u64,
    /// Bytes programmed without data that do not make up a slot yet.
    padding: u64,
}

impl Ftl {
    /// Creates an erased drive of `pages` pages plus a share of `overprovisioning`.
    pub(super) fn new(pages: u64, overprovisioning: f64, seed: u64) -> Self {
        let mut shift = 0;
        while pages >> shift > FOLLOWED_MAX {
            shift += 1;
        }
        let followed = (pages >> shift).max(1);
        let slots = (followed / 256).clamp(4, 64);
        let host_blocks = followed.div_ceil(slots);
        let spare_blocks = (followed as f64 * overprovisioning) as u64 / slots;
        let blocks = host_blocks + spare_blocks.max(1) + BLOCKS_SPARE;
        Self {
            shift,
            seed,
            slot_of: vec![NONE; followed as usize],
            page_in: vec![NONE; (blocks * slots) as usize],
            valid: vec![0; blocks as usize],
            slots: slots as u32,
            erased: (0..blocks as u32).rev().collect(),
            is_erased: vec![true; blocks as usize],
            open: 0,
            open_end: 0,
            unmapped: followed as usize,
            moved: 0,
            padding: 0,
        }
    }

    /// Writes every page of an erased drive once, in order, each to the slot of its number.
    pub(super) fn fill(&mut self) {
        let pages = self.slot_of.len() as u32;
        let blocks = pages.div_ceil(self.slots);
        self.slot_of = (0..pages).collect();
        let slots = self.page_in.len() as u32;
        self.page_in = (0..slots).map(|slot| if slot < pages { slot } else { NONE }).collect();
        for block in 0..blocks {
            self.valid[block as usize] = self.slots.min(pages - block * self.slots);
            self.is_erased[block as usize] = false;
        }
        // The lowest blocks are at the end of the list, from which blocks are taken.
        self.erased.truncate(self.erased.len() - blocks as usize);
        (self.open, self.open_end) = (pages, blocks * self.slots);
        self.unmapped = 0;
    }

    /// Overwrites the whole drive `times` times in random order.
    pub(super) fn churn(&mut self, times: usize) {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let pages = self.slot_of.len() as u64;
        for _ in 0..self.slot_of.len() * times {
            let page = (u128::from(chance.next_u64()) * u128::from(pages)) >> 64;
            self.rewrite(page as usize);
        }
        self.moved = 0;
    }

    /// Returns the number of host pages written while one block of the simulated drive is filled.
    pub(super) const fn window_pages(&self) -> u64 {
        (self.slots as u64) << self.shift
    }

    /// Writes `count` pages from `first` on. Returns the number of pages that collection had to move.
    #[inline]
    pub(super) fn write(&mut self, first: u64, count: u64) -> u64 {
        let end = first + count;
        for group in first >> self.shift..=(end - 1) >> self.shift {
            // A single comparison that rarely holds; two would be unpredictable.
            let is_written = self.followed_of(group).wrapping_sub(first) < count;
            if is_written && (group as usize) < self.slot_of.len() {
                self.rewrite(group as usize);
            }
        }
        std::mem::take(&mut self.moved) << self.shift
    }

    /// Accounts for bytes wasted by programming a partial unit. Returns the number of pages that collection
    /// had to move.
    pub(super) fn pad(&mut self, bytes: u64) -> u64 {
        let slot = PAGE << self.shift;
        self.padding += bytes;
        while self.padding >= slot {
            self.padding -= slot;
            self.open_slot();
            self.open += 1;
            self.make_room();
        }
        std::mem::take(&mut self.moved) << self.shift
    }

    /// Unmaps `count` pages from `first` on.
    pub(super) fn trim(&mut self, first: u64, count: u64) {
        let end = first + count;
        for group in first >> self.shift..end.div_ceil(1 << self.shift).min(self.slot_of.len() as u64) {
            let followed = self.followed_of(group);
            if followed >= first && followed < end {
                self.invalidate(group as usize);
            }
        }
    }

    /// Returns true if the page is mapped, judged by the simulated page of its group.
    #[inline]
    pub(super) fn is_mapped(&self, page: u64) -> bool {
        let group = ((page >> self.shift) as usize).min(self.slot_of.len() - 1);
        self.unmapped == 0 || self.slot_of[group] != NONE
    }

    /// Returns the simulated page of `group`.
    #[inline]
    const fn followed_of(&self, group: u64) -> u64 {
        let mask = (1 << self.shift) - 1;
        (group << self.shift) + (mixed(group ^ self.seed) & mask)
    }

    fn rewrite(&mut self, page: usize) {
        self.invalidate(page);
        self.append(page);
        self.make_room();
    }

    /// Collects until enough blocks are erased.
    fn make_room(&mut self) {
        while self.erased.len() < 2 {
            self.collect();
        }
    }

    fn invalidate(&mut self, page: usize) {
        let slot = std::mem::replace(&mut self.slot_of[page], NONE);
        if slot != NONE {
            self.unmapped += 1;
            self.page_in[slot as usize] = NONE;
            self.valid[(slot / self.slots) as usize] -= 1;
        }
    }

    /// Ensures that there is a next slot.
    fn open_slot(&mut self) {
        if self.open == self.open_end {
            // Collection keeps two blocks erased and moves less than a block at a time, so there is one.
            let block = self.erased.pop().expect("collection keeps a block erased");
            self.is_erased[block as usize] = false;
            self.open = block * self.slots;
            self.open_end = self.open + self.slots;
        }
    }

    fn append(&mut self, page: usize) {
        self.open_slot();
        self.unmapped -= 1;
        self.slot_of[page] = self.open;
        self.page_in[self.open as usize] = page as u32;
        self.valid[(self.open / self.slots) as usize] += 1;
        self.open += 1;
    }

    /// Empties and erases the closed block with the fewest valid pages. There are more spare blocks than
    /// erased or open ones, so this block is never fully valid: each round gains a slot.
    fn collect(&mut self) {
        let open_block = (self.open_end.wrapping_sub(1) / self.slots) as usize;
        let (mut victim, mut least) = (0, u32::MAX);
        for (block, valid) in self.valid.iter().enumerate() {
            if *valid < least && !self.is_erased[block] && block != open_block {
                (victim, least) = (block as u32, *valid);
            }
        }
        for slot in victim * self.slots..(victim + 1) * self.slots {
            let page = self.page_in[slot as usize];
            if page != NONE {
                self.invalidate(page as usize);
                self.append(page as usize);
                self.moved += 1;
            }
        }
        self.is_erased[victim as usize] = true;
        self.erased.push(victim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every followed page is where the map says, and that the counts agree.
    fn self_check(ftl: &Ftl) {
        assert_eq!(ftl.slot_of.iter().filter(|slot| **slot == NONE).count(), ftl.unmapped);
        for (page, slot) in ftl.slot_of.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
            assert_eq!(ftl.page_in[*slot as usize], page as u32);
        }
        for (block, valid) in ftl.valid.iter().enumerate() {
            let slots = &ftl.page_in[block * ftl.slots as usize..][..ftl.slots as usize];
            assert_eq!(slots.iter().filter(|page| **page != NONE).count(), *valid as usize);
            assert!(!ftl.is_erased[block] || *valid == 0);
        }
    }

    fn amplification(overprovisioning: f64, pages: u64) -> f64 {
        let mut ftl = Ftl::new(pages, overprovisioning, 7);
        ftl.fill();
        ftl.churn(3);
        self_check(&ftl);
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
        let writes = 200_000_u64;
        let moved: u64 = (0..writes).map(|_| ftl.write(chance.next_u64() % pages, 1)).sum();
        self_check(&ftl);
        1.0 + moved as f64 / writes as f64
    }

    #[test]
    fn random_writes_amplify_as_theory_says_and_less_with_more_spare() {
        // Desnoyers 2012 (SYSTOR), greedy and uniform: about 1 / (1 - mean valid share of a victim); 7 %
        // spare gives near 7.5, 28 % about 2.4. A sample with blocks of 64 pages comes out near it.
        let (little, much) = (amplification(0.07, 50_000), amplification(0.28, 50_000));
        assert!((4.5..10.0).contains(&little), "{little}");
        assert!((2.0..3.0).contains(&much), "{much}");
        // A sample of one in 16 gives nearly the same amplification.
        let sampled = amplification(0.28, 50_000 << 4);
        assert!((sampled - much).abs() < 0.35, "{sampled} {much}");
    }

    #[test]
    fn sequential_overwrites_move_next_to_nothing() {
        let mut ftl = Ftl::new(1 << 20, 0.07, 7);
        ftl.fill();
        let moved: u64 = (0..1 << 15).map(|chunk| ftl.write(chunk * 32 % (1 << 20), 32)).sum();
        assert!(moved < 1 << 14, "{moved}");
        ftl.trim(0, 1 << 20);
        self_check(&ftl);
        assert!(!ftl.is_mapped(5) && ftl.slot_of.iter().all(|slot| *slot == NONE));
    }

    #[test]
    fn what_is_padded_takes_flash_as_what_is_written_does() {
        let pages = 1 << 17;
        let mut ftl = Ftl::new(pages, 0.28, 7);
        ftl.fill();
        let erased = ftl.erased.len();
        // A block's worth of slots, a page at a time, and one slot more.
        for _ in 0..(u64::from(ftl.slots) + 1) << ftl.shift {
            ftl.pad(PAGE);
        }
        assert_eq!(ftl.erased.len() + 2, erased, "two blocks are open or full of nothing");
        // However much is padded, no page is lost, and there is always room.
        for _ in 0..20 {
            ftl.pad(pages * PAGE);
            self_check(&ftl);
        }
        assert!(ftl.erased.len() >= 2 && ftl.unmapped == 0);
    }

    #[test]
    fn the_smallest_drives_collect_without_end_in_sight_but_end() {
        for pages in [1, 2, 5, 256, 257, 1023] {
            let mut ftl = Ftl::new(pages, 0.0, 3);
            ftl.fill();
            ftl.churn(20);
            self_check(&ftl);
        }
    }
}
