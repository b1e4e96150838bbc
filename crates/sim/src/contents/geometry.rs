//! Pages: the unit in which a drive's contents are kept, 4 KiB or one logical block, whichever is larger.

use plumb_block::{Lba, LbaRange};

use super::promise::Shape;

/// The least length of a page.
const PAGE_BYTES_MIN: u64 = 4096;

/// Blocks and pages of one drive. A set of blocks of a page is a bit mask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub(super) block_bytes: usize,
    pub(super) page_bytes: usize,
    pub(super) blocks: u64,
    /// Blocks to a page, as a power of two: 0 to 3.
    shift: u32,
}

impl Geometry {
    pub(super) fn of(shape: Shape) -> Self {
        let page_bytes = shape.logical_block.0.max(PAGE_BYTES_MIN);
        Self {
            block_bytes: shape.logical_block.0 as usize,
            page_bytes: page_bytes as usize,
            blocks: shape.blocks,
            shift: (page_bytes / shape.logical_block.0).ilog2(),
        }
    }

    pub(super) const fn blocks_per_page(self) -> u64 {
        1 << self.shift
    }

    /// The mask of a whole page.
    pub(super) const fn full(self) -> u8 {
        u8::MAX >> (8 - (1 << self.shift))
    }

    pub(super) const fn page_of(self, lba: u64) -> u64 {
        lba >> self.shift
    }

    pub(super) const fn first_block(self, page: u64) -> u64 {
        page << self.shift
    }

    /// The pages of a range that is not empty.
    pub(super) const fn pages(self, range: LbaRange) -> std::ops::Range<u64> {
        self.page_of(range.lba.0)..self.page_of(range.end().0 - 1) + 1
    }

    /// The blocks of a page.
    pub(super) const fn page_range(self, page: u64) -> LbaRange {
        LbaRange::new(Lba(self.first_block(page)), self.blocks_per_page())
    }

    /// Which blocks of `page` are in `range`.
    pub(super) fn mask(self, page: u64, range: LbaRange) -> u8 {
        let first = self.first_block(page);
        let from = range.lba.0.clamp(first, first + self.blocks_per_page()) - first;
        let to = range.end().0.clamp(first, first + self.blocks_per_page()) - first;
        let below = |bits: u64| ((1_u16 << bits) - 1) as u8;
        below(to) & !below(from)
    }

    /// Where the bytes of a block are in its page.
    pub(super) const fn bytes_of(self, block: usize) -> std::ops::Range<usize> {
        block * self.block_bytes..(block + 1) * self.block_bytes
    }
}

/// The numbers of the bits of a mask.
pub(super) fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |bit| mask >> bit & 1 == 1)
}
