//! One entry for each page of a drive, of which most were never written.
//!
//! ```text
//!   page number:  │ root │    middle: 13 bits    │ leaf: 4 bits │
//!   roots ─┬► Many: middle (8,192 references) ──► leaf (16 entries of 8 bytes: two cache lines)
//!          ├► Few: up to a thousand entries, each by itself
//!          └► nothing, or zeroes, for 131,072 pages at once
//! ```
//!
//! A reference is to a table or says that all below is one thing, so what is discarded costs no memory and a discard
//! of a whole disk takes time only for what was written. What was said last stands before the tables, in [`Recent`].

use super::few::Few;
use super::leaves::{Entry, LEAF_BITS, LEAF_PAGES, Leaves};
use super::recent::Recent;
use super::slab::Slab;
use crate::rules::planted::{Bug, planted};

const MIDDLE_BITS: u32 = 13;
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
    /// One pattern over the whole page, each block made from its own address.
    Pattern {
        /// The number of the seed.
        seed: u32,
        /// Those that do not fit are not said in brief.
        generation: u32,
    },
    /// Bytes; the number of the slot.
    Bytes(u32),
    /// Different things in its blocks; the number of the spill.
    Spill(u32),
}

/// What is known of the 131,072 pages below a root.
#[derive(Debug)]
enum Middle {
    Few(Few),
    /// References to leaves.
    Many(Box<[u32]>),
}

impl Middle {
    /// The references to leaves, which it gets if it has none yet.
    fn spread(&mut self, leaves: &mut Leaves) -> &mut [u32] {
        if let Self::Few(few) = self {
            let rest = if few.rest().tag() == Tag::Hole { HOLE } else { ZEROES };
            let mut table = vec![rest; 1 << MIDDLE_BITS].into_boxed_slice();
            for (page, entry) in few.each().map(|(page, entry)| (u64::from(page), entry)) {
                let leaf = leaf_in(&mut table, leaves, page);
                leaves.get_mut(leaf).0[(page % LEAF_PAGES) as usize] = entry;
            }
            *self = Self::Many(table);
        }
        match self {
            Self::Many(table) => table,
            Self::Few(_) => &mut [],
        }
    }
}

/// The entries.
#[derive(Debug)]
pub(super) struct PageMap {
    roots: Vec<u32>,
    middles: Slab<Middle>,
    leaves: Leaves,
    /// Said, and not in the tables yet.
    pub(super) recent: Recent,
}

impl PageMap {
    pub(super) fn new() -> Self {
        Self { roots: Vec::new(), middles: Slab::new(), leaves: Leaves::new(), recent: Recent::default() }
    }

    /// What a page holds.
    #[inline]
    pub(super) fn look(&self, page: u64) -> Tag {
        let recent = self.recent.of(page).filter(|_| !planted(Bug::RecentUnseen));
        recent.unwrap_or_else(|| self.look_up(page))
    }

    /// What the tables say that it holds.
    fn look_up(&self, page: u64) -> Tag {
        let root = self.roots.get((page / MIDDLE_PAGES) as usize).copied().unwrap_or(HOLE);
        if root <= ZEROES {
            return Entry::of(root).tag();
        }
        let leaf = match &self.middles[root - ZEROES] {
            Middle::Few(few) => return few.get((page % MIDDLE_PAGES) as u32).tag(),
            Middle::Many(table) => table[(page % MIDDLE_PAGES / LEAF_PAGES) as usize],
        };
        if leaf <= ZEROES {
            return Entry::of(leaf).tag();
        }
        self.leaves.get(leaf - ZEROES - 1).0[(page % LEAF_PAGES) as usize].tag()
    }

    /// Asks for what is known of a page, and waits for none of it: a number that means nothing.
    #[inline]
    fn approach(&self, page: u64) -> u32 {
        let root = self.roots.get((page / MIDDLE_PAGES) as usize).copied().unwrap_or(HOLE);
        if root <= ZEROES {
            return root;
        }
        let leaf = match &self.middles[root - ZEROES] {
            Middle::Few(few) => return few.near((page % MIDDLE_PAGES) as u32),
            Middle::Many(table) => table[(page % MIDDLE_PAGES / LEAF_PAGES) as usize],
        };
        if leaf <= ZEROES {
            return leaf;
        }
        self.leaves.get(leaf - ZEROES - 1).0[(page % LEAF_PAGES) as usize].is_numbered().into()
    }

    /// Asks for what the tables know of all pages of which something was said last: memory answers together.
    #[inline]
    pub(super) fn approach_recent(&self) {
        let asked = self.recent.pages().iter().fold(0, |sum, page| self.approach(*page).wrapping_add(sum));
        std::hint::black_box(asked);
    }

    /// For how many pages from this one on, and at most `far`, nothing else is known than of this one.
    pub(super) fn run(&self, page: u64, far: u64) -> u64 {
        match self.recent.next_from(page) {
            Some(recent) if recent == page => 1,
            Some(recent) => self.run_in_tables(page, far.min(recent - page)),
            None => self.run_in_tables(page, far),
        }
    }

