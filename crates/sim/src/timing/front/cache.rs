//! What has been written and is not on the medium yet: runs of sectors, and who waits for each.
//!
//! Runs that wait never overlap each other: a write over one joins it, and who waits for the older version waits for the
//! newer. A run that is being destaged keeps its version; what is written over it meanwhile waits behind it, and is not
//! given to the mechanics before it is done, so the medium never sees the older version last.

use std::collections::BTreeMap;

use crate::command::Sectors;
use crate::timing::mechanics::{JobId, Urgency};

use super::destage::Sweep;

/// A party that waits for a run: an index into the tickets.
pub(super) type Ticket = u32;

/// What is known of a run besides where it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    end: u64,
    /// When its oldest part came, counted in writes.
    pub(super) born: u64,
    /// A cut would lose it although it was answered.
    pub(super) at_risk: bool,
    pub(super) waiting: Vec<Ticket>,
}

/// A run that the mechanics have been given.
#[derive(Debug, Clone)]
pub(super) struct Leaving {
    pub(super) job: JobId,
    pub(super) sectors: Sectors,
    pub(super) run: Run,
    /// The mechanics take it for background.
    background: bool,
}

/// The runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Cache {
    dirty: BTreeMap<u64, Run>,
    /// Where the run begins that was born so; empty unless the cache is emptied by age.
    by_age: BTreeMap<u64, u64>,
    emptied_by_age: bool,
    leaving: Vec<Leaving>,
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
        self.dirty.len() + self.leaving.len()
    }

    /// Runs that wait.
    pub(super) fn waiting_runs(&self) -> usize {
        self.dirty.len()
    }

    /// Runs that leave.
    pub(super) fn leaving(&self) -> &[Leaving] {
        &self.leaving
    }

    /// What leaves in the background, which from now on it does not any more.
    pub(super) fn unhurried(&mut self) -> impl Iterator<Item = JobId> {
        self.leaving
            .iter_mut()
            .filter_map(|leaving| std::mem::take(&mut leaving.background).then_some(leaving.job))
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
        let mut run = Run { end: sectors.end(), born: self.births, at_risk, waiting: Vec::new() };
        let mut first = sectors.first;
        while let Some(start) = self.overlapping(sectors) {
            self.join(&mut first, &mut run, start);
        }
        let before = self.dirty.range(..first).next_back().map(|(start, before)| (*start, before.end));
        if let Some((start, _)) = before.filter(|(start, end)| *end == first && run.end - start <= coalesce) {
            self.join(&mut first, &mut run, start);
        }
        let behind = self.dirty.get(&run.end).map(|behind| behind.end);
        if behind.is_some_and(|end| end - first <= coalesce) {
            let start = run.end;
            self.join(&mut first, &mut run, start);
        }
        run.waiting.extend(ticket);
        self.put(first, run);
        first
    }

    /// A run that waits and has a sector of `sectors`. Runs do not overlap, so the last that begins before their end is
    /// one if any is.
    fn overlapping(&self, sectors: Sectors) -> Option<u64> {
        let (start, run) = self.dirty.range(..sectors.end()).next_back()?;
        (run.end > sectors.first).then_some(*start)
    }

    /// Makes the run at `start` part of `run`, which begins at `first`.
    fn join(&mut self, first: &mut u64, run: &mut Run, start: u64) {
        let Some(other) = self.remove(start) else { return };
        *first = (*first).min(start);
        run.end = run.end.max(other.end);
        run.born = run.born.min(other.born);
        run.at_risk |= other.at_risk;
        // The older tickets first: they are answered in this order.
        let newer = std::mem::replace(&mut run.waiting, other.waiting);
        run.waiting.extend(newer);
    }

    /// Where the waiting run begins that has `sector`.
    pub(super) fn run_with(&self, sector: u64) -> Option<u64> {
        let (start, run) = self.dirty.range(..=sector).next_back()?;
        (run.end > sector).then_some(*start)
    }

    fn put(&mut self, first: u64, run: Run) {
        let sectors = run.end - first;
        self.sectors += sectors;
        self.sectors_at_risk += if run.at_risk { sectors } else { 0 };
        if self.emptied_by_age {
            self.by_age.insert(run.born, first);
        }
        self.dirty.insert(first, run);
    }

    fn remove(&mut self, first: u64) -> Option<Run> {
        let run = self.dirty.remove(&first)?;
        if self.emptied_by_age {
            self.by_age.remove(&run.born);
        }
        self.sectors -= run.end - first;
        self.sectors_at_risk -= if run.at_risk { run.end - first } else { 0 };
        Some(run)
    }

    /// Whether an older version of something in `first..end` is still leaving.
    fn blocked(&self, first: u64, end: u64) -> bool {
        self.leaving.iter().any(|leaving| leaving.sectors.overlaps(Sectors { first, count: end - first }))
    }

    /// The run that `sweep` comes to next, of those born at `born_by` at the latest.
    pub(super) fn next(&self, sweep: &Sweep, born_by: u64) -> Option<u64> {
        let fits = |first: u64, run: &Run| run.born <= born_by && !self.blocked(first, run.end);
        match sweep.cursor() {
            Some(cursor) => {
                let round = self.dirty.range(cursor..).chain(self.dirty.range(..cursor));
                round.into_iter().find(|(first, run)| fits(**first, run)).map(|(first, _)| *first)
            }
            None => {
                let found =
                    self.by_age.range(..=born_by).find(|(_, first)| fits(**first, &self.dirty[*first]));
                found.map(|(_, first)| *first)
            }
        }
    }

    /// Moves the run at `first` to those that leave as `job`, unless an older version of it is still leaving.
    pub(super) fn leave(&mut self, first: u64, job: JobId, urgency: Urgency) -> Option<Sectors> {
        let end = self.dirty.get(&first)?.end;
        if self.blocked(first, end) {
            return None;
        }
        let run = self.remove(first)?;
        let sectors = Sectors { first, count: end - first };
        self.sectors += sectors.count;
        self.sectors_at_risk += if run.at_risk { sectors.count } else { 0 };
        self.leaving.push(Leaving { job, sectors, run, background: urgency == Urgency::Background });
        Some(sectors)
    }

    /// `job` is on the medium: who waited for it.
    pub(super) fn left(&mut self, job: JobId) -> Option<Vec<Ticket>> {
        let index = self.leaving.iter().position(|leaving| leaving.job == job)?;
        let Leaving { sectors, run, .. } = self.leaving.swap_remove(index);
        self.sectors -= sectors.count;
        self.sectors_at_risk -= if run.at_risk { sectors.count } else { 0 };
        Some(run.waiting)
    }

    /// Lets `ticket` wait for every run that `covers`; returns for how many.
    pub(super) fn wait_for(&mut self, ticket: Ticket, covers: impl Fn(Sectors, &Run) -> bool) -> u32 {
        let mut runs = 0;
        for (first, run) in &mut self.dirty {
            if covers(Sectors { first: *first, count: run.end - first }, run) {
                run.waiting.push(ticket);
                runs += 1;
            }
        }
        for Leaving { sectors, run, .. } in &mut self.leaving {
            if covers(*sectors, run) {
                run.waiting.push(ticket);
                runs += 1;
            }
        }
        runs
    }

    /// Nothing is at risk any more, as it has all been saved elsewhere; returns who waited for that.
    pub(super) fn secure(&mut self) -> Vec<Ticket> {
        self.sectors_at_risk = 0;
        let runs = self.dirty.values_mut().chain(self.leaving.iter_mut().map(|leaving| &mut leaving.run));
        let at_risk = runs.filter_map(|run| std::mem::take(&mut run.at_risk).then_some(&mut run.waiting));
        at_risk.flat_map(std::mem::take).collect()
    }

    /// Whether all of `sectors` can be read from one run.
    pub(super) fn holds(&self, sectors: Sectors) -> bool {
        let inside = |first: u64, end: u64| first <= sectors.first && sectors.end() <= end;
        let dirty = self.dirty.range(..=sectors.first).next_back();
        dirty.is_some_and(|(first, run)| inside(*first, run.end))
            || self.leaving.iter().any(|leaving| inside(leaving.sectors.first, leaving.sectors.end()))
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
                let waiting: BTreeSet<u64> =
                    cache.dirty.iter().flat_map(|(first, run)| *first..run.end).collect();
                let whole: u64 = cache.dirty.iter().map(|(first, run)| run.end - first).sum();
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
                        assert!(
                            first <= sectors.first && cache.dirty[&first].end >= sectors.end(),
                            "seed {seed}"
                        );
                        written.push(Some(sectors));
                    }
                    1 => {
                        if let Some(first) = cache.next(&sweep, u64::MAX) {
                            let left = cache.leave(first, JobId(job), Urgency::Background);
                            sweep.passed(left.unwrap().end());
                            job += 1;
                        }
                    }
                    _ => come_back(&mut cache, &mut written, &mut chance, seed),
                }
            }
            while cache.runs() > 0 {
                while let Some(first) = cache.next(&sweep, u64::MAX) {
                    cache.leave(first, JobId(job), Urgency::Background).unwrap();
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
        if cache.leaving.is_empty() {
            return;
        }
        let index = chance.next_u64() as usize % cache.leaving.len();
        let job = cache.leaving[index].job;
        for ticket in cache.left(job).unwrap() {
            let sectors = written[ticket as usize].take().unwrap();
            let older = written[..ticket as usize].iter().flatten();
            assert!(older.copied().all(|older| !older.overlaps(sectors)), "seed {seed}: {ticket} overtook");
        }
    }
}
