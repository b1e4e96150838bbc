//! Set of the received bytes of a read: chunks may arrive in any order, each byte once.

/// Maximum number of separate runs; more indicate a malicious server.
const RUNS_MAX: usize = 4096;

/// A set of bytes: a run from the first byte on, which suffices in the common case, and other separate runs
/// in order.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    head: u32,
    /// Other runs, as (start, end).
    rest: Vec<(u32, u32)>,
}

impl Coverage {
    /// Adds `start..end`, which must not be empty. Returns false if a part of it was there already, or there
    /// are too many runs.
    pub(super) fn add(&mut self, start: u32, end: u32) -> bool {
        let place = self.rest.partition_point(|run| run.1 <= start);
        if start < self.head || self.rest.get(place).is_some_and(|run| run.0 < end) {
            return false;
        }
        if start != self.head {
            self.insert(place, start, end);
            return self.rest.len() <= RUNS_MAX;
        }
        self.head = end;
        if self.rest.first().is_some_and(|first| first.0 == end) {
            self.head = self.rest.remove(0).1;
        }
        true
    }

    fn insert(&mut self, place: usize, start: u32, end: u32) {
        let touches_next = self.rest.get(place).is_some_and(|run| run.0 == end);
        let touches_last = place > 0 && self.rest[place - 1].1 == start;
        match (touches_last, touches_next) {
            (true, true) => self.rest[place - 1].1 = self.rest.remove(place).1,
            (true, false) => self.rest[place - 1].1 = end,
            (false, true) => self.rest[place].0 = start,
            (false, false) => self.rest.insert(place, (start, end)),
        }
    }

    /// Returns true if it covers `0..length`.
    pub(super) fn is_whole(&self, length: u32) -> bool {
        self.head == length && self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn it_agrees_with_a_bitmap() {
        let seed = 3;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for round in 0..2000 {
            let mut coverage = Coverage::default();
            let mut bitmap = [false; 24];
            for _ in 0..40 {
                let start = random.next_u64() as usize % 24;
                let end = start + 1 + random.next_u64() as usize % (24 - start).min(5);
                let is_new = !bitmap[start..end].contains(&true);
                assert_eq!(coverage.add(start as u32, end as u32), is_new, "seed {seed}, round {round}");
                if is_new {
                    bitmap[start..end].fill(true);
                }
                assert_eq!(coverage.is_whole(24), !bitmap.contains(&false), "seed {seed}, round {round}");
            }
        }
    }

    #[test]
    fn crumbs_without_end_are_refused() {
        let mut coverage = Coverage::default();
        let taken = (0..100_000).take_while(|crumb| coverage.add(2 * crumb + 1, 2 * crumb + 2)).count();
        assert_eq!(taken, RUNS_MAX);
    }
}
