//! Written data that is not on the medium yet: runs of sectors, and the waiters for each.
//!
//! Waiting runs never overlap: a write over one is merged with it, and the waiters of the older version wait
//! for the newer one. A run being destaged keeps its version. Data written over it meanwhile waits, and is
//! passed to the mechanics only when the older version is done, so the medium never ends up with the older
//! version.

use std::collections::BTreeMap;

use super::destage::Sweep;
use super::waiters::WaiterId;
use crate::command::Sectors;
use crate::timing::mechanics::{JobId, Urgency};

/// Properties of a run, except its start.
#[derive(Debug, Clone)]
pub(super) struct Run {
    end: u64,
    /// Number of the write that wrote its oldest part.
    written: u64,
    /// True if a cut would lose it although it was answered.
    pub(super) at_risk: bool,
    waiting: Vec<WaiterId>,
}

/// A run handed to the mechanics.
#[derive(Debug, Clone)]
struct Destaging {
    job: JobId,
    first: u64,
    run: Run,
    /// True if the mechanics treat it as background.
    is_background: bool,
}

/// All runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Cache {
    /// Waiting runs by first sector.
    waiting: BTreeMap<u64, Run>,
    /// First sector of each run by write number; used only when destaging by age.
    by_age: BTreeMap<u64, u64>,
    emptied_by_age: bool,
    /// Runs handed to the mechanics, in any order.
    destaging: Vec<Destaging>,
    /// Number of sectors waiting or being destaged.
    pub(super) sectors: u64,
    /// Number of sectors waiting or being destaged that a cut would lose.
    pub(super) sectors_at_risk: u64,
    /// Number of writes so far.
    pub(super) writes: u64,
}

impl Cache {
    /// Creates an empty cache with the destage order of `sweep`.
    pub(super) fn new(sweep: &Sweep) -> Self {
        Self { emptied_by_age: sweep.position.is_none(), ..Self::default() }
    }

    /// Returns the number of runs waiting or being destaged.
    pub(super) fn runs(&self) -> usize {
        self.waiting.len() + self.destaging.len()
    }

    pub(super) fn waiting_runs(&self) -> usize {
        self.waiting.len()
    }

    pub(super) const fn destaging_runs(&self) -> usize {
        self.destaging.len()
    }

    /// Returns the background destage jobs, and marks them as foreground.
    pub(super) fn hurry_background(&mut self) -> impl Iterator<Item = JobId> {
        let background = |one: &mut Destaging| std::mem::take(&mut one.is_background).then_some(one.job);
        self.destaging.iter_mut().filter_map(background)
    }

    /// Adds `sectors`, merged with overlapping runs, and with adjacent runs up to a total of `coalesce`
    /// sectors. Returns the first sector of the run.
    pub(super) fn insert(
        &mut self,
        sectors: Sectors,
        coalesce: u64,
        at_risk: bool,
        waiter: Option<WaiterId>,
    ) -> u64 {
        self.writes += 1;
        let mut run = Run { end: sectors.end(), written: self.writes, at_risk, waiting: Vec::new() };
        let mut first = sectors.first;
        // First the runs that overlap, from the last backwards, then one that may be adjacent.
        let mut before = self.before(sectors.end());
        while let Some((start, _)) = before.filter(|(_, end)| *end > sectors.first) {
            self.join(&mut run, start);
            first = first.min(start);
            before = self.before(start);
        }
        let touches = |(start, end): &(u64, u64)| *end == first && run.end - start <= coalesce;
        if let Some((start, _)) = before.filter(touches) {
            self.join(&mut run, start);
            first = start;
        }
        if coalesce > 0
            && let Some(behind) = self.waiting.get(&run.end)
            && behind.end - first <= coalesce
        {
            let start = run.end;
            self.join(&mut run, start);
        }
        run.waiting.extend(waiter);
        self.put(first, run);
        first
    }

    /// Merges the waiting run at `first` into this one: its waiters come first, as it is older.
    fn join(&mut self, run: &mut Run, first: u64) {
        let Some(mut other) = self.remove(first) else { return };
        run.end = run.end.max(other.end);
        run.written = run.written.min(other.written);
        run.at_risk |= other.at_risk;
        other.waiting.append(&mut run.waiting);
        run.waiting = other.waiting;
    }

