//! What has been written and is not on the medium yet: runs of sectors, and who waits for each.
//!
//! Runs that wait never overlap each other: a write over one joins it, and who waits for the older version waits for the
//! newer. A run that is being destaged keeps its version; what is written over it meanwhile waits behind it, and is not
//! given to the mechanics before it is done, so the medium never sees the older version last.

use std::collections::BTreeMap;

use crate::command::Sectors;
use crate::timing::mechanics::{JobId, Urgency};

use super::destage::Sweep;
use super::leaving::{Gone, Leaving};
use super::runs::{Place, Run, Runs, Ticket};

/// The runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Cache {
    runs: Runs,
    /// Those that wait, by where they begin.
    order: BTreeMap<u64, Place>,
    /// Where the run begins that was born so; empty unless the cache is emptied by age.
    by_age: BTreeMap<u64, u64>,
    emptied_by_age: bool,
    leaving: Leaving,
    sectors: u64,
    sectors_at_risk: u64,
    births: u64,
}

impl Cache {
    /// An empty cache that is emptied in the order of `sweep`.
    pub(super) fn new(sweep: &Sweep) -> Self {
        Self { emptied_by_age: sweep.cursor().is_none(), ..Self::default() }
    }

    /// Sectors that wait or leave.
    pub(super) const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Those of them that a cut would lose.
    pub(super) const fn sectors_at_risk(&self) -> u64 {
        self.sectors_at_risk
    }

    /// Runs that wait or leave.
    pub(super) fn runs(&self) -> usize {
        self.order.len() + self.leaving.len()
    }

    /// Runs that wait.
    pub(super) fn waiting_runs(&self) -> usize {
        self.order.len()
    }

    /// Runs that leave.
    pub(super) const fn leaving_runs(&self) -> usize {
        self.leaving.len()
    }

    /// What leaves in the background, which from now on it does not any more.
    pub(super) fn unhurried(&mut self) -> impl Iterator<Item = JobId> {
        self.leaving.unhurried()
    }

    /// How many writes have come so far.
    pub(super) const fn births(&self) -> u64 {
        self.births
    }

    /// Takes in `sectors`, joined with what they overlap, and with what they touch up to `coalesce` sectors. Returns
    /// where the run begins.
    pub(super) fn insert(
        &mut self,
        sectors: Sectors,
        coalesce: u64,
        at_risk: bool,
        ticket: Option<Ticket>,
    ) -> u64 {
        self.births += 1;
        let place = self.runs.open(sectors.end(), self.births, at_risk);
        let mut first = sectors.first;
        // The last one that begins before its end, as long as that overlaps it, and then the one that may touch it.
        let mut before = self.before(sectors.end());
        while let Some((start, _)) = before.filter(|(_, run)| self.runs.get(*run).end > sectors.first) {
            self.join(place, start);
            first = first.min(start);
            before = self.before(start);
        }
        let end = self.runs.get(place).end;
        let touches =
            |(start, run): &(u64, Place)| self.runs.get(*run).end == first && end - start <= coalesce;
        if let Some((start, _)) = before.filter(touches) {
            self.join(place, start);
            first = start;
        }
        if coalesce > 0
            && let Some(behind) = self.order.get(&end).copied()
            && self.runs.get(behind).end - first <= coalesce
        {
            self.join(place, end);
        }
        self.runs.get_mut(place).waiting.extend(ticket);
        self.put(first, place);
        first
    }

    /// Makes the waiting run at `first` part of the one at `place`.
    fn join(&mut self, place: Place, first: u64) {
        if let Some(other) = self.take(first) {
            self.runs.join(place, other);
        }
    }

    /// The last waiting run that begins before `sector`.
    fn before(&self, sector: u64) -> Option<(u64, Place)> {
        self.order.range(..sector).next_back().map(|(first, place)| (*first, *place))
    }

    /// The waiting run that has `sector`.
    fn with(&self, sector: u64) -> Option<(u64, Place)> {
        self.before(sector + 1).filter(|(_, place)| self.runs.get(*place).end > sector)
    }

    /// Where the waiting run begins that has `sector`.
    pub(super) fn run_with(&self, sector: u64) -> Option<u64> {
        self.with(sector).map(|(first, _)| first)
    }

