//! When what an array was given is out of the caches of its members, and which flushes wait for that.

use plumb_block::Nanos;

use super::timing::{ArrayTiming, PLACE_BITS};
use crate::command::CommandId;
use crate::timing::Event;

impl ArrayTiming {
    /// Returns the command to which a piece belongs, if that still waits for anything.
    pub(super) fn place_of(&mut self, piece: CommandId) -> Option<u32> {
        let place = (piece.0 & ((1 << PLACE_BITS) - 1)) as u32;
        let arrival = piece.0 >> PLACE_BITS;
        self.pieces.get(place).filter(|whole| arrival > whole.born).map(|_| place)
    }

    /// Says that the command in `place` is out of the cache once it is answered and all copies are.
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

    /// Says so of all that were answered before `covers` others.
    pub(super) fn persist_covered(&mut self, at: u64, covers: u64, events: &mut Vec<Event>) {
        for place in self.pieces.places_of(|whole| whole.is_covered(covers)) {
            if let Some(whole) = self.pieces.get(place) {
                whole.unpersisted = 0;
            }
            self.settle(at, place, events);
        }
    }

    /// The last copy of a command that was the `answered`th to be answered has answered: flushes that waited
    /// for it go.
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