    fn run_in_tables(&self, page: u64, far: u64) -> u64 {
        let root = self.roots.get((page / MIDDLE_PAGES) as usize).copied().unwrap_or(HOLE);
        if root <= ZEROES {
            return far.min(MIDDLE_PAGES - page % MIDDLE_PAGES);
        }
        let place = (page % MIDDLE_PAGES / LEAF_PAGES) as usize;
        let table = match &self.middles[root - ZEROES] {
            Middle::Few(few) => {
                let far = far.min(MIDDLE_PAGES - page % MIDDLE_PAGES);
                return few.run((page % MIDDLE_PAGES) as u32, far);
            }
            Middle::Many(table) => table,
        };
        let leaf = table[place];
        if leaf > ZEROES {
            return 1;
        }
        let mut run = LEAF_PAGES - page % LEAF_PAGES;
        if run < far {
            let same = table[place + 1..].iter().take_while(|next| **next == leaf).count();
            run += same as u64 * LEAF_PAGES;
        }
        run.min(far)
    }

    /// Says what a page holds from now on; whether it is time to bring what was said to the tables.
    #[inline]
    pub(super) fn put(&mut self, page: u64, tag: Tag) -> bool {
        self.recent.put(page, tag)
    }

    /// Says so in the tables; what they said before.
    #[inline]
    pub(super) fn replace(&mut self, page: u64, tag: Tag) -> Entry {
        let middle = self.middle((page / MIDDLE_PAGES) as usize);
        let middle = &mut self.middles[middle];
        if let Middle::Few(few) = middle
            && !few.is_full()
        {
            return few.replace((page % MIDDLE_PAGES) as u32, tag.into());
        }
        let leaf = leaf_in(middle.spread(&mut self.leaves), &mut self.leaves, page);
        let entry = &mut self.leaves.get_mut(leaf).0[(page % LEAF_PAGES) as usize];
        std::mem::replace(entry, tag.into())
    }

    #[inline]
    fn middle(&mut self, root: usize) -> u32 {
        if root >= self.roots.len() {
            self.roots.resize(root + 1, HOLE);
        }
        let reference = self.roots[root];
        if reference > ZEROES {
            return reference - ZEROES;
        }
        let number = self.middles.insert(Middle::Few(Few::new(Entry::of(reference))));
        self.roots[root] = number + ZEROES;
        number
    }

    /// Makes all of these pages nothing, or zeroes. What they were goes to `dropped`.
    pub(super) fn set_all(
        &mut self,
        pages: std::ops::Range<u64>,
        zeroes: bool,
        dropped: &mut impl FnMut(Tag),
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
                self.set_below(middle, page..end, uniform, dropped);
                if is_whole {
                    self.middles.discard(middle);
                    self.roots[root] = uniform;
                }
            }
            page = end;
        }
    }

    /// Within one middle table.
    fn set_below(
        &mut self,
        middle: u32,
        pages: std::ops::Range<u64>,
        uniform: u32,
        dropped: &mut impl FnMut(Tag),
    ) {
        let middle = &mut self.middles[middle];
        if let Middle::Few(few) = middle {
            let is_whole = pages.end - pages.start == MIDDLE_PAGES;
            if is_whole || few.rest().tag() == Entry::of(uniform).tag() {
                let first = (pages.start % MIDDLE_PAGES) as u32;
                let within = first..first + (pages.end - pages.start) as u32;
                return few.clear(within, &mut |entry| dropped(entry.tag()));
            }
        }
        let table = middle.spread(&mut self.leaves);
        let mut page = pages.start;
        while page < pages.end {
            let place = (page % MIDDLE_PAGES / LEAF_PAGES) as usize;
            let next = (page / LEAF_PAGES + 1) * LEAF_PAGES;
            let end = next.min(pages.end);
            let is_whole = page.is_multiple_of(LEAF_PAGES) && end == next;
            if table[place] <= ZEROES && (is_whole || table[place] == uniform) {
                table[place] = uniform;
            } else {
                let leaf = leaf_in(table, &mut self.leaves, page);
                let from = (page % LEAF_PAGES) as usize;
                for entry in &mut self.leaves.get_mut(leaf).0[from..from + (end - page) as usize] {
                    dropped(std::mem::replace(entry, Entry::of(uniform)).tag());
                }
                if is_whole {
                    self.leaves.remove(leaf);
                    table[place] = uniform;
                }
            }
            page = end;
        }
    }
}

/// The leaf of a page, made if there is none.
#[inline]
fn leaf_in(table: &mut [u32], leaves: &mut Leaves, page: u64) -> u32 {
    let reference = &mut table[(page % MIDDLE_PAGES / LEAF_PAGES) as usize];
    if *reference <= ZEROES {
        *reference = leaves.insert(*reference) + ZEROES + 1;
    }
    *reference - ZEROES - 1
}
