//! Small numbers by large keys, for the few things of many that are in flight: which node a page begins with, which place
//! a command has.
//!
//! Open addressing with linear probing; what is taken out leaves no trace, so the table is as fast after a billion
//! commands as after the first. It never shrinks: what was in flight together once may be again.

/// The least size, as a power of two: the commands of a queue are looked for at once.
const BITS_MIN: u32 = 8;

/// Numbers by key. The number 0 says "none" and is not kept.
#[derive(Debug)]
pub(super) struct Table {
    /// The keys and their numbers; a number of 0 is an empty place.
    places: Box<[(u64, u32)]>,
    bits: u32,
    count: usize,
}

/// Where something was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot(usize);

impl Table {
    pub(super) fn new() -> Self {
        Self { places: empty(BITS_MIN), bits: BITS_MIN, count: 0 }
    }

    /// Where `key` begins to be looked for: keys that are counted up or share their low bits are spread (Knuth's
    /// multiplicative hashing with the golden ratio).
    #[inline]
    const fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bits)) as usize
    }

    /// Where `key` is, or where it would be put.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let mut place = self.home(key);
        while self.places[place].1 != 0 && self.places[place].0 != key {
            place = self.after(place);
        }
        place
    }

    #[inline]
    const fn after(&self, place: usize) -> usize {
        (place + 1) & ((1 << self.bits) - 1)
    }

    /// The number of `key`; 0 for none.
    #[inline]
    pub(super) fn get(&self, key: u64) -> u32 {
        if self.count == 0 { 0 } else { self.places[self.place(key)].1 }
    }

    /// The number of `key` and where it is, to [`take`](Self::take) it; `None` if it has none.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<(u32, Spot)> {
        let place = self.place(key);
        let number = self.places[place].1;
        (number != 0).then_some((number, Spot(place)))
    }

    /// Takes out what was found there, since when nothing has changed.
    #[inline]
    pub(super) fn take(&mut self, Spot(place): Spot) {
        self.empty_place(place);
    }

    /// Gives `key` a number, or none; the one that it had.
    #[inline]
    pub(super) fn set(&mut self, key: u64, number: u32) -> u32 {
        let place = self.place(key);
        let before = self.places[place].1;
        match (before, number) {
            (0, 0) => {}
            (_, 0) => self.empty_place(place),
            (0, _) => {
                self.places[place] = (key, number);
                self.count += 1;
                // Three eighths are always empty, so that looking for what is not there ends soon.
                if self.count * 8 > self.places.len() * 5 {
                    self.grow();
                }
            }
            _ => self.places[place].1 = number,
        }
        before
    }

    /// Empties a place, and moves up what would not be found behind it any more.
    fn empty_place(&mut self, place: usize) {
        self.count -= 1;
        let (mut hole, mut next) = (place, self.after(place));
        while self.places[next].1 != 0 {
            let home = self.home(self.places[next].0);
            let mask = self.places.len() - 1;
            let is_reached_through_hole =
                (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask);
            if is_reached_through_hole {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = self.after(next);
        }
        self.places[hole] = (0, 0);
    }

    fn grow(&mut self) {
        self.bits += 1;
        let before = std::mem::replace(&mut self.places, empty(self.bits));
        for (key, number) in before.into_iter().filter(|(_, number)| *number != 0) {
            let place = self.place(key);
            self.places[place] = (key, number);
        }
    }

    /// The keys of `keys` that have a number, in order.
    pub(super) fn within(&self, keys: std::ops::Range<u64>) -> Vec<u64> {
        let length = keys.end.saturating_sub(keys.start);
        if self.count == 0 {
            return Vec::new();
        }
        if length <= self.places.len() as u64 {
            return keys.filter(|key| self.get(*key) != 0).collect();
        }
        let numbered = self.places.iter().filter(|(key, number)| *number != 0 && keys.contains(key));
        let mut found: Vec<u64> = numbered.map(|(key, _)| *key).collect();
        found.sort_unstable();
        found
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        if self.count > 0 {
            self.places.fill((0, 0));
            self.count = 0;
        }
    }
}

fn empty(bits: u32) -> Box<[(u64, u32)]> {
    vec![(0, 0); 1 << bits].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
    use std::collections::BTreeMap;

    #[test]
    fn a_table_is_a_map() {
        for seed in 0..20 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut table, mut map) = (Table::new(), BTreeMap::new());
            // Few keys that are far apart or many that are close: places run into each other and around the end.
            let keys = 40 << (seed % 8);
            for _ in 0..20_000 {
                let key = (chance.next_u64() % keys) * (1 + (seed % 3) * 0x1_0000);
                let number =
                    if chance.next_u64().is_multiple_of(2) { 0 } else { chance.next_u64() as u32 | 1 };
                let before = if number == 0 { map.remove(&key) } else { map.insert(key, number) };
                assert_eq!(table.set(key, number), before.unwrap_or(0), "seed {seed}");
                let asked = chance.next_u64() % keys;
                assert_eq!(table.get(asked), map.get(&asked).copied().unwrap_or(0), "seed {seed}");
            }
            for range in [0..keys / 2, keys / 3..keys / 3 + 5, 0..u64::MAX, 7..7] {
                let wanted: Vec<u64> = map.range(range.clone()).map(|(key, _)| *key).collect();
                assert_eq!(table.within(range), wanted, "seed {seed}");
            }
            table.clear();
            assert!(map.keys().all(|key| table.get(*key) == 0));
        }
    }
}
