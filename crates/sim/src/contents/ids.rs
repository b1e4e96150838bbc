//! Which place a command has, by the number that the drive gave it.
//!
//! Numbers are counted up and most commands end soon, so their places stand in a ring from the oldest on. The few that
//! stay while thousands come and go move to a table, lest the ring grow behind them.

use std::collections::VecDeque;

use super::table::Table;

/// The ring may be this many times as long as there are commands in it, and [`SHORT`] longer.
const SPARSE: usize = 8;
/// A ring that is never worth making shorter.
const SHORT: usize = 1024;

/// Places by number. The place 0 says "none" and is not kept.
#[derive(Debug)]
pub(super) struct Ids {
    /// The number of the front of the ring.
    first: u64,
    ring: VecDeque<u32>,
    /// How many in the ring are there.
    count: usize,
    /// Those that stayed, or came out of their order.
    others: Table,
}

impl Ids {
    pub(super) fn new() -> Self {
        Self { first: 0, ring: VecDeque::new(), count: 0, others: Table::new() }
    }

    /// Gives `id`, which has none, a place.
    #[inline]
    pub(super) fn set(&mut self, id: u64, place: u32) {
        if self.count == 0 {
            self.ring.clear();
            self.first = id;
        }
        let Some(mut index) = id.checked_sub(self.first) else {
            self.others.set(id, place);
            return;
        };
        if index >= self.longest() {
            self.let_others_go(id);
            index = id - self.first;
        }
        let index = index as usize;
        if index >= self.ring.len() {
            self.ring.resize(index, 0);
            self.ring.push_back(place);
        } else {
            self.ring[index] = place;
        }
        self.count += 1;
    }

    /// How long the ring may be.
    const fn longest(&self) -> u64 {
        (self.count * SPARSE + SHORT) as u64
    }

    /// Moves the oldest to the table until the ring is short enough to end with `id`.
    #[cold]
    fn let_others_go(&mut self, id: u64) {
        while id - self.first >= self.longest() {
            match self.ring.pop_front() {
                None => self.first = id,
                Some(0) => self.first += 1,
                Some(place) => {
                    self.others.set(self.first, place);
                    self.first += 1;
                    self.count -= 1;
                }
            }
        }
    }

    /// The place of `id`; 0 for none.
    #[inline]
    pub(super) fn get(&self, id: u64) -> u32 {
        let index = id.wrapping_sub(self.first);
        match self.ring.get(index as usize) {
            Some(place) if *place != 0 => *place,
            _ => self.others.get(id),
        }
    }

    /// Takes the place of `id` away; returns it.
    #[inline]
    pub(super) fn take(&mut self, id: u64) -> u32 {
        let index = id.wrapping_sub(self.first) as usize;
        let place = self.ring.get_mut(index).map_or(0, std::mem::take);
        if place == 0 {
            return self.others.set(id, 0);
        }
        self.count -= 1;
        while let Some(0) = self.ring.front() {
            self.ring.pop_front();
            self.first += 1;
        }
        place
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.ring.clear();
        self.count = 0;
        self.others.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
    use std::collections::BTreeMap;

    #[test]
    fn every_command_has_its_place_however_long_it_stays() {
        for seed in 0..20 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut ids, mut map, mut next) = (Ids::new(), BTreeMap::new(), 0);
            for step in 0..60_000_u64 {
                // Most numbers follow each other, some are passed over, and now and then comes one from long ago.
                next += 1 + chance.next_u64() % (1 + seed % 4) + if step % 9_973 == 0 { 50_000 } else { 0 };
                let id = if step % 5_003 == 0 { next / 2 } else { next };
                if map.insert(id, step as u32 + 1).is_none() {
                    ids.set(id, step as u32 + 1);
                }
                // One in a thousand stays for long.
                while map.len() > 40 + (step / 1_000) as usize {
                    let oldest = map.keys().copied().nth((chance.next_u64() % 40) as usize + map.len() - 40);
                    let id = oldest.unwrap();
                    assert_eq!(ids.get(id), map[&id], "seed {seed}, command {id}");
                    assert_eq!(Some(ids.take(id)), map.remove(&id), "seed {seed}, command {id}");
                    assert_eq!((ids.get(id), ids.take(id)), (0, 0), "seed {seed}, command {id}");
                }
                assert!(
                    ids.ring.len() as u64 <= ids.longest() + SPARSE as u64,
                    "seed {seed}: the ring grows"
                );
            }
            assert!(map.iter().all(|(id, place)| ids.get(*id) == *place), "seed {seed}");
        }
    }
}
