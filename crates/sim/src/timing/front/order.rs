//! Runs that wait, in the order of their addresses.
//!
//! Short blocks of entries side by side, and above them where each begins: a run is found by halving twice, and coming or
//! going it moves some tens of entries, however many there are.

use super::runs::Place;

/// Entries to a block at most; a full one is halved.
const BLOCK_MAX: usize = 64;

/// Where runs begin, in order, and their places.
#[derive(Debug, Clone, Default)]
struct Block {
    firsts: Vec<u64>,
    places: Vec<Place>,
}

/// Places of runs by where they begin. No block is empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    /// The first entry of each block.
    heads: Vec<u64>,
    blocks: Vec<Block>,
    /// Empty ones, kept for their memory.
    spare: Vec<Block>,
    count: usize,
}

/// An entry: its block, and which of that it is.
type Spot = (usize, usize);

impl Order {
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Where the first entry that does not begin before `sector` is or would be, in the block of the one before it.
    fn spot(&self, sector: u64) -> Spot {
        let block = self.heads.partition_point(|head| *head < sector).saturating_sub(1);
        (block, self.blocks.get(block).map_or(0, |one| one.firsts.partition_point(|first| *first < sector)))
    }

    /// Where the entry is that begins at `first`.
    fn find(&self, first: u64) -> Option<Spot> {
        let block = self.heads.partition_point(|head| *head <= first).checked_sub(1)?;
        Some((block, self.blocks[block].firsts.binary_search(&first).ok()?))
    }

    /// The last run that begins before `sector`.
    pub(super) fn before(&self, sector: u64) -> Option<(u64, Place)> {
        let (block, index) = self.spot(sector);
        // Only in front of all is there none in the block.
        let (block, index) = (self.blocks.get(block)?, index.checked_sub(1)?);
        Some((block.firsts[index], block.places[index]))
    }

    /// The place of the run that begins at `first`.
    pub(super) fn get(&self, first: u64) -> Option<Place> {
        self.find(first).map(|(block, index)| self.blocks[block].places[index])
    }

    /// The runs that do not begin before `sector`, in order.
    pub(super) fn from(&self, sector: u64) -> impl Iterator<Item = (u64, Place)> {
        let (block, index) = self.spot(sector);
        let (firsts, places) = self
            .blocks
            .get(block)
            .map_or((&[][..], &[][..]), |one| (&one.firsts[index..], &one.places[index..]));
        let here = firsts.iter().copied().zip(places.iter().copied());
        here.chain(self.blocks.iter().skip(block + 1).flat_map(Block::each))
    }

    /// All of them, in order.
    pub(super) fn each(&self) -> impl Iterator<Item = (u64, Place)> {
        self.blocks.iter().flat_map(Block::each)
    }

    /// Puts in a run that begins where none does.
    pub(super) fn insert(&mut self, first: u64, place: Place) {
        self.count += 1;
        let (mut block, mut index) = self.spot(first);
        match self.blocks.get(block).map(|one| one.firsts.len()) {
            None => {
                self.heads.push(first);
                self.blocks.push(self.spare.pop().unwrap_or_default());
            }
            Some(BLOCK_MAX) => {
                self.halve(block);
                if index > BLOCK_MAX / 2 {
                    (block, index) = (block + 1, index - BLOCK_MAX / 2);
                }
            }
            Some(_) => {}
        }
        let one = &mut self.blocks[block];
        one.firsts.insert(index, first);
        one.places.insert(index, place);
        self.heads[block] = one.firsts[0];
    }

    fn halve(&mut self, block: usize) {
        let mut upper = self.spare.pop().unwrap_or_default();
        let lower = &mut self.blocks[block];
        upper.firsts.extend(lower.firsts.drain(BLOCK_MAX / 2..));
        upper.places.extend(lower.places.drain(BLOCK_MAX / 2..));
        self.heads.insert(block + 1, upper.firsts[0]);
        self.blocks.insert(block + 1, upper);
    }

    /// Takes out the run that begins at `first`; its place.
    pub(super) fn remove(&mut self, first: u64) -> Option<Place> {
        let (block, index) = self.find(first)?;
        let one = &mut self.blocks[block];
        one.firsts.remove(index);
        let place = one.places.remove(index);
        self.count -= 1;
        match one.firsts.first() {
            Some(head) => self.heads[block] = *head,
            None => {
                self.heads.remove(block);
                self.spare.push(self.blocks.remove(block));
            }
        }
        Some(place)
    }
}

impl Block {
    fn each(&self) -> impl Iterator<Item = (u64, Place)> {
        self.firsts.iter().copied().zip(self.places.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
    use std::collections::BTreeMap;

    #[test]
    fn an_order_is_a_sorted_map() {
        for seed in 0..30 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut order, mut map) = (Order::default(), BTreeMap::new());
            let sectors = 40 << (seed % 10);
            for step in 0..4000 {
                // It grows, then shrinks to nothing.
                let first = chance.next_u64() % sectors;
                if step < 2000 && !map.contains_key(&first) {
                    map.insert(first, step);
                    order.insert(first, step);
                } else {
                    let first = map.range(first..).next().map_or(first, |(first, _)| *first);
                    assert_eq!(order.remove(first), map.remove(&first), "seed {seed}");
                }
                let asked = chance.next_u64() % (sectors + 2);
                let pair = |(first, place): (&u64, &Place)| (*first, *place);
                assert_eq!(order.before(asked), map.range(..asked).next_back().map(pair), "seed {seed}");
                assert!(order.from(asked).take(70).eq(map.range(asked..).take(70).map(pair)), "seed {seed}");
                assert_eq!(order.get(asked), map.get(&asked).copied(), "seed {seed}");
                assert_eq!(order.len(), map.len(), "seed {seed}");
            }
            assert!(order.each().eq(map.iter().map(|(first, place)| (*first, *place))), "seed {seed}");
            assert!(order.blocks.iter().all(|block| !block.firsts.is_empty()), "seed {seed}");
        }
    }
}
