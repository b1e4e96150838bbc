//! What is going to happen inside a drive, by time.
//!
//! The answers to reads are given in the order in which they were decided on, those to writes are, and units are mostly
//! programmed in the order in which they were sent to the dies, one die after the other: each wait in a ring. The rest
//! is in a heap.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::command::CommandId;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The cells were read; so many bytes go out over the link.
    ReadDone(CommandId, u32),
    /// A command is answered.
    Answer(CommandId),
    /// A command is answered, and what it wrote is out of the cache.
    AnswerPersisted(CommandId),
    /// A unit was programmed.
    Programmed(u32),
}

/// In which ring something waits that comes behind the last of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ring {
    /// Answers to reads.
    Reads = 0,
    /// Answers to writes.
    Writes = 1,
    /// Programmed units.
    Units = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: u64,
    /// Of two things at one time, the one that was decided on first is first.
    order: u64,
    due: Due,
}

impl Entry {
    #[inline]
    const fn key(&self) -> u128 {
        (self.at as u128) << 64 | self.order as u128
    }
}

impl Ord for Entry {
    /// Reversed, because the heap gives the greatest first.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Things that are going to happen.
#[derive(Debug)]
pub(super) struct Agenda {
    rings: [VecDeque<Entry>; 3],
    others: BinaryHeap<Entry>,
    order: u64,
    /// When the first of all happens, and which ring it is in; in none of them if it is in the heap or is not.
    next: u64,
    next_in: Option<usize>,
}

impl Default for Agenda {
    fn default() -> Self {
        let rings = std::array::from_fn(|_| VecDeque::new());
        Self { rings, others: BinaryHeap::new(), order: 0, next: u64::MAX, next_in: None }
    }
}

impl Agenda {
    /// Puts `due` down for `at`.
    #[inline]
    pub(super) fn put(&mut self, at: u64, due: Due) {
        self.order += 1;
        self.others.push(Entry { at, order: self.order, due });
        self.comes(at, None);
    }

    /// Puts `due` down for `at`, which is rarely before that of the last one of its kind.
    #[inline]
    pub(super) fn put_in(&mut self, ring: Ring, at: u64, due: Due) {
        let place = ring as usize;
        let ring = &mut self.rings[place];
        if ring.back().is_some_and(|last| last.at > at) {
            return self.put(at, due);
        }
        self.order += 1;
        ring.push_back(Entry { at, order: self.order, due });
        self.comes(at, Some(place));
    }

    /// Something more is going to happen at `at`: of things at one time the one that was first stays so.
    #[inline]
    fn comes(&mut self, at: u64, place: Option<usize>) {
        if at < self.next {
            (self.next, self.next_in) = (at, place);
        }
    }

    /// Looks what comes first now.
    #[inline]
    fn look(&mut self) {
        let mut first = self.others.peek().map_or(u128::MAX, Entry::key);
        self.next_in = None;
        for (place, ring) in self.rings.iter().enumerate() {
            if let Some(entry) = ring.front()
                && entry.key() < first
            {
                first = entry.key();
                self.next_in = Some(place);
            }
        }
        self.next = (first >> 64) as u64;
    }

    /// When something happens next.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        (self.next != u64::MAX).then_some(self.next)
    }

    /// Takes what is due at `now`, the earliest first.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Option<(u64, Due)> {
        if self.next > now {
            return None;
        }
        let first = match self.next_in {
            Some(place) => self.rings[place].pop_front(),
            None => self.others.pop(),
        };
        self.look();
        first.map(|entry| (entry.at, entry.due))
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.rings.iter_mut().for_each(VecDeque::clear);
        self.others.clear();
        self.look();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

    #[test]
    fn all_comes_in_the_order_of_time_and_then_of_decisions() {
        for seed in 0..50 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut agenda, mut kept, mut now) = (Agenda::default(), Vec::new(), 0);
            for number in 0..3000_u32 {
                let at = now + chance.next_u64() % (2 + seed * 5);
                let due = Due::Programmed(number);
                match chance.next_u64() % 8 {
                    0 => agenda.put(at, due),
                    1 => agenda.put_in(Ring::Reads, at, due),
                    2 => agenda.put_in(Ring::Writes, at, due),
                    3 => agenda.put_in(Ring::Units, at, due),
                    _ => {
                        now += chance.next_u64() % 3;
                        let first = kept.first().copied().filter(|(at, _)| *at <= now);
                        let wanted = first.map(|(at, number)| (at, Due::Programmed(number)));
                        assert_eq!(agenda.take(now), wanted, "seed {seed}");
                        kept.drain(..usize::from(first.is_some()));
                        assert_eq!(agenda.next(), kept.first().map(|(at, _)| *at), "seed {seed}");
                        continue;
                    }
                }
                kept.push((at, number));
                kept.sort_unstable();
            }
        }
    }
}
