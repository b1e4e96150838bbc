//! What is durable: page by page, patterns as such, or in a file.
//!
//! Most pages are one pattern and fit into the entry of the page. A page of which the blocks differ has a [`Spill`].
//! With a file behind, the file has the bytes, and a spill only says which blocks are unreadable.

use std::collections::BTreeMap;

use plumb_block::{Lba, LbaRange, Pattern};

use super::file::BackingFile;
use super::geometry::{Geometry, bits};
use super::leaves::NUMBER_MAX;
use super::page_map::{PageMap, Tag};
use super::promise::{Backing, BackingError};
use super::slab::Slab;
use super::slots::Slots;
use super::spill::Spill;
use crate::rules::planted::{Bug, planted};

/// What a command makes of blocks. The address of a pattern is that of the first block in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Hole,
    Zeroes,
    Pattern(Pattern),
    /// In a slot, each block at its place in the page.
    Bytes,
    Unreadable,
    /// In the backing file.
    InFile,
}

impl What {
    /// The same, for the block that is `blocks` after the first one (or before it: addresses wrap around).
    #[inline]
    pub(super) const fn shifted(self, blocks: u64) -> Self {
        match self {
            Self::Pattern(pattern) => {
                Self::Pattern(Pattern { lba: Lba(pattern.lba.0.wrapping_add(blocks)), ..pattern })
            }
            other => other,
        }
    }
}

/// What is to be stored in some blocks of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// For the first block of the page.
    pub(super) what: What,
    /// The bytes, if they are bytes; else 0.
    pub(super) slot: u32,
    /// Which blocks.
    pub(super) mask: u8,
    /// Whether the slot may be kept; otherwise its bytes are copied.
    pub(super) gives_slot: bool,
}

/// The medium.
#[derive(Debug)]
pub(super) struct Medium {
    pub(super) map: PageMap,
    pub(super) slots: Slots,
    pub(super) file: Option<BackingFile>,
    pub(super) geometry: Geometry,
    pub(super) spills: Slab<Spill>,
    pub(super) seeds: Vec<u64>,
    pub(super) seed_numbers: BTreeMap<u64, u32>,
    pub(super) scratch: Vec<u8>,
}

impl Medium {
    pub(super) fn new(geometry: Geometry, backing: Backing) -> Self {
        let file = match backing {
            Backing::File(file) => Some(BackingFile::new(file)),
            Backing::Memory | Backing::Nothing => None,
        };
        Self {
            map: PageMap::new(),
            slots: Slots::new(geometry.page_bytes),
            file,
            geometry,
            spills: Slab::new(),
            seeds: Vec::new(),
            seed_numbers: BTreeMap::new(),
            scratch: vec![0; geometry.page_bytes],
        }
    }

    /// Makes blocks of a page durable. The slot of `part` is gone afterwards if the part gives it.
    #[inline]
    pub(super) fn store(&mut self, page: u64, part: Part) {
        if self.file.is_some() {
            return self.store_in_file(page, part);
        }
        let first = self.geometry.first_block(page);
        let is_whole = part.mask == self.geometry.full() || planted(Bug::PartIsWhole);
        let tag = match part.what {
            What::Hole if is_whole => Tag::Hole,
            What::Zeroes if is_whole => Tag::Zeroes,
            What::Bytes if is_whole => Tag::Bytes(self.own(part)),
            What::Pattern(pattern) if is_whole && pattern.lba.0 == first => match self.in_brief(pattern) {
                Some(tag) => tag,
                None => return self.store_in_spill(page, part),
            },
            _ => return self.store_in_spill(page, part),
        };
        if self.map.put(page, tag) {
            self.settle_map();
        }
    }

    /// Brings what was put into the map last to its tables.
    #[inline]
    pub(super) fn settle_map(&mut self) {
        self.map.approach_recent();
        for place in 0..self.map.recent.len() {
            let (page, tag) = self.map.recent.get(place);
            let before = self.map.replace(page, tag);
            if before.is_numbered() {
                self.forget(before.tag());
            }
        }
        self.map.recent.clear();
    }

    /// A pattern over a whole page; `None` if it is one that the map cannot say.
    #[inline]
    pub(super) fn in_brief(&mut self, pattern: Pattern) -> Option<Tag> {
        let generation = u32::try_from(pattern.generation).ok()?;
        Some(Tag::Pattern { seed: self.number_of(pattern.seed)?, generation })
    }

    fn own(&mut self, part: Part) -> u32 {
        if part.gives_slot {
            return part.slot;
        }
        let slot = self.slots.take();
        self.slots.copy(part.slot, slot, 0..self.geometry.page_bytes);
        slot
    }