    /// Returns the last waiting run that starts before `sector`: first sector and end.
    fn before(&self, sector: u64) -> Option<(u64, u64)> {
        self.waiting.range(..sector).next_back().map(|(first, run)| (*first, run.end))
    }

    /// Returns the waiting run that contains `sector`.
    fn with(&self, sector: u64) -> Option<(u64, u64)> {
        self.before(sector + 1).filter(|(_, end)| *end > sector)
    }

    /// Returns the first sector of the waiting run that contains `sector`.
    pub(super) fn run_with(&self, sector: u64) -> Option<u64> {
        self.with(sector).map(|(first, _)| first)
    }

    fn put(&mut self, first: u64, run: Run) {
        self.count(first, &run, u64::wrapping_add);
        if self.emptied_by_age {
            self.by_age.insert(run.written, first);
        }
        self.waiting.insert(first, run);
    }

    fn remove(&mut self, first: u64) -> Option<Run> {
        let run = self.waiting.remove(&first)?;
        if self.emptied_by_age {
            self.by_age.remove(&run.written);
        }
        self.count(first, &run, u64::wrapping_sub);
        Some(run)
    }

    /// Adds or subtracts the sectors of a run.
    fn count(&mut self, first: u64, run: &Run, change: fn(u64, u64) -> u64) {
        let count = run.end - first;
        self.sectors = change(self.sectors, count);
        self.sectors_at_risk = change(self.sectors_at_risk, if run.at_risk { count } else { 0 });
    }

    /// Returns true if a run being destaged overlaps `first..end`.
    fn destages(&self, first: u64, end: u64) -> bool {
        self.destaging.iter().any(|one| one.first < end && first < one.run.end)
    }

    /// Returns the first sector of the run that `sweep` selects next, among those written at `written_by` or
    /// before and without an older version being destaged.
    fn next(&self, sweep: &Sweep, written_by: u64) -> Option<u64> {
        let fits =
            |(first, run): &(&u64, &Run)| run.written <= written_by && !self.destages(**first, run.end);
        let next = match sweep.position {
            Some(cursor) => {
                let mut behind = self.waiting.range(..cursor);
                self.waiting.range(cursor..).find(fits).or_else(|| behind.find(fits))
            }
            None => {
                let oldest = self.by_age.range(..=written_by).map(|(_, first)| first);
                oldest.filter_map(|first| self.waiting.get_key_value(first)).find(fits)
            }
        };
        next.map(|(first, _)| *first)
    }

    /// Starts to destage the run that `sweep` selects next, among those written at `written_by` or before, as
    /// `job`.
    pub(super) fn destage_next(
        &mut self,
        sweep: &Sweep,
        written_by: u64,
        job: JobId,
        urgency: Urgency,
    ) -> Option<Sectors> {
        let first = self.next(sweep, written_by)?;
        self.begin_destaging(first, job, urgency)
    }

    /// Starts to destage the run at `first` as `job`, unless an older version of it is being destaged.
    pub(super) fn destage(&mut self, first: u64, job: JobId, urgency: Urgency) -> Option<Sectors> {
        let is_held = self.destages(first, self.waiting.get(&first)?.end);
        if is_held { None } else { self.begin_destaging(first, job, urgency) }
    }

    fn begin_destaging(&mut self, first: u64, job: JobId, urgency: Urgency) -> Option<Sectors> {
        let run = self.remove(first)?;
        self.count(first, &run, u64::wrapping_add);
        let sectors = Sectors { first, count: run.end - first };
        let is_background = urgency == Urgency::Background;
        self.destaging.push(Destaging { job, first, run, is_background });
        Some(sectors)
    }

    /// Records that `job` is on the medium, and appends its waiters.
    pub(super) fn destaged(&mut self, job: JobId, waited: &mut Vec<WaiterId>) {
        let Some(place) = self.destaging.iter().position(|one| one.job == job) else { return };
        let Destaging { first, mut run, .. } = self.destaging.swap_remove(place);
        self.count(first, &run, u64::wrapping_sub);
        waited.append(&mut run.waiting);
    }

