//! States that a cut may leave, and the steps from one to the next.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use plumb_crash::Survivor;

use super::choice::Choice;
use super::cut::{Cut, Version, Whole};
use super::image::Image;
use crate::recording::Content;

/// Callback that is shown the states, until it breaks off.
pub(super) type Show<'s> = &'s mut dyn FnMut(&State<'_>) -> ControlFlow<()>;

/// State that a cut may leave.
pub struct State<'a> {
    cursor: &'a Cursor<'a>,
    /// For spots where several versions may be the last: the one chosen, if it is not the last submitted.
    picks: &'a [(usize, Survivor)],
    hash: u128,
    /// False if the state was shown before.
    is_new: bool,
}

/// Blocks that have been read by the checks of the states shown since [`Cursor::follow`].
#[derive(Default)]
struct Reads {
    is_followed: Cell<bool>,
    /// Number of shown states whose reads have not been reported.
    untold: Cell<u64>,
    blocks: RefCell<HashSet<u64>>,
}

/// Owned copy of a state, to be checked elsewhere.
#[derive(Debug, Clone)]
pub struct OwnedState {
    /// Durable image.
    pub durable: Arc<Image>,
    /// Blocks that may differ from the durable image, with their contents, in order.
    pub changes: Vec<(u64, Content)>,
    /// Number of the acknowledgement that a checker must find.
    pub required: Option<u64>,
}

impl OwnedState {
    /// Returns the content of a block.
    pub fn content(&self, lba: u64) -> Content {
        let changed = self.changes.binary_search_by_key(&lba, |(changed, _)| *changed);
        changed.map_or_else(|_| self.durable.content(lba), |place| self.changes[place].1)
    }
}

