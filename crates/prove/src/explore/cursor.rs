//! A state that a cut may leave, and the way from one to the next.

use std::ops::ControlFlow;
use std::sync::Arc;

use plumb_crash::{Keep, Survivor};

use super::choice::Choice;
use super::cut::{Cut, Spot};
use super::image::{Image, hash_of};
use crate::recording::{CommandId, Content};

/// Whoever is shown the states, until it breaks off.
pub(super) type Show<'s> = &'s mut dyn FnMut(&State<'_>) -> ControlFlow<()>;

/// A state that a cut may leave.
pub struct State<'a> {
    cut: &'a Cut<'a>,
    survives: &'a [bool],
    /// For each spot where more than one may be left: which.
    picks: &'a [(usize, Survivor)],
    /// Of one piece only these blocks survive.
    tear: Option<(usize, Keep)>,
    hash: u128,
}

/// A state on its own, to be checked elsewhere.
#[derive(Debug, Clone)]
pub struct OwnedState {
    /// What was durable.
    pub durable: Arc<Image>,
    /// The blocks that may differ from that, with what they hold.
    pub changes: Vec<(u64, Content)>,
    /// What a checker must find.
    pub required: Option<u64>,
    /// What the cut took.
    pub choice: Choice,
}

impl OwnedState {
    /// What a block holds.
    pub fn content(&self, lba: u64) -> Content {
        let changed = self.changes.binary_search_by_key(&lba, |(changed, _)| *changed);
        changed.map_or_else(|_| self.durable.content(lba), |place| self.changes[place].1)
    }
}

/// Which of the pieces survive, with the hash of what that leaves.
pub(super) struct Cursor<'a> {
    cut: &'a Cut<'a>,
    survives: Vec<bool>,
    hash: u128,
    /// For each spot, what it adds to the hash now.
    adds: Vec<u128>,
    /// The spots where several may be the last, since they were in flight together.
    open: Vec<usize>,
    survivors: Vec<Survivor>,
}

impl Spot {
    /// What may be left in a block here, if `survives` says what survives; the last submitted last.
    fn survivors(&self, survives: impl Fn(usize) -> bool, survivors: &mut Vec<Survivor>) {
        let known = |place: usize| self.pieces[place].map(&survives);
        self.run.survivors(known, false, survivors);
    }

    fn change(&self, survivor: Survivor) -> u128 {
        let place = self.run.versions.iter().position(|one| Survivor::Command(one.id) == survivor);
        place.map_or(0, |place| self.changes[place])
    }
}

impl<'a> Cursor<'a> {
    /// Where nothing survives that may be lost.
    pub(super) fn new(cut: &'a Cut<'a>) -> Self {
        let mut cursor = Self {
            cut,
            survives: vec![false; cut.pieces.len()],
            hash: cut.image.hash(),
            adds: vec![0; cut.spots.len()],
            open: Vec::new(),
            survivors: Vec::new(),
        };
        let shared = (0..cut.spots.len()).filter(|spot| cut.spots[*spot].run.versions.len() > 1);
        shared.for_each(|spot| cursor.settle(spot));
        cursor
    }

    /// What survived of the piece does not, or the other way round.
    pub(super) fn flip(&mut self, piece: usize) {
        self.survives[piece] = !self.survives[piece];
        let cut = self.cut;
        self.hash ^= cut.pieces[piece].alone;
        for spot in &cut.pieces[piece].shared_in {
            self.settle(*spot);
        }
    }

    /// Lets the piece survive, or not.
    pub(super) fn set(&mut self, piece: usize, survives: bool) {
        if self.survives[piece] != survives {
            self.flip(piece);
        }
    }

    /// Finds out anew what is left in a spot.
    fn settle(&mut self, spot: usize) {
        let here = &self.cut.spots[spot];
        let survives = &self.survives;
        here.survivors(|piece| survives[piece], &mut self.survivors);
        let was_open = self.open.iter().position(|one| *one == spot);
        match (was_open, self.survivors.len() > 1) {
            (Some(place), false) => {
                self.open.swap_remove(place);
            }
            (None, true) => self.open.push(spot),
            _ => {}
        }
        let adds = self.survivors.last().map_or(0, |last| here.change(*last));
        self.hash ^= self.adds[spot] ^ adds;
        self.adds[spot] = adds;
    }

    /// Shows the state, and where commands were in flight together that for each order in which they may have landed, up to
    /// so many. Whether those were all.
    pub(super) fn each_order(&self, most: usize, show: Show<'_>) -> ControlFlow<(), bool> {
        if self.open.is_empty() {
            show(&self.state(&[], None, self.hash))?;
            return ControlFlow::Continue(true);
        }
        let mut choices = Vec::with_capacity(self.open.len());
        for spot in &self.open {
            let mut survivors = Vec::new();
            self.cut.spots[*spot].survivors(|piece| self.survives[piece], &mut survivors);
            choices.push((*spot, survivors));
        }
        let mut places: Vec<usize> = choices.iter().map(|(_, survivors)| survivors.len() - 1).collect();
        for _ in 0..most {
            let picks: Vec<_> =
                choices.iter().zip(&places).map(|((spot, survivors), at)| (*spot, survivors[*at])).collect();
            let changed = picks
                .iter()
                .fold(0, |hash, (spot, pick)| hash ^ self.adds[*spot] ^ self.cut.spots[*spot].change(*pick));
            show(&self.state(&picks, None, self.hash ^ changed))?;
            // An odometer that counts down.
            let Some(next) = places.iter().position(|place| *place > 0) else {
                return ControlFlow::Continue(true);
            };
            places[next] -= 1;
            for (place, (_, survivors)) in places.iter_mut().zip(&choices).take(next) {
                *place = survivors.len() - 1;
            }
        }
        ControlFlow::Continue(false)
    }