    fn put(&mut self, first: u64, place: Place) {
        let run = self.runs.get(place);
        self.sectors += run.end - first;
        self.sectors_at_risk += if run.at_risk { run.end - first } else { 0 };
        if self.emptied_by_age {
            self.by_age.insert(run.born, first);
        }
        self.order.insert(first, place);
    }

    fn take(&mut self, first: u64) -> Option<Place> {
        let place = self.order.remove(&first)?;
        let run = self.runs.get(place);
        if self.emptied_by_age {
            self.by_age.remove(&run.born);
        }
        self.sectors -= run.end - first;
        self.sectors_at_risk -= if run.at_risk { run.end - first } else { 0 };
        Some(place)
    }

    /// Where the run begins that `sweep` comes to next, of those born at `born_by` at the latest of which no older version
    /// is still leaving.
    fn next(&self, sweep: &Sweep, born_by: u64) -> Option<u64> {
        let fits = |(first, place): &(u64, Place)| {
            let run = self.runs.get(*place);
            run.born <= born_by && !self.leaving.overlaps(*first, run.end)
        };
        let Some(cursor) = sweep.cursor() else {
            let oldest = self.by_age.range(..=born_by).map(|(_, first)| *first);
            return oldest
                .filter_map(|first| Some((first, *self.order.get(&first)?)))
                .find(fits)
                .map(|one| one.0);
        };
        let pair = |(first, place): (&u64, &Place)| (*first, *place);
        let mut ahead = self.order.range(cursor..).map(pair);
        let mut behind = self.order.range(..cursor).map(pair);
        ahead.find(fits).or_else(|| behind.find(fits)).map(|(first, _)| first)
    }

    /// Moves the run that `sweep` comes to next, of those born at `born_by` at the latest, to those that leave as `job`.
    pub(super) fn leave_next(
        &mut self,
        sweep: &Sweep,
        born_by: u64,
        job: JobId,
        urgency: Urgency,
    ) -> Option<Sectors> {
        let first = self.next(sweep, born_by)?;
        self.leave_from(first, job, urgency)
    }

    /// Moves the run at `first` to those that leave as `job`, unless an older version of it is still leaving.
    pub(super) fn leave(&mut self, first: u64, job: JobId, urgency: Urgency) -> Option<Sectors> {
        let place = *self.order.get(&first)?;
        let is_held = self.leaving.overlaps(first, self.runs.get(place).end);
        if is_held { None } else { self.leave_from(first, job, urgency) }
    }

    fn leave_from(&mut self, first: u64, job: JobId, urgency: Urgency) -> Option<Sectors> {
        let place = self.take(first)?;
        let run = self.runs.get(place);
        let sectors = Sectors { first, count: run.end - first };
        self.sectors += sectors.count;
        self.sectors_at_risk += if run.at_risk { sectors.count } else { 0 };
        self.leaving.push(job, Gone { place, sectors }, urgency == Urgency::Background);
        Some(sectors)
    }

    /// `job` is on the medium: appends who waited for it.
    pub(super) fn left(&mut self, job: JobId, waited: &mut Vec<Ticket>) {
        let Some(Gone { place, sectors }) = self.leaving.take(job) else { return };
        let run = self.runs.get_mut(place);
        self.sectors -= sectors.count;
        self.sectors_at_risk -= if run.at_risk { sectors.count } else { 0 };
        waited.append(&mut run.waiting);
        self.runs.close(place);
    }

    /// All runs: those that wait in the order of their addresses, and those that leave.
    fn each(&self) -> impl Iterator<Item = (Sectors, Place)> {
        self.waiting().chain(self.leaving.each())
    }

    /// Those that wait, in the order of their addresses.
    fn waiting(&self) -> impl Iterator<Item = (Sectors, Place)> {
        let sectors = |first, place| Sectors { first, count: self.runs.get(place).end - first };
        self.order.iter().map(move |(first, place)| (sectors(*first, *place), *place))
    }

    /// Lets `ticket` wait for every run that `covers`; returns for how many.
    pub(super) fn wait_for(&mut self, ticket: Ticket, covers: impl Fn(Sectors, &Run) -> bool) -> u32 {
        let covered = self.each().filter(|(sectors, place)| covers(*sectors, self.runs.get(*place)));
        let covered: Vec<Place> = covered.map(|(_, place)| place).collect();
        for place in &covered {
            self.runs.get_mut(*place).waiting.push(ticket);
        }
        covered.len() as u32
    }