/// Choice of surviving pieces, with the hash of the state that they leave.
pub(super) struct Cursor<'a> {
    cut: &'a Cut<'a>,
    survives: Vec<bool>,
    /// Survivor in each spot with several pieces. Among pieces in flight together it is the one submitted
    /// last.
    left: Vec<Survivor>,
    /// Spots in which several versions may be the last, since they were in flight together.
    open: Vec<usize>,
    hash: u128,
    survivors: Vec<Survivor>,
    reads: Reads,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the state in which nothing that may be lost survives.
    pub(super) fn new(cut: &'a Cut<'a>) -> Self {
        let mut cursor = Self {
            cut,
            survives: vec![false; cut.pieces.len()],
            left: vec![Survivor::Stored; cut.spots.len()],
            open: Vec::new(),
            hash: cut.image.hash(),
            survivors: Vec::new(),
            reads: Reads::default(),
        };
        let shared = (0..cut.spots.len()).filter(|spot| cut.versions(*spot).len() > 1);
        shared.for_each(|spot| cursor.settle(spot));
        cursor
    }

    /// Inverts the fate of a piece: a surviving piece is lost, and a lost one survives.
    pub(super) fn flip(&mut self, piece: usize) {
        self.survives[piece] = !self.survives[piece];
        let cut = self.cut;
        for spot in &cut.pieces[piece].spots {
            match cut.versions(*spot) {
                [only] => self.hash ^= only.change,
                _ => self.settle(*spot),
            }
        }
    }

    /// Inverts the fate of all pieces of a command.
    pub(super) fn flip_command(&mut self, command: usize) {
        let Whole { pieces, alone, shared } = &self.cut.commands[command];
        self.survives[pieces.clone()].iter_mut().for_each(|survives| *survives = !*survives);
        self.hash ^= alone;
        shared.iter().for_each(|spot| self.settle(*spot));
    }

    /// Inverts the fate of all pieces of these commands. Each spot is updated once, even if several of the
    /// commands overlap it.
    pub(super) fn flip_commands(&mut self, commands: impl Iterator<Item = usize>) {
        let cut = self.cut;
        let mut spots: BTreeSet<usize> = BTreeSet::new();
        for command in commands {
            let Whole { pieces, alone, shared } = &cut.commands[command];
            self.survives[pieces.clone()].iter_mut().for_each(|survives| *survives = !*survives);
            self.hash ^= alone;
            spots.extend(shared);
        }
        spots.into_iter().for_each(|spot| self.settle(spot));
    }

    /// Sets whether the piece survives.
    pub(super) fn set(&mut self, piece: usize, survives: bool) {
        if self.survives[piece] != survives {
            self.flip(piece);
        }
    }

    /// Fills `survivors` with the versions that may be left in a spot, the last submitted last.
    fn survivors(&self, spot: usize, survivors: &mut Vec<Survivor>) {
        let versions = self.cut.versions(spot);
        let known = |place: usize| versions[place].piece.map(|piece| self.survives[piece]);
        self.cut.runs[self.cut.spots[spot].run].survivors(known, false, survivors);
    }

    /// Updates the survivor of a spot.
    fn settle(&mut self, spot: usize) {
        let mut survivors = std::mem::take(&mut self.survivors);
        self.survivors(spot, &mut survivors);
        let was_open = self.open.iter().position(|one| *one == spot);
        match (was_open, survivors.len() > 1) {
            (Some(place), false) => {
                self.open.swap_remove(place);
            }
            (None, true) => self.open.push(spot),
            _ => {}
        }
        let last = survivors.last().copied().unwrap_or(Survivor::Stored);
        if last != self.left[spot] {
            self.hash ^= self.cut.change(spot, self.left[spot]) ^ self.cut.change(spot, last);
            self.left[spot] = last;
        }
        self.survivors = survivors;
    }

    /// Shows the state; if commands were in flight together, once for each order in which they may have
    /// landed, up to `most` orders. With `same_in_run` the order is the same in all blocks that the same
    /// commands cover, otherwise each block has its own. Returns true if all orders were shown.
    pub(super) fn each_order(&self, most: usize, same_in_run: bool, show: Show<'_>) -> ControlFlow<(), bool> {
        if self.open.is_empty() {
            self.show(show)?;
            return ControlFlow::Continue(true);
        }
        if !self.is_possible() {
            return ControlFlow::Continue(true);
        }
        let mut open = self.open.clone();
        open.sort_unstable();
        let run = |spot: &usize| self.cut.spots[*spot].run;
        let groups: Vec<&[usize]> =
            open.chunk_by(|one, other| same_in_run && run(one) == run(other)).collect();
        let choices = groups.iter().map(|spots| {
            let mut survivors = Vec::new();
            self.survivors(spots[0], &mut survivors);
            survivors
        });
        let choices: Vec<Vec<Survivor>> = choices.collect();
        let mut places: Vec<usize> = choices.iter().map(|survivors| survivors.len() - 1).collect();
        for _ in 0..most {
            let mut picks = Vec::new();
            for ((spots, survivors), place) in groups.iter().zip(&choices).zip(&places) {
                picks.extend(spots.iter().map(|spot| (*spot, survivors[*place])));
            }
            let change = |spot, pick| self.cut.change(spot, self.left[spot]) ^ self.cut.change(spot, pick);
            let changed = picks.iter().fold(0, |hash, (spot, pick)| hash ^ change(*spot, *pick));
            self.show_one(&picks, self.hash ^ changed, show)?;
            // Counts down like an odometer.
            let Some(next) = places.iter().position(|place| *place > 0) else {
                return ControlFlow::Continue(true);
            };
            places[next] -= 1;
            for (place, survivors) in places.iter_mut().zip(&choices).take(next) {
                *place = survivors.len() - 1;
            }
        }
        ControlFlow::Continue(false)
    }

    /// Returns true if each surviving piece has all pieces that it depends on.
    fn is_possible(&self) -> bool {
        self.unmet().is_none()
    }

    /// Shows the state. Does nothing if no cut leaves it.
    pub(super) fn show(&self, show: Show<'_>) -> ControlFlow<()> {
        if !self.is_possible() {
            return ControlFlow::Continue(());
        }
        self.show_one(&[], self.hash, show)
    }

    fn show_one(&self, picks: &[(usize, Survivor)], hash: u128, show: Show<'_>) -> ControlFlow<()> {
        self.reads.untold.update(|untold| untold + 1);
        show(&State { cursor: self, picks, hash, is_new: true })
    }

    /// Starts to collect the reads of the checks of the states shown from now on.
    pub(super) fn follow(&mut self) {
        self.reads = Reads { is_followed: Cell::new(true), ..Reads::default() };
    }

    /// Stops to collect reads.
    pub(super) fn unfollow(&mut self) {
        self.reads = Reads::default();
    }

    /// Returns true if the check of a state shown since [`follow`](Self::follow) read a block of this piece,
    /// or if not all of these checks reported their reads.
    pub(super) fn was_read(&self, piece: usize) -> bool {
        let blocks = self.reads.blocks.borrow();
        let mut spots = self.cut.pieces[piece].spots.iter();
        self.reads.untold.get() > 0 || spots.any(|spot| blocks.contains(&self.cut.spots[*spot].lba))
    }

    /// Returns a lost piece that a surviving one depends on, if there is one.
    pub(super) fn unmet(&self) -> Option<usize> {
        let is_unmet = |needs: usize, piece: usize| self.survives[piece] && !self.survives[needs];
        self.cut.dependences.iter().find(|one| is_unmet(one.needs, one.piece)).map(|one| one.needs)
    }
}

