//! The entries of a drive's pages: eight bytes each, neighbours on cache lines of their own.

use super::page_map::Tag;

pub(super) const LEAF_BITS: u32 = 4;
/// Pages to a leaf.
pub(super) const LEAF_PAGES: u64 = 1 << LEAF_BITS;

/// One page: what kind of thing it holds and the number of it, and the generation of a pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    kind_and_number: u32,
    generation: u32,
}

const KIND_SHIFT: u32 = 29;
/// Numbers of seeds, slots and spills end here: 536 million.
pub(super) const NUMBER_MAX: u32 = (1 << KIND_SHIFT) - 1;

impl Entry {
    pub(super) const fn of(reference: u32) -> Self {
        Self { kind_and_number: reference << KIND_SHIFT, generation: 0 }
    }

    /// Whether it names a slot or a spill, which somebody has to give back.
    #[inline]
    pub(super) const fn is_numbered(self) -> bool {
        self.kind_and_number >> KIND_SHIFT >= 3
    }

    #[inline]
    pub(super) const fn tag(self) -> Tag {
        let number = self.kind_and_number & NUMBER_MAX;
        match self.kind_and_number >> KIND_SHIFT {
            0 => Tag::Hole,
            1 => Tag::Zeroes,
            2 => Tag::Pattern { seed: number, generation: self.generation },
            3 => Tag::Bytes(number),
            _ => Tag::Spill(number),
        }
    }
}

impl From<Tag> for Entry {
    #[inline]
    fn from(tag: Tag) -> Self {
        let (kind, number, generation) = match tag {
            Tag::Hole => (0, 0, 0),
            Tag::Zeroes => (1, 0, 0),
            Tag::Pattern { seed, generation } => (2, seed, generation),
            Tag::Bytes(number) => (3, number, 0),
            Tag::Spill(number) => (4, number, 0),
        };
        Self { kind_and_number: kind << KIND_SHIFT | number, generation }
    }
}

/// The entries of neighbours, on cache lines of their own.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Leaf(pub(super) [Entry; LEAF_PAGES as usize]);

/// Leaves to an allocation: many enough to be rare, and none is ever moved.
const CHUNK_BITS: u32 = 9;

/// Leaves by number.
#[derive(Debug)]
pub(super) struct Leaves {
    chunks: Vec<Vec<Leaf>>,
    free: Vec<u32>,
    /// How many were ever in use.
    count: u32,
}

impl Leaves {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), count: 0 }
    }

    /// A leaf of which all entries say what `reference` says.
    pub(super) fn insert(&mut self, reference: u32) -> u32 {
        let leaf = Leaf([Entry::of(reference); LEAF_PAGES as usize]);
        if let Some(number) = self.free.pop() {
            *self.get_mut(number) = leaf;
            return number;
        }
        let number = self.count;
        self.count += 1;
        match self.chunks.last_mut().filter(|chunk| chunk.len() < 1 << CHUNK_BITS) {
            Some(chunk) => chunk.push(leaf),
            None => {
                let mut chunk = Vec::with_capacity(1 << CHUNK_BITS);
                chunk.push(leaf);
                self.chunks.push(chunk);
            }
        }
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &Leaf {
        &self.chunks[(number >> CHUNK_BITS) as usize][(number & ((1 << CHUNK_BITS) - 1)) as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut Leaf {
        &mut self.chunks[(number >> CHUNK_BITS) as usize][(number & ((1 << CHUNK_BITS) - 1)) as usize]
    }
}
