//! The medium in a file: the file has the bytes, and a spill says which blocks are unreadable.

use super::geometry::bits;
use super::medium::{Medium, Part, What};

impl Medium {
    pub(super) fn clear_file(&mut self, pages: std::ops::Range<u64>, what: What, but: &[u64]) {
        let page_bytes = self.geometry.page_bytes as u64;
        let Some(file) = &mut self.file else { return };
        let mut from = pages.start;
        let stops = but.iter().copied().filter(|page| pages.contains(page)).chain([pages.end]);
        for stop in stops {
            let (offset, length) = (from * page_bytes, stop.saturating_sub(from) * page_bytes);
            match what {
                What::Hole => file.punch(offset, length),
                _ => file.zero(offset, length),
            }
            from = stop + 1;
        }
    }

    pub(super) fn store_in_file(&mut self, page: u64, part: Part) {
        let mut spill = self.spill_of(page);
        for block in bits(part.mask) {
            spill.blocks[block] = if part.what == What::Unreadable { What::Unreadable } else { What::InFile };
        }
        self.put_spill(page, spill);
        let mut left = part.mask;
        while left != 0 && part.what != What::Unreadable {
            let block = left.trailing_zeros() as usize;
            let count = (left >> block).trailing_ones() as usize;
            self.write_run(page, part, block, count);
            left &= !(((1_u16 << count) - 1) << block) as u8;
        }
        if part.gives_slot {
            self.slots.give_back(part.slot);
        }
    }

    /// Writes `count` blocks of a page from `block` on to the file.
    pub(super) fn write_run(&mut self, page: u64, part: Part, block: usize, count: usize) {
        let geometry = self.geometry;
        let Some(file) = &mut self.file else { return };
        let bytes = geometry.bytes_of(block).start..geometry.bytes_of(block + count).start;
        let offset = page * geometry.page_bytes as u64 + bytes.start as u64;
        match part.what.shifted(block as u64) {
            What::Hole => file.punch(offset, bytes.len() as u64),
            What::Zeroes => file.zero(offset, bytes.len() as u64),
            What::Bytes => file.write(offset, &self.slots.bytes(part.slot)[bytes]),
            What::Pattern(pattern) => {
                pattern.fill(geometry.block_bytes, &mut self.scratch[bytes.clone()]);
                file.write(offset, &self.scratch[bytes]);
            }
            What::Unreadable | What::InFile => {}
        }
    }
}