    /// Returns all runs: waiting ones in address order, then those being destaged.
    fn each(&mut self) -> impl Iterator<Item = (Sectors, &mut Run)> {
        let waiting = self.waiting.iter_mut().map(|(first, run)| (*first, run));
        let destaging = self.destaging.iter_mut().map(|one| (one.first, &mut one.run));
        waiting.chain(destaging).map(|(first, run)| (Sectors { first, count: run.end - first }, run))
    }

    /// Makes `waiter` wait for every run that satisfies `covers`. Returns their number.
    pub(super) fn wait_for(&mut self, waiter: WaiterId, covers: impl Fn(Sectors, &Run) -> bool) -> u32 {
        let mut count = 0;
        for (_, run) in self.each().filter(|(sectors, run)| covers(*sectors, run)) {
            run.waiting.push(waiter);
            count += 1;
        }
        count
    }

    /// Records that everything at risk has been saved elsewhere. Returns the waiters for that.
    pub(super) fn secure(&mut self) -> Vec<WaiterId> {
        self.sectors_at_risk = 0;
        let mut waited = Vec::new();
        for (_, run) in self.each().filter(|(_, run)| run.at_risk) {
            run.at_risk = false;
            waited.append(&mut run.waiting);
        }
        waited
    }

    /// Returns true if one run contains all of `sectors`.
    pub(super) fn holds(&self, sectors: Sectors) -> bool {
        let waiting = self.with(sectors.first);
        let has_all = |one: &Destaging| one.first <= sectors.first && sectors.end() <= one.run.end;
        waiting.is_some_and(|(_, end)| sectors.end() <= end) || self.destaging.iter().any(has_all)
    }

    pub(super) fn clear(&mut self) {
        let Self { writes, emptied_by_age, .. } = *self;
        *self = Self { writes, emptied_by_age, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::controller::parameters::DestageOrder;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use std::collections::BTreeSet;

    /// Compares the cache with a set of sectors: its contents, at risk or not; every waiter returns once,
    /// after every older version of its sectors.
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
                let runs = || {
                    cache.waiting.iter().map(|(first, run)| Sectors { first: *first, count: run.end - first })
                };
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
                            Some(written.len() as WaiterId),
                        );
                        assert!(first <= sectors.first && cache.holds(sectors), "seed {seed}");
                        assert_eq!(cache.run_with(sectors.end() - 1), Some(first), "seed {seed}");
                        written.push(Some(sectors));
                    }
                    1 => {
                        let begun = cache.destage_next(&sweep, u64::MAX, JobId(job), Urgency::Background);
                        if let Some(begun) = begun {
                            sweep.passed(begun.end());
                            job += 1;
                        }
                    }
                    _ => come_back(&mut cache, &mut written, &mut chance, seed),
                }
            }
            while cache.runs() > 0 {
                while cache.destage_next(&sweep, u64::MAX, JobId(job), Urgency::Background).is_some() {
                    job += 1;
                }
                come_back(&mut cache, &mut written, &mut chance, seed);
            }
            assert!(written.iter().all(Option::is_none), "seed {seed}: a waiter is lost");
            assert_eq!((cache.sectors, cache.sectors_at_risk), (0, 0), "seed {seed}");
        }
    }

    /// Records that a destaged run is done: its waiters are due, and no older write of their sectors may be
    /// outstanding.
    fn come_back(
        cache: &mut Cache,
        written: &mut [Option<Sectors>],
        chance: &mut Xoshiro256PlusPlus,
        seed: u64,
    ) {
        if cache.destaging_runs() == 0 {
            return;
        }
        let index = chance.next_u64() % cache.destaging_runs() as u64;
        let job = cache.destaging[index as usize].job;
        let mut waited = Vec::new();
        cache.destaged(job, &mut waited);
        for waiter in waited {
            let sectors = written[waiter as usize].take().unwrap();
            let older = written[..waiter as usize].iter().flatten();
            assert!(older.copied().all(|older| !older.overlaps(sectors)), "seed {seed}: {waiter} overtook");
        }
    }
}