    /// Nothing is at risk any more, as it has all been saved elsewhere; returns who waited for that.
    pub(super) fn secure(&mut self) -> Vec<Ticket> {
        self.sectors_at_risk = 0;
        let mut waited = Vec::new();
        let all: Vec<Place> = self.each().map(|(_, place)| place).collect();
        for place in all {
            let run = self.runs.get_mut(place);
            if std::mem::take(&mut run.at_risk) {
                waited.append(&mut run.waiting);
            }
        }
        waited
    }

    /// Whether all of `sectors` can be read from one run.
    pub(super) fn holds(&self, sectors: Sectors) -> bool {
        let waiting = self.with(sectors.first);
        waiting.is_some_and(|(_, place)| sectors.end() <= self.runs.get(place).end)
            || self.leaving.holds(sectors)
    }

    pub(super) fn clear(&mut self) {
        let Self { births, emptied_by_age, .. } = *self;
        *self = Self { births, emptied_by_age, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::front::parameters::DestageOrder;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use std::collections::BTreeSet;

    /// The cache against a set of sectors: what is in it, at risk or not, and that every ticket comes back once, after
    /// every older version of its sectors.
    #[test]
    fn runs_are_the_sectors_that_were_written_and_every_ticket_comes_back_in_order() {
        for seed in 0..50 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut sweep =
                Sweep::new(if seed % 2 == 0 { DestageOrder::Elevator } else { DestageOrder::Fifo });
            let mut cache = Cache::new(&sweep);
            let mut written: Vec<Option<Sectors>> = Vec::new();
            let mut job = 0;
            for _ in 0..600 {
                let runs = || cache.waiting().map(|(sectors, _)| sectors);
                let waiting: BTreeSet<u64> = runs().flat_map(|run| run.first..run.end()).collect();
                let whole: u64 = runs().map(|run| run.count).sum();
                assert!(runs().is_sorted_by_key(|run| run.first), "seed {seed}: out of order");
                assert_eq!(waiting.len() as u64, whole, "seed {seed}: runs overlap");
                match chance.next_u64() % 3 {
                    0 => {
                        let sectors =
                            Sectors { first: chance.next_u64() % 200, count: 1 + chance.next_u64() % 20 };
                        let first = cache.insert(
                            sectors,
                            30,
                            chance.next_u64() % 2 == 0,
                            Some(written.len() as Ticket),
                        );
                        assert!(first <= sectors.first && cache.holds(sectors), "seed {seed}");
                        assert_eq!(cache.run_with(sectors.end() - 1), Some(first), "seed {seed}");
                        written.push(Some(sectors));
                    }
                    1 => {
                        let left = cache.leave_next(&sweep, u64::MAX, JobId(job), Urgency::Background);
                        if let Some(left) = left {
                            sweep.passed(left.end());
                            job += 1;
                        }
                    }
                    _ => come_back(&mut cache, &mut written, &mut chance, seed),
                }
            }
            while cache.runs() > 0 {
                while cache.leave_next(&sweep, u64::MAX, JobId(job), Urgency::Background).is_some() {
                    job += 1;
                }
                come_back(&mut cache, &mut written, &mut chance, seed);
            }
            assert!(written.iter().all(Option::is_none), "seed {seed}: a ticket is lost");
            assert_eq!((cache.sectors(), cache.sectors_at_risk()), (0, 0), "seed {seed}");
        }
    }

    /// Something that leaves is done: its tickets are due, and no older write of their sectors may be outstanding.
    fn come_back(
        cache: &mut Cache,
        written: &mut [Option<Sectors>],
        chance: &mut Xoshiro256PlusPlus,
        seed: u64,
    ) {
        if cache.leaving_runs() == 0 {
            return;
        }
        let index = chance.next_u64() % cache.leaving_runs() as u64;
        let job = cache.leaving.jobs().nth(index as usize).unwrap();
        let mut waited = Vec::new();
        cache.left(job, &mut waited);
        for ticket in waited {
            let sectors = written[ticket as usize].take().unwrap();
            let older = written[..ticket as usize].iter().flatten();
            assert!(older.copied().all(|older| !older.overlaps(sectors)), "seed {seed}: {ticket} overtook");
        }
    }
}
