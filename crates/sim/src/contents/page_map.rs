//! One entry for each page of a drive, of which most were never written.
//!
//! ```text
//!   page number:  │ root │    middle: 13 bits    │ leaf: 3 bits │
//!   roots ──► middle (8,192 references) ──► leaf (8 entries of 16 bytes)
//!         └─► nothing, or zeroes, for 65,536 pages at once
//! ```
//!
//! A reference is to a table or says that all below is one thing, so what is discarded costs no memory and a discard
//! of a whole disk takes time only for what was written.

use super::slab::Slab;

const LEAF_BITS: u32 = 3;
const MIDDLE_BITS: u32 = 13;
const LEAF_PAGES: u64 = 1 << LEAF_BITS;
const MIDDLE_PAGES: u64 = 1 << (LEAF_BITS + MIDDLE_BITS);
/// A reference: nothing below.
const HOLE: u32 = 0;
/// A reference: zeroes below. What is above is the number of a table, plus this.
const ZEROES: u32 = 1;

/// What a page holds, in brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Never written, or discarded; with a file behind, whatever the file says.
    Hole,
    /// Zeroes that were written.
    Zeroes,
    /// One pattern over the whole page, each block made from its own address; the number of the seed.
    Pattern(u32),
    /// Bytes; the number of the slot.
    Bytes(u32),
    /// Different things in its blocks; the number of the spill.
    Spill(u32),
}

/// One page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The newest of the parts of commands that touch the page and may still change; 0 for none.
    pub(super) head: u32,
    tag: u32,
    /// Of the pattern.
    pub(super) generation: u64,
}

const KIND_SHIFT: u32 = 29;
/// Numbers of seeds, slots and spills end here: 536 million.
pub(super) const NUMBER_MAX: u32 = (1 << KIND_SHIFT) - 1;

impl Entry {
    const fn of(reference: u32) -> Self {
        Self { head: 0, tag: reference << KIND_SHIFT, generation: 0 }
    }

    pub(super) const fn tag(self) -> Tag {
        let number = self.tag & NUMBER_MAX;
        match self.tag >> KIND_SHIFT {
            0 => Tag::Hole,
            1 => Tag::Zeroes,
            2 => Tag::Pattern(number),
            3 => Tag::Bytes(number),
            _ => Tag::Spill(number),
        }
    }

    pub(super) const fn set(&mut self, tag: Tag) {
        self.tag = match tag {
            Tag::Hole => 0,
            Tag::Zeroes => 1 << KIND_SHIFT,
            Tag::Pattern(number) => 2 << KIND_SHIFT | number,
            Tag::Bytes(number) => 3 << KIND_SHIFT | number,
            Tag::Spill(number) => 4 << KIND_SHIFT | number,
        };
    }
}

type Leaf = [Entry; LEAF_PAGES as usize];
type Middle = Box<[u32]>;

/// The entries.
#[derive(Debug)]
pub(super) struct PageMap {
    roots: Vec<u32>,
    middles: Slab<Middle>,
    leaves: Slab<Leaf>,
}

impl PageMap {
    pub(super) const fn new() -> Self {
        Self { roots: Vec::new(), middles: Slab::new(), leaves: Slab::new() }
    }

    /// The entry of a page.
    pub(super) fn look(&self, page: u64) -> Entry {
        self.look_far(page, 1).0
    }

    /// The entry of a page, and for how many pages from it on nothing else is known: at least `far`, or fewer.
    pub(super) fn look_far(&self, page: u64, far: u64) -> (Entry, u64) {
        let root = self.roots.get((page / MIDDLE_PAGES) as usize).copied().unwrap_or(HOLE);
        if root <= ZEROES {
            return (Entry::of(root), MIDDLE_PAGES - page % MIDDLE_PAGES);
        }
        let place = (page % MIDDLE_PAGES / LEAF_PAGES) as usize;
        let table = &self.middles[root - ZEROES];
        let middle = table[place];
        if middle > ZEROES {
            return (self.leaves[middle - ZEROES][(page % LEAF_PAGES) as usize], 1);
        }
        let mut run = LEAF_PAGES - page % LEAF_PAGES;
        if run < far {
            let same = table[place + 1..].iter().take_while(|next| **next == middle).count();
            run += same as u64 * LEAF_PAGES;
        }
        (Entry::of(middle), run)
    }

