//! Tracking of an array's commands until they have left the caches of its members, and of the flushes that
//! wait for them.

use plumb_block::Nanos;

use super::timing::{ArrayTiming, PLACE_BITS};
use crate::command::CommandId;
use crate::timing::Event;

impl ArrayTiming {
    /// Returns the slot of the command that a piece belongs to, if it still waits for anything.
    pub(super) fn place_of(&mut self, piece: CommandId) -> Option<u32> {
        let place = (piece.0 & ((1 << PLACE_BITS) - 1)) as u32;
        let arrival = piece.0 >> PLACE_BITS;
        self.pieces.get(place).filter(|whole| arrival > whole.born).map(|_| place)
    }

    /// Reports the command in `place` as persisted once it and all of its copies are.
    pub(super) fn settle(&mut self, at: u64, place: u32, events: &mut Vec<Event>) {
        if let Some(whole) = self.pieces.get(place)
            && whole.at_risk
            && whole.answered.is_some()
            && whole.outstanding == 0
            && whole.unpersisted == 0
        {
            whole.at_risk = false;
            self.at_risk -= 1;
            events.push(Event::Persisted { id: whole.command.id, at: Nanos(at) });
        }
        self.pieces.remove_if_over(place);
    }

    /// Reports as persisted all commands among the first `covers` answered ones.
    pub(super) fn persist_covered(&mut self, at: u64, covers: u64, events: &mut Vec<Event>) {
        for place in self.pieces.places_of(|whole| whole.is_covered(covers)) {
            if let Some(whole) = self.pieces.get(place) {
                whole.unpersisted = 0;
            }
            self.settle(at, place, events);
        }
    }

    /// Releases flushes that waited for the last copy of the command answered as number `answered`.
    pub(super) fn release_flushes(&mut self, at: u64, answered: u64) {
        for place in self.pieces.places_of(|flush| flush.is_held_flush() && answered < flush.covers) {
            if let Some(flush) = self.pieces.get(place) {
                flush.stragglers -= 1;
                if flush.stragglers == 0 {
                    self.send(at, place);
                }
            }
        }
    }
}
