//! What will happen inside a drive at a known time.
//!
//! The controller reads commands one after the other, and the wire carries one thing after the other: what the one and
//! what the other will have done comes in the order of time each, and waits in a ring.

use std::collections::VecDeque;

use super::slots::Slot;

/// Something that happens by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The controller has read a command, and has its data if it is a write.
    Admitted(Slot),
    /// The data of a read are with the host.
    Delivered(Slot),
    /// Dirty data have waited long enough.
    Destage,
}

/// When, and of two at the same time the one that was noted first.
type Turn = (u64, u64);

/// Things that will happen, in the order of time; at the same time in the order in which they were noted.
#[derive(Debug, Clone, Default)]
pub(super) struct Agenda {
    /// Each in order.
    rings: [VecDeque<(Turn, Due)>; 2],
    /// The one time at which waiting data are destaged: far from now, so in no ring.
    destage: Option<Turn>,
    noted: u64,
}

impl Agenda {
    pub(super) fn note(&mut self, at: u64, due: Due) {
        self.noted += 1;
        let turn = (at, self.noted);
        if due == Due::Destage {
            self.destage = Some(turn);
            return;
        }
        let last = |ring: &VecDeque<(Turn, Due)>| ring.back().map_or(0, |((at, _), _)| *at);
        let [one, other] = [last(&self.rings[0]), last(&self.rings[1])];
        // Behind the one that is nearest before it: so the two sorts find their own rings.
        let ring = match (one <= at, other <= at) {
            (true, true) => usize::from(other > one),
            (false, true) => 1,
            _ => 0,
        };
        let ring = &mut self.rings[ring];
        if one.min(other) <= at {
            ring.push_back((turn, due));
        } else {
            ring.insert(ring.partition_point(|(before, _)| *before < turn), (turn, due));
        }
    }

    /// The first of each kind.
    fn turns(&self) -> [Turn; 3] {
        let first = |ring: &VecDeque<(Turn, Due)>| ring.front().map_or(LAST, |(turn, _)| *turn);
        [first(&self.rings[0]), first(&self.rings[1]), self.destage.unwrap_or(LAST)]
    }

    pub(super) fn next(&self) -> Option<u64> {
        let [one, other, destage] = self.turns();
        let turn = one.min(other).min(destage);
        (turn != LAST).then_some(turn.0)
    }

    pub(super) fn take(&mut self) -> Option<(u64, Due)> {
        let [one, other, destage] = self.turns();
        if destage < one.min(other) {
            return self.destage.take().map(|(at, _)| (at, Due::Destage));
        }
        let ring = usize::from(other < one);
        self.rings[ring].pop_front().map(|((at, _), due)| (at, due))
    }

    pub(super) fn clear(&mut self) {
        self.rings.iter_mut().for_each(VecDeque::clear);
        self.destage = None;
    }
}

/// After everything.
const LAST: Turn = (u64::MAX, u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

    #[test]
    fn all_comes_back_in_the_order_of_time_and_then_of_notes() {
        for seed in 0..50 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut agenda, mut kept) = (Agenda::default(), Vec::new());
            for note in 0..2000_u32 {
                if !chance.next_u64().is_multiple_of(3) {
                    // Few times, so that many are the same.
                    let at = chance.next_u64() % (1 + seed * 7);
                    agenda.note(at, Due::Admitted(note));
                    kept.push((at, note));
                    kept.sort_unstable();
                } else if kept.is_empty() {
                    assert_eq!((agenda.next(), agenda.take()), (None, None), "seed {seed}");
                } else {
                    let (at, note) = kept.remove(0);
                    assert_eq!(agenda.next(), Some(at), "seed {seed}");
                    assert_eq!(agenda.take(), Some((at, Due::Admitted(note))), "seed {seed}");
                }
            }
        }
        let mut agenda = Agenda::default();
        agenda.note(50, Due::Destage);
        agenda.note(50, Due::Delivered(1));
        agenda.note(49, Due::Admitted(2));
        let order = [(49, Due::Admitted(2)), (50, Due::Destage), (50, Due::Delivered(1))];
        assert_eq!(order.map(|_| agenda.take()), order.map(Some));
    }
}
