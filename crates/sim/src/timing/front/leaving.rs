//! The runs that the mechanics have been given. What is looked for among all of them stands side by side.

use super::runs::Place;
use crate::command::Sectors;
use crate::timing::mechanics::JobId;

/// A run that leaves, besides where it is.
#[derive(Debug, Clone, Copy)]
struct Guest {
    place: Place,
    /// The mechanics take it for background.
    background: bool,
}

/// What has left the order of those that wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone {
    pub(super) place: Place,
    pub(super) sectors: Sectors,
}

/// All of them, in no order.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaving {
    jobs: Vec<JobId>,
    spans: Vec<(u64, u64)>,
    guests: Vec<Guest>,
}

impl Leaving {
    pub(super) const fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn push(&mut self, job: JobId, gone: Gone, background: bool) {
        self.jobs.push(job);
        self.spans.push((gone.sectors.first, gone.sectors.end()));
        self.guests.push(Guest { place: gone.place, background });
    }

    /// `job` is done: what it was.
    pub(super) fn take(&mut self, job: JobId) -> Option<Gone> {
        let index = self.jobs.iter().position(|one| *one == job)?;
        self.jobs.swap_remove(index);
        let (first, end) = self.spans.swap_remove(index);
        let Guest { place, .. } = self.guests.swap_remove(index);
        Some(Gone { place, sectors: Sectors { first, count: end - first } })
    }

    /// Whether any of them has a sector in `first..end`.
    pub(super) fn overlaps(&self, first: u64, end: u64) -> bool {
        // Without a way out in the middle: there are few, and it goes faster so.
        self.spans.iter().fold(false, |any, (from, to)| any | ((*from < end) & (first < *to)))
    }

    /// Whether one of them has all of `sectors`.
    pub(super) fn holds(&self, sectors: Sectors) -> bool {
        self.spans
            .iter()
            .fold(false, |any, (from, to)| any | ((*from <= sectors.first) & (sectors.end() <= *to)))
    }

    /// Those that leave in the background, which from now on they do not any more.
    pub(super) fn unhurried(&mut self) -> impl Iterator<Item = JobId> {
        let all = self.jobs.iter().zip(&mut self.guests);
        all.filter_map(|(job, guest)| std::mem::take(&mut guest.background).then_some(*job))
    }

    /// Their jobs.
    #[cfg(test)]
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().copied()
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (Sectors, Place)> {
        let all = self.spans.iter().zip(&self.guests);
        all.map(|((first, end), guest)| (Sectors { first: *first, count: end - first }, guest.place))
    }
}
