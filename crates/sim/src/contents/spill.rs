//! Pages of which the blocks differ.

use plumb_block::{Lba, Pattern};

use super::geometry::bits;
use super::medium::{Medium, Part, What};
use super::page_map::Tag;

/// A page of which the blocks differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spill {
    pub(super) blocks: [What; 8],
    /// The bytes of those that are bytes; 0 if none is.
    pub(super) slot: u32,
}

impl Medium {
    pub(super) fn store_in_spill(&mut self, page: u64, part: Part) {
        let mut spill = self.spill_of(page);
        for block in bits(part.mask) {
            spill.blocks[block] = part.what.shifted(block as u64);
        }
        if part.what == What::Bytes {
            if spill.slot == 0 && part.gives_slot {
                spill.slot = part.slot;
            } else {
                if spill.slot == 0 {
                    spill.slot = self.slots.take();
                }
                for block in bits(part.mask) {
                    self.slots.copy(part.slot, spill.slot, self.geometry.bytes_of(block));
                }
                if part.gives_slot {
                    self.slots.give_back(part.slot);
                }
            }
        }
        self.put_spill(page, spill);
    }

    /// The page as a spill, taken out of its place.
    pub(super) fn spill_of(&mut self, page: u64) -> Spill {
        // What is taken out here is put back past those that wait for the tables.
        self.settle_map();
        match self.map.look(page) {
            Tag::Spill(number) => {
                self.spills.remove(number).unwrap_or(Spill { blocks: [What::Hole; 8], slot: 0 })
            }
            tag => {
                let slot = if let Tag::Bytes(slot) = tag { slot } else { 0 };
                let what = self.page_is(page, tag);
                Spill { blocks: std::array::from_fn(|block| what.shifted(block as u64)), slot }
            }
        }
    }

    /// Puts a spill in its place, as briefly as it can be said.
    pub(super) fn put_spill(&mut self, page: u64, mut spill: Spill) {
        let used = &spill.blocks[..self.geometry.blocks_per_page() as usize];
        if spill.slot != 0 && !used.contains(&What::Bytes) {
            self.slots.give_back(spill.slot);
            spill.slot = 0;
        }
        let first = used[0];
        let is_one = used.iter().enumerate().all(|(block, what)| *what == first.shifted(block as u64));
        let brief = match first {
            What::Hole | What::InFile if is_one => Some(Tag::Hole),
            What::Zeroes if is_one => Some(Tag::Zeroes),
            What::Bytes if is_one => Some(Tag::Bytes(spill.slot)),
            What::Pattern(pattern) if is_one && pattern.lba.0 == self.geometry.first_block(page) => {
                self.in_brief(pattern)
            }
            _ => None,
        };
        let tag = brief.unwrap_or_else(|| Tag::Spill(self.spills.insert(spill)));
        self.map.replace(page, tag);
    }

    /// What the first block of a page with this tag is, if its blocks do not differ.
    pub(super) fn page_is(&self, page: u64, tag: Tag) -> What {
        match tag {
            Tag::Zeroes => What::Zeroes,
            Tag::Bytes(_) => What::Bytes,
            Tag::Pattern { seed, generation } => {
                let lba = Lba(self.geometry.first_block(page));
                let (seed, generation) = (self.seeds[seed as usize], u64::from(generation));
                What::Pattern(Pattern { seed, lba, generation })
            }
            Tag::Hole if self.file.is_some() => What::InFile,
            Tag::Hole | Tag::Spill(_) => What::Hole,
        }
    }
}