    fn state<'s>(
        &'s self,
        picks: &'s [(usize, Survivor)],
        tear: Option<(usize, Keep)>,
        hash: u128,
    ) -> State<'s> {
        State { cut: self.cut, survives: &self.survives, picks, tear, hash }
    }

    /// The state in which of `piece`, which survives, only these blocks do.
    pub(super) fn torn(&self, piece: usize, keep: Keep) -> State<'_> {
        let mut state = self.state(&[], Some((piece, keep)), self.hash);
        let torn = &self.cut.pieces[piece];
        for spot in torn.alone_in.iter().chain(&torn.shared_in) {
            let (whole, rest) = (state.left(*spot, None), state.left(*spot, Some(piece)));
            for lba in self.cut.blocks_of(&self.cut.spots[*spot].run) {
                if !state.keeps(piece, keep, lba) {
                    let (whole, rest) = (self.cut.content(lba, whole), self.cut.content(lba, rest));
                    state.hash ^= hash_of(lba, whole) ^ hash_of(lba, rest);
                }
            }
        }
        state
    }
}

impl State<'_> {
    /// Equal for states in which every block holds the same.
    pub const fn hash(&self) -> u128 {
        self.hash
    }

    /// The last acknowledgement before the cut: what a checker must find.
    pub const fn required(&self) -> Option<u64> {
        self.cut.required
    }

    /// The event of the recording before which the power goes.
    pub const fn event(&self) -> usize {
        self.cut.event
    }

    /// The blocks in which the state may differ from what was durable, with what they hold, in order.
    pub fn changes(&self) -> Vec<(u64, Content)> {
        let spots = 0..self.cut.spots.len();
        let mut changes: Vec<(u64, Content)> = spots.flat_map(|spot| self.blocks(spot)).collect();
        changes.sort_unstable();
        changes
    }

    /// What a block holds.
    pub fn content(&self, lba: u64) -> Content {
        let spots = &self.cut.spots;
        let spot = spots.partition_point(|spot| spot.run.range.end().0 <= lba);
        if spots.get(spot).is_none_or(|spot| spot.run.range.lba.0 > lba) {
            return self.cut.image.content(lba);
        }
        self.content_in(spot, lba)
    }

    /// What was durable.
    pub const fn durable(&self) -> &Image {
        self.cut.image
    }

    /// The same on its own. What was durable is copied once for all states of a moment.
    pub fn to_owned(&self) -> OwnedState {
        let durable = self.cut.owned_image.get_or_init(|| Arc::new(self.cut.image.clone()));
        OwnedState {
            durable: Arc::clone(durable),
            changes: self.changes(),
            required: self.required(),
            choice: self.choice(),
        }
    }

    /// The blocks that each piece has lost; an atomic command of several blocks has lost all of them or none.
    pub(super) fn lost_blocks(&self) -> Vec<(CommandId, Vec<u64>)> {
        let mut lost = Vec::new();
        for (number, piece) in self.cut.pieces.iter().enumerate() {
            let tear = self.tear.filter(|(torn, _)| *torn == number).map(|(_, keep)| keep);
            let range = self.cut.command(u64::from(piece.command.0)).range;
            let is_lost = |lba: &u64| match tear {
                Some(keep) => !keep.keeps(lba - range.lba.0, range.nlb),
                None => !self.survives[number],
            };
            let spots = piece.alone_in.iter().chain(&piece.shared_in);
            let blocks = spots.flat_map(|spot| self.cut.blocks_of(&self.cut.spots[*spot].run));
            let blocks: Vec<u64> = blocks.filter(is_lost).collect();
            if !blocks.is_empty() {
                lost.push((piece.command, blocks));
            }
        }
        lost
    }

    /// What the blocks of a spot hold.
    fn blocks(&self, spot: usize) -> impl Iterator<Item = (u64, Content)> {
        let blocks = self.cut.blocks_of(&self.cut.spots[spot].run);
        blocks.into_iter().map(move |lba| (lba, self.content_in(spot, lba)))
    }

    /// What one of them holds.
    fn content_in(&self, spot: usize, lba: u64) -> Content {
        let here = &self.cut.spots[spot];
        let is_torn_off = |(piece, keep): &(usize, Keep)| {
            here.pieces.contains(&Some(*piece)) && !self.keeps(*piece, *keep, lba)
        };
        let but = self.tear.filter(is_torn_off).map(|(piece, _)| piece);
        self.cut.content(lba, self.left(spot, but))
    }

    /// Whether a tear leaves this block of the piece.
    fn keeps(&self, piece: usize, keep: Keep, lba: u64) -> bool {
        let range = self.cut.command(u64::from(self.cut.pieces[piece].command.0)).range;
        keep.keeps(lba - range.lba.0, range.nlb)
    }

    /// Which version is left in a spot; `but` does not survive there.
    fn left(&self, spot: usize, but: Option<usize>) -> Survivor {
        if let (None, Some((_, pick))) = (but, self.picks.iter().find(|(open, _)| *open == spot)) {
            return *pick;
        }
        let mut survivors = Vec::new();
        self.cut.spots[spot].survivors(|piece| self.survives[piece] && Some(piece) != but, &mut survivors);
        survivors.last().copied().unwrap_or(Survivor::Stored)
    }
}