    #[inline]
    fn forget(&mut self, tag: Tag) {
        match tag {
            Tag::Bytes(slot) => self.slots.give_back(slot),
            Tag::Spill(number) => {
                let slot = self.spills.remove(number).map_or(0, |spill| spill.slot);
                self.slots.give_back(slot);
            }
            Tag::Hole | Tag::Zeroes | Tag::Pattern { .. } => {}
        }
    }

    #[inline]
    fn number_of(&mut self, seed: u64) -> Option<u32> {
        if self.seeds.last() == Some(&seed) {
            return Some(self.seeds.len() as u32 - 1);
        }
        if let Some(number) = self.seed_numbers.get(&seed) {
            return Some(*number);
        }
        let number = u32::try_from(self.seeds.len()).ok().filter(|number| *number <= NUMBER_MAX)?;
        self.seeds.push(seed);
        self.seed_numbers.insert(seed, number);
        Some(number)
    }

    /// What the blocks of a page are, as parts that do not overlap, in any order.
    pub(super) fn parts(&self, page: u64, wanted: u8, found: &mut impl FnMut(Part)) {
        match self.map.look(page) {
            Tag::Spill(number) => {
                let spill = &self.spills[number];
                for block in bits(wanted) {
                    let what = spill.blocks[block].shifted(0_u64.wrapping_sub(block as u64));
                    found(Part { what, slot: spill.slot, mask: 1 << block, gives_slot: false });
                }
            }
            tag => {
                let slot = if let Tag::Bytes(slot) = tag { slot } else { 0 };
                let what = self.page_is(page, tag);
                found(Part { what, slot, mask: wanted, gives_slot: false });
            }
        }
    }

    /// Makes a long run durable as nothing or as zeroes, but for the pages in `crowded`, which are sorted.
    pub(super) fn store_run(&mut self, range: LbaRange, what: What, crowded: &[u64]) {
        let geometry = self.geometry;
        let inner = range.lba.0.next_multiple_of(geometry.blocks_per_page());
        let inner = geometry.page_of(inner)..geometry.page_of(range.end().0);
        let mut inner = inner.start..inner.end.max(inner.start);
        if planted(Bug::WideDiscardTooShort) {
            inner.end = inner.end.saturating_sub(1).max(inner.start);
        }
        let all = geometry.pages(range);
        let edges = [all.start, all.end - 1];
        for (index, page) in edges.into_iter().enumerate() {
            let is_new = index == 0 || edges[0] != page;
            let mask = geometry.mask(page, range);
            if is_new && !inner.contains(&page) && mask != geometry.full() && !crowded.contains(&page) {
                self.store(page, Part { what, slot: 0, mask, gives_slot: false });
            }
        }
        if self.file.is_some() {
            self.clear_file(inner.clone(), what, crowded);
        }
        if !planted(Bug::RecentOverRun) {
            self.settle_map();
        }
        let mut dropped = Vec::new();
        let is_zeroes = what == What::Zeroes && self.file.is_none();
        let mut from = inner.start;
        let stops = crowded.iter().copied().filter(|page| inner.contains(page)).chain([inner.end]);
        for stop in stops {
            self.map.set_all(from..stop, is_zeroes, &mut |tag| dropped.push(tag));
            from = stop + 1;
        }
        dropped.into_iter().for_each(|tag| self.forget(tag));
    }

    /// Makes the bytes of one block; `None` if it is unreadable.
    pub(super) fn bytes(
        &self,
        page: u64,
        block: usize,
        part: Part,
        into: &mut [u8],
    ) -> Result<bool, BackingError> {
        match part.what.shifted(block as u64) {
            What::Hole | What::Zeroes => into.fill(0),
            What::Bytes => into.copy_from_slice(&self.slots.bytes(part.slot)[self.geometry.bytes_of(block)]),
            What::Pattern(pattern) => pattern.fill(self.geometry.block_bytes, into),
            What::InFile => {
                let offset =
                    page * self.geometry.page_bytes as u64 + self.geometry.bytes_of(block).start as u64;
                if let Some(file) = &self.file {
                    file.read(offset, into)?;
                }
            }
            What::Unreadable => return Ok(false),
        }
        Ok(true)
    }

    /// Lets what was collected reach the file.
    pub(super) fn drain(&mut self) {
        if let Some(file) = &mut self.file {
            file.drain();
        }
    }

    /// The first failure of the file.
    pub(super) fn failed(&self) -> Option<BackingError> {
        self.file.as_ref().and_then(BackingFile::failed)
    }
}
