//! Commands that wait for their pieces.

use plumb_block::Op;

use crate::command::Command;
use crate::timing::array::parameters::COLUMNS_MAX;

/// One command with what it waits for.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    pub(super) command: Command,
    /// Copies that have not answered.
    pub(super) outstanding: u32,
    /// Pieces of which too few copies have answered.
    pub(super) pieces_short: u32,
    /// How many copies of each column's piece have answered.
    answers: [u8; COLUMNS_MAX],
    /// How many must.
    pub(super) answers_needed: u8,
    /// Copies that are in a volatile cache.
    pub(super) unpersisted: u32,
    /// There were such copies, and it has not been said that they are out of it.
    pub(super) at_risk: bool,
    /// Number of commands that had been answered before it was.
    pub(super) answered: Option<u64>,
    /// Number of commands that had been answered when a flush arrived, which it covers.
    pub(super) covers: u64,
    /// For a flush: of these, how many have copies that have not answered. It goes to the members when there
    /// are none.
    pub(super) stragglers: u32,
    /// Number of pieces that had arrived anywhere when it came: pieces with smaller numbers are not its own.
    pub(super) born: u64,
}

impl Whole {
    /// Creates a command of which nothing is known yet.
    pub(super) const fn new(command: Command, answers_needed: u8, born: u64) -> Self {
        Self {
            command,
            outstanding: 0,
            pieces_short: 0,
            answers: [0; COLUMNS_MAX],
            answers_needed,
            unpersisted: 0,
            at_risk: false,
            answered: None,
            covers: 0,
            stragglers: 0,
            born,
        }
    }

    /// Returns a copy of the piece on `column` has answered; true if with it enough have, of every piece.
    pub(super) fn take_answer(&mut self, column: usize) -> bool {
        self.outstanding -= 1;
        self.answers[column] += 1;
        if self.answers[column] != self.answers_needed {
            return false;
        }
        self.pieces_short -= 1;
        self.pieces_short == 0
    }

    /// Returns true if the command was answered to the host although not all copies have answered.
    pub(super) const fn is_straggling(&self) -> bool {
        self.answered.is_some() && self.outstanding > 0
    }

    /// Returns true if the command was one of the first `covers` to be answered, all its copies have
    /// answered, and it has not been said that it is out of the cache.
    pub(super) fn is_covered(&self, covers: u64) -> bool {
        self.at_risk && self.outstanding == 0 && self.answered.is_some_and(|answered| answered < covers)
    }

    /// Returns true if a flush waits for stragglers.
    pub(super) fn is_held_flush(&self) -> bool {
        self.command.op == Op::Flush && self.stragglers > 0
    }

    /// Returns true if nothing more will happen to it.
    pub(super) const fn is_over(&self) -> bool {
        self.answered.is_some() && self.outstanding == 0 && !self.at_risk
    }
}

/// All commands that are not done with. Places are reused.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    places: Vec<Option<Whole>>,
    free: Vec<u32>,
}

impl Pieces {
    /// Keeps a place for a command.
    pub(super) fn add(&mut self, whole: Whole) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(whole);
            return place;
        }
        self.places.push(Some(whole));
        (self.places.len() - 1) as u32
    }

    /// Returns the command in `place`, if it is not done with.
    pub(super) fn get(&mut self, place: u32) -> Option<&mut Whole> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Gives the place away if nothing more will happen there.
    pub(super) fn remove_if_over(&mut self, place: u32) {
        if self.get(place).is_some_and(|whole| whole.is_over()) {
            self.places[place as usize] = None;
            self.free.push(place);
        }
    }

    /// Returns the places of all commands of which `wanted` holds.
    pub(super) fn places_of(&self, wanted: impl Fn(&Whole) -> bool) -> Vec<u32> {
        let wanted = |whole: &Option<Whole>| whole.as_ref().is_some_and(&wanted);
        (0..).zip(&self.places).filter(|(_, whole)| wanted(whole)).map(|(place, _)| place).collect()
    }

    /// Notes that the power is gone: nobody waits any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
