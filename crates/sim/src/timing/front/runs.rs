//! Runs of sectors in numbered places, and those of them that wait in the order of their addresses.
//!
//! The order is an array: a run is found by halving, its neighbours stand beside it, and moving some thousand entries
//! costs less than a tree. A place keeps the memory of its tickets: nothing is allocated in the long run.

use crate::command::Sectors;

/// A party that waits for a run: an index into the tickets.
pub(super) type Ticket = u32;
/// Where a run is kept as long as it waits or leaves.
pub(super) type Place = u32;

/// What is known of a run besides where it begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    pub(super) end: u64,
    /// When its oldest part came, counted in writes.
    pub(super) born: u64,
    /// A cut would lose it although it was answered.
    pub(super) at_risk: bool,
    pub(super) waiting: Vec<Ticket>,
}

/// All runs. A rank is the number of waiting runs that begin before one.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    free: Vec<Place>,
    /// Where those that wait begin.
    firsts: Vec<u64>,
    /// Their places.
    places: Vec<Place>,
}

impl Runs {
    /// How many wait.
    pub(super) const fn waiting(&self) -> usize {
        self.firsts.len()
    }

    /// A place for a run that nobody waits for yet.
    pub(super) fn open(&mut self, end: u64, born: u64, at_risk: bool) -> Place {
        let place = self.free.pop().unwrap_or_else(|| {
            self.runs.push(Run::default());
            (self.runs.len() - 1) as Place
        });
        let run = &mut self.runs[place as usize];
        (run.end, run.born, run.at_risk) = (end, born, at_risk);
        place
    }

    /// Forgets the run of a place, whose tickets are gone.
    pub(super) fn close(&mut self, place: Place) {
        self.free.push(place);
    }

    pub(super) fn get(&self, place: Place) -> &Run {
        &self.runs[place as usize]
    }

    pub(super) fn get_mut(&mut self, place: Place) -> &mut Run {
        &mut self.runs[place as usize]
    }

    /// How many begin before `sector`.
    pub(super) fn rank(&self, sector: u64) -> usize {
        self.firsts.partition_point(|first| *first < sector)
    }

    /// Where the run of a rank begins, and its place.
    pub(super) fn at(&self, rank: usize) -> Option<(u64, Place)> {
        Some((*self.firsts.get(rank)?, *self.places.get(rank)?))
    }

    /// The rank of the run that has `sector`.
    pub(super) fn with(&self, sector: u64) -> Option<usize> {
        let rank = self.rank(sector + 1).checked_sub(1)?;
        (self.end_at(rank) > sector).then_some(rank)
    }

    /// Where the waiting run of a rank ends.
    pub(super) fn end_at(&self, rank: usize) -> u64 {
        self.get(self.places[rank]).end
    }

    /// Lets the run of a place wait.
    pub(super) fn insert(&mut self, rank: usize, first: u64, place: Place) {
        self.firsts.insert(rank, first);
        self.places.insert(rank, place);
    }

    /// Lets the run of a rank wait no more.
    pub(super) fn remove(&mut self, rank: usize) -> (u64, Place) {
        (self.firsts.remove(rank), self.places.remove(rank))
    }

    /// Gives what `other` has to `place`: its tickets come first, as it is older. `other` is forgotten.
    pub(super) fn join(&mut self, place: Place, other: Place) {
        let mut older = std::mem::take(&mut self.get_mut(other).waiting);
        let (end, born, at_risk) = (self.get(other).end, self.get(other).born, self.get(other).at_risk);
        let run = self.get_mut(place);
        run.end = run.end.max(end);
        run.born = run.born.min(born);
        run.at_risk |= at_risk;
        older.append(&mut run.waiting);
        std::mem::swap(&mut older, &mut run.waiting);
        self.get_mut(other).waiting = older;
        self.close(other);
    }

    /// Those that wait, in the order of their addresses.
    pub(super) fn each(&self) -> impl Iterator<Item = (Sectors, Place)> {
        let all = self.firsts.iter().zip(&self.places);
        all.map(|(first, place)| (Sectors { first: *first, count: self.get(*place).end - first }, *place))
    }

    /// The place of the waiting run of a rank.
    pub(super) fn place(&self, rank: usize) -> Place {
        self.places[rank]
    }
}
