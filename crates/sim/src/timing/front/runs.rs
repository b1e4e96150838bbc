//! Runs of sectors in numbered places. A place keeps the memory of its tickets: nothing is allocated in the long run.

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

/// All runs, those that wait and those that leave.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    free: Vec<Place>,
}

impl Runs {
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
}