    /// The entry of a page, made if there is none.
    pub(super) fn entry(&mut self, page: u64) -> &mut Entry {
        let leaf = self.leaf(page);
        &mut self.leaves[leaf][(page % LEAF_PAGES) as usize]
    }

    fn middle(&mut self, root: usize) -> u32 {
        if root >= self.roots.len() {
            self.roots.resize(root + 1, HOLE);
        }
        let reference = self.roots[root];
        if reference > ZEROES {
            return reference - ZEROES;
        }
        let table = vec![reference; 1 << MIDDLE_BITS].into_boxed_slice();
        let number = self.middles.insert(table);
        self.roots[root] = number + ZEROES;
        number
    }

    fn leaf(&mut self, page: u64) -> u32 {
        let middle = self.middle((page / MIDDLE_PAGES) as usize);
        let place = &mut self.middles[middle][(page % MIDDLE_PAGES / LEAF_PAGES) as usize];
        if *place > ZEROES {
            return *place - ZEROES;
        }
        let number = self.leaves.insert([Entry::of(*place); LEAF_PAGES as usize]);
        *place = number + ZEROES;
        number
    }

    /// Makes all of these pages nothing, or zeroes, but those with a head. What they were goes to `dropped`.
    pub(super) fn set_all(
        &mut self,
        pages: std::ops::Range<u64>,
        zeroes: bool,
        dropped: &mut impl FnMut(Entry),
    ) {
        let uniform = if zeroes { ZEROES } else { HOLE };
        let mut page = pages.start;
        while page < pages.end {
            let root = (page / MIDDLE_PAGES) as usize;
            let next = (page / MIDDLE_PAGES + 1) * MIDDLE_PAGES;
            let reference = self.roots.get(root).copied().unwrap_or(HOLE);
            let end = next.min(pages.end);
            if reference <= ZEROES && reference == uniform {
                page = end;
                continue;
            }
            let is_whole = page.is_multiple_of(MIDDLE_PAGES) && end == next;
            if reference <= ZEROES && is_whole {
                if root >= self.roots.len() {
                    self.roots.resize(root + 1, HOLE);
                }
                self.roots[root] = uniform;
            } else {
                let middle = self.middle(root);
                let is_uniform = self.set_below(middle, page..end, uniform, dropped);
                if is_whole && is_uniform {
                    self.middles.remove(middle);
                    self.roots[root] = uniform;
                }
            }
            page = end;
        }
    }

    /// Within one middle table; true if no leaf is left in what was covered.
    fn set_below(
        &mut self,
        middle: u32,
        pages: std::ops::Range<u64>,
        uniform: u32,
        dropped: &mut impl FnMut(Entry),
    ) -> bool {
        let mut is_uniform = true;
        let mut page = pages.start;
        while page < pages.end {
            let place = (page % MIDDLE_PAGES / LEAF_PAGES) as usize;
            let next = (page / LEAF_PAGES + 1) * LEAF_PAGES;
            let end = next.min(pages.end);
            let reference = self.middles[middle][place];
            let is_whole = page.is_multiple_of(LEAF_PAGES) && end == next;
            if reference <= ZEROES && (is_whole || reference == uniform) {
                self.middles[middle][place] = uniform;
            } else {
                let leaf = self.leaf(page);
                let is_free = set_in_leaf(&mut self.leaves[leaf], page..end, uniform, dropped);
                if is_whole && is_free {
                    self.leaves.remove(leaf);
                    self.middles[middle][place] = uniform;
                } else {
                    is_uniform = false;
                }
            }
            page = end;
        }
        is_uniform
    }

    /// The pages of these that have a head.
    pub(super) fn with_head(&self, pages: std::ops::Range<u64>) -> Vec<u64> {
        let mut found = Vec::new();
        let mut page = pages.start;
        while page < pages.end {
            let (entry, run) = self.look_far(page, pages.end - page);
            if entry.head != 0 {
                found.push(page);
            }
            page += run;
        }
        found
    }
}

fn set_in_leaf(
    leaf: &mut Leaf,
    pages: std::ops::Range<u64>,
    uniform: u32,
    dropped: &mut impl FnMut(Entry),
) -> bool {
    let mut is_free = true;
    for page in pages {
        let entry = &mut leaf[(page % LEAF_PAGES) as usize];
        if entry.head == 0 {
            dropped(*entry);
            *entry = Entry::of(uniform);
        } else {
            is_free = false;
        }
    }
    is_free
}
