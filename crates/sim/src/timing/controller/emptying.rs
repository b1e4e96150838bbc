//! Emptying of the cache: when it starts, the jobs for the mechanics, and their completion.

use plumb_block::Nanos;

use super::due::Due;
use super::slots::Slot;
use super::timing::{Controller, FIRST_DESTAGE};
use crate::command::Sectors;
use crate::timing::Event;
use crate::timing::mechanics::{Job, JobId, JobKind, Mechanics, Urgency};

impl<M: Mechanics> Controller<M> {
    /// Starts to empty the cache if it is full enough; otherwise schedules that.
    pub(super) fn consider_draining(&mut self, now: u64) {
        let Some(room) = self.room() else { return };
        if room.presses(self.cache.sectors) || room.delay == 0 {
            self.draining = true;
        } else if !self.timer_noted && !self.draining {
            let at = now + room.delay;
            self.agenda.put(at, Due::Destage);
            self.timer_noted = true;
        }
        self.destage_due(now);
    }

    /// Raises the urgency of current destaging, because a command now waits for it, and destages more.
    pub(super) fn press(&mut self, now: u64) {
        if std::mem::take(&mut self.destages_in_background) {
            for job in self.cache.hurry_background() {
                self.mechanics.hurry(Nanos(now), job);
            }
        }
        self.destage_due(now);
    }

    /// Hands the mechanics as many due destage jobs as they can use.
    pub(super) fn destage_due(&mut self, now: u64) {
        let all = u64::MAX;
        if !self.stalled.is_empty() || self.closing {
            self.destage_up_to(now, all, Urgency::Foreground);
        } else if self.flushes > 0 {
            self.destage_up_to(now, self.flush_covers, Urgency::Foreground);
        }
        if self.draining {
            self.destage_up_to(now, all, Urgency::Background);
        }
    }

    pub(super) fn destage_up_to(&mut self, now: u64, written_by: u64, urgency: Urgency) {
        while self.cache.destaging_runs() < self.mechanics.parallelism() && self.cache.waiting_runs() > 0 {
            let id = JobId(self.jobs);
            let Some(sectors) = self.cache.destage_next(&self.sweep, written_by, id, urgency) else { break };
            self.send(now, id, sectors, urgency);
        }
    }

    /// Hands the run at `first` to the mechanics, unless an older version of it is being destaged.
    pub(super) fn destage(&mut self, now: u64, first: u64, urgency: Urgency) -> bool {
        let id = JobId(self.jobs);
        let Some(sectors) = self.cache.destage(first, id, urgency) else { return false };
        self.send(now, id, sectors, urgency);
        true
    }

    /// Sends a run to the mechanics as the next job.
    pub(super) fn send(&mut self, now: u64, id: JobId, sectors: Sectors, urgency: Urgency) {
        self.jobs += 1;
        self.sweep.passed(sectors.end());
        self.destages_in_background |= urgency == Urgency::Background;
        self.mechanics.submit(Nanos(now), Job { id, kind: JobKind::Write, sectors, urgency });
    }

    /// Processes the completion of `job`.
    pub(super) fn job_done(&mut self, now: u64, job: JobId, events: &mut Vec<Event>) {
        if job.0 < FIRST_DESTAGE {
            let slot = job.0 as Slot;
            let at = self.link.carry(now, self.slots.get(slot).sectors.bytes(), true);
            return self.agenda.put(at, Due::Delivered(slot));
        }
        let mut waited = std::mem::take(&mut self.waited);
        self.cache.destaged(job, &mut waited);
        for waiter in waited.drain(..) {
            self.run_destaged(now, waiter, events);
        }
        self.waited = waited;
        if self.flushes > 0 {
            self.secure(now, events);
        }
        self.send_those_behind(now);
        self.resume(now, events);
        self.draining &= self.cache.waiting_runs() > 0;
        self.closing &= self.cache.sectors_at_risk > 0;
        self.destage_due(now);
    }

    /// Sends writes that waited for an older version of themselves.
    pub(super) fn send_those_behind(&mut self, now: u64) {
        let mut behind = std::mem::take(&mut self.behind);
        behind.retain(|sector| match self.cache.run_with(*sector) {
            Some(first) => !self.destage(now, first, Urgency::Foreground),
            None => false,
        });
        self.behind = behind;
    }
}