impl State<'_> {
    /// Returns the state, marked as shown before.
    pub(super) const fn again(&self) -> State<'_> {
        State { cursor: self.cursor, picks: self.picks, hash: self.hash, is_new: false }
    }

    /// Returns false if the state was shown before and is shown again only for the reads of its check.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns true if the reads of the check decide which states are shown next.
    pub fn wants_reads(&self) -> bool {
        self.cursor.reads.is_followed.get()
    }

    /// Reports which of the blocks that differ between states the check has read. A state that is equal in
    /// these blocks has the same result.
    pub fn set_reads(&self, blocks: &[u64]) {
        self.cursor.reads.untold.update(|untold| untold.saturating_sub(1));
        self.cursor.reads.blocks.borrow_mut().extend(blocks);
    }

    /// Returns a hash that is equal for states with equal contents.
    pub const fn hash(&self) -> u128 {
        self.hash
    }

    /// Returns the number of the last acknowledgement before the cut, which a checker must find.
    pub const fn required(&self) -> Option<u64> {
        self.cursor.cut.required
    }

    /// Returns the event of the recording before which the power fails.
    pub const fn event(&self) -> usize {
        self.cursor.cut.event
    }

    /// Returns the blocks that may differ from the durable image, with their contents, in order.
    pub fn changes(&self) -> Vec<(u64, Content)> {
        let spots = self.cursor.cut.spots.iter().enumerate();
        spots.map(|(number, spot)| (spot.lba, self.surviving_content(number, spot.lba))).collect()
    }

    /// Returns the content of a block.
    pub fn content(&self, lba: u64) -> Content {
        let cut = self.cursor.cut;
        let spot = cut.spots.binary_search_by_key(&lba, |spot| spot.lba);
        spot.map_or_else(|_| cut.image.content(lba), |spot| self.surviving_content(spot, lba))
    }

    /// Returns the durable image.
    pub const fn durable(&self) -> &Image {
        self.cursor.cut.image
    }

    /// Returns an owned copy of the state. All copies of one moment share one copy of the durable image.
    pub fn to_owned(&self) -> OwnedState {
        let cut = self.cursor.cut;
        let durable = Arc::clone(cut.owned_image.get_or_init(|| Arc::new(cut.image.clone())));
        OwnedState { durable, changes: self.changes(), required: self.required() }
    }

    /// Returns the event of the cut and the blocks lost from each command.
    pub fn choice(&self) -> Choice {
        let cut = self.cursor.cut;
        let mut choice = Choice { event: cut.event, lost: Default::default() };
        for (piece, survives) in cut.pieces.iter().zip(&self.cursor.survives) {
            if !survives {
                let blocks = piece.spots.iter().map(|spot| cut.spots[*spot].lba);
                choice.lost.entry(piece.command).or_default().extend(blocks);
            }
        }
        choice
    }

    /// Returns the content of a spot after the cut.
    fn surviving_content(&self, spot: usize, lba: u64) -> Content {
        let Cursor { cut, survives, left, .. } = self.cursor;
        let pick = self.picks.iter().find(|(open, _)| *open == spot).map(|(_, pick)| *pick);
        let left = match cut.versions(spot) {
            [Version { piece: Some(piece), .. }] if survives[*piece] => {
                Survivor::Command(cut.runs[cut.spots[spot].run].versions[0].id)
            }
            _ => pick.unwrap_or(left[spot]),
        };
        cut.content(lba, left)
    }
}
