//! Commands that wait for their pieces.

use plumb_block::Op;

use crate::command::Command;
use crate::timing::array::parameters::COLUMNS_MAX;

/// A command with the state of its pieces.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    pub(super) command: Command,
    /// Number of unanswered copies.
    pub(super) outstanding: u32,
    /// Number of pieces without enough answers.
    pub(super) pieces_short: u32,
    /// Number of answers for each column's piece.
    answers: [u8; COLUMNS_MAX],
    /// Required number of answers for each piece.
    pub(super) answers_needed: u8,
    /// Number of copies in a volatile cache.
    pub(super) unpersisted: u32,
    /// True if there were such copies, and the command was not reported as persisted.
    pub(super) at_risk: bool,
    /// Number of commands answered before it.
    pub(super) answered: Option<u64>,
    /// For a flush: number of commands answered at its arrival, which it covers.
    pub(super) covers: u64,
    /// For a flush: number of covered commands with unanswered copies. The flush goes to the members when
    /// there are none.
    pub(super) stragglers: u32,
    /// Number of pieces that had arrived when it was submitted: lower-numbered pieces belong to other
    /// commands.
    pub(super) born: u64,
}

impl Whole {
    /// Creates a command without any answers.
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

    /// Records an answer for the piece on `column`. Returns true if every piece now has enough.
    pub(super) fn take_answer(&mut self, column: usize) -> bool {
        self.outstanding -= 1;
        self.answers[column] += 1;
        if self.answers[column] != self.answers_needed {
            return false;
        }
        self.pieces_short -= 1;
        self.pieces_short == 0
    }

    /// Returns true if the command was answered although copies are outstanding.
    pub(super) const fn is_straggling(&self) -> bool {
        self.answered.is_some() && self.outstanding > 0
    }

    /// Returns true if the command is among the first `covers` answered, all of its copies have answered, and
    /// it was not reported as persisted.
    pub(super) fn is_covered(&self, covers: u64) -> bool {
        self.at_risk && self.outstanding == 0 && self.answered.is_some_and(|answered| answered < covers)
    }

    /// Returns true if it is a flush that waits for stragglers.
    pub(super) fn is_held_flush(&self) -> bool {
        self.command.op == Op::Flush && self.stragglers > 0
    }

    /// Returns true if nothing more will happen to it.
    pub(super) const fn is_over(&self) -> bool {
        self.answered.is_some() && self.outstanding == 0 && !self.at_risk
    }
}

/// All unfinished commands. Slots are reused.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    places: Vec<Option<Whole>>,
    free: Vec<u32>,
}

impl Pieces {
    /// Adds a command and returns its slot.
    pub(super) fn add(&mut self, whole: Whole) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(whole);
            return place;
        }
        self.places.push(Some(whole));
        (self.places.len() - 1) as u32
    }

    /// Returns the command in `place`, if it is unfinished.
    pub(super) fn get(&mut self, place: u32) -> Option<&mut Whole> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Frees the slot if its command is over.
    pub(super) fn remove_if_over(&mut self, place: u32) {
        if self.get(place).is_some_and(|whole| whole.is_over()) {
            self.places[place as usize] = None;
            self.free.push(place);
        }
    }

    /// Returns the slots of all commands that satisfy `wanted`.
    pub(super) fn places_of(&self, wanted: impl Fn(&Whole) -> bool) -> Vec<u32> {
        let wanted = |whole: &Option<Whole>| whole.as_ref().is_some_and(&wanted);
        (0..).zip(&self.places).filter(|(_, whole)| wanted(whole)).map(|(place, _)| place).collect()
    }

    /// Removes everything after a power cut.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
