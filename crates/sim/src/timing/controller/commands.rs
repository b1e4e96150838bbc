//! Execution of an admitted command: against the cache, up to its answer.

use plumb_block::Nanos;

use super::destage::Room;
use super::due::Due;
use super::parameters::MediaCacheUse;
use super::policy::{Protection, Treatment};
use super::slots::Slot;
use super::timing::Controller;
use super::waiters::{Waiter, WaiterId};
use crate::command::{Command, Sectors};
use crate::timing::Event;
use crate::timing::mechanics::{Job, JobId, JobKind, Mechanics, Urgency};

impl<M: Mechanics> Controller<M> {
    pub(super) fn read(&mut self, now: u64, slot: Slot, sectors: Sectors) {
        if self.cache.runs() > 0 && self.cache.holds(sectors) {
            let at = self.link.carry(now, sectors.bytes(), true);
            return self.agenda.put(at, Due::Delivered(slot));
        }
        let id = JobId(u64::from(slot));
        let job = Job { id, kind: JobKind::Read, sectors, urgency: Urgency::Foreground };
        self.mechanics.submit(Nanos(now), job);
    }

    /// Puts a write into the cache, or makes it wait for room.
    pub(super) fn write(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let Command { sectors, .. } = self.slots.get(slot);
        let treatment = self.treatment_of(slot);
        if treatment == Treatment::Through {
            return self.write_through(now, slot, sectors);
        }
        if !self.fits(sectors) || !self.stalled.is_empty() {
            self.stalled.push_back(slot);
            return self.press(now);
        }
        self.take_in(now, slot, treatment == Treatment::AtRisk, events);
    }

    pub(super) fn write_through(&mut self, now: u64, slot: Slot, sectors: Sectors) {
        let waiter = self.waiters.add(1, Waiter::Write(slot));
        let first = self.cache.insert(sectors, 0, false, Some(waiter));
        if !self.destage(now, first, Urgency::Foreground) {
            self.behind.push(sectors.first);
        }
    }

    /// Puts a write that fits into the cache and answers it.
    pub(super) fn take_in(&mut self, now: u64, slot: Slot, at_risk: bool, events: &mut Vec<Event>) {
        let Command { id, sectors, .. } = self.slots.get(slot);
        let waiter = at_risk.then(|| self.waiters.add(1, Waiter::Persisted(id)));
        let coalesce = self.room().map_or(0, |room| room.coalesce);
        self.cache.insert(sectors, coalesce, at_risk, waiter);
        self.answer(now, slot, events);
        self.consider_draining(now);
    }

    /// Executes a discard, which does not change the medium here. It is persisted once no answered write that
    /// it replaces can land after it.
    pub(super) fn discard(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let Command { id, sectors, .. } = self.slots.get(slot);
        let at_risk = self.treatment(false, 0) == Treatment::AtRisk;
        self.answer(now, slot, events);
        if !at_risk {
            return;
        }
        let waiter = self.waiters.add(0, Waiter::Persisted(id));
        match self.cache.wait_for(waiter, |at, run| run.at_risk && at.overlaps(sectors)) {
            0 => {
                self.waiters.remove(waiter);
                events.push(Event::Persisted { id, at: Nanos(now) });
            }
            runs => self.waiters.await_runs(waiter, runs),
        }
    }

    pub(super) fn flush(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let unneeded = self.cache.sectors_at_risk == 0 || self.protection == Protection::DeadUnnoticed;
        if unneeded || self.secure(now, events) {
            return self.answer(now, slot, events);
        }
        let waiter = self.waiters.add(0, Waiter::Flush(slot));
        let runs = self.cache.wait_for(waiter, |_, run| run.at_risk);
        self.waiters.await_runs(waiter, runs);
        self.flushes += 1;
        self.flush_covers = self.cache.writes;
        self.press(now);
    }

    /// Saves everything at risk to the media cache, if that is in use and large enough. Returns true if it
    /// did.
    pub(super) fn secure(&mut self, now: u64, events: &mut Vec<Event>) -> bool {
        let holds = |room: &Room| room.can_hold(self.cache.sectors, self.cache.runs());
        let can = matches!(&self.media_room, Some((MediaCacheUse::Always, room)) if holds(room));
        if can {
            for waiter in self.cache.secure() {
                self.run_destaged(now, waiter, events);
            }
        }
        can
    }

    /// Admits stalled writes in order, if there is room again.
    pub(super) fn resume(&mut self, now: u64, events: &mut Vec<Event>) {
        let (sectors, runs) = (self.cache.sectors, self.cache.runs());
        if self.room().is_some_and(|room| !room.resumes(sectors, runs)) {
            return;
        }
        while let Some(slot) = self.stalled.front().copied() {
            let Command { sectors, .. } = self.slots.get(slot);
            let treatment = self.treatment_of(slot);
            if treatment != Treatment::Through && !self.fits(sectors) {
                return;
            }
            self.stalled.pop_front();
            match treatment {
                Treatment::Through => self.write_through(now, slot, sectors),
                _ => self.take_in(now, slot, treatment == Treatment::AtRisk, events),
            }
        }
    }

    pub(super) fn run_destaged(&mut self, now: u64, waiter: WaiterId, events: &mut Vec<Event>) {
        match self.waiters.run_destaged(waiter) {
            None => {}
            Some(Waiter::Persisted(id)) => events.push(Event::Persisted { id, at: Nanos(now) }),
            Some(Waiter::Write(slot)) => self.answer(now, slot, events),
            Some(Waiter::Flush(slot)) => {
                self.flushes -= 1;
                self.answer(now, slot, events);
            }
        }
    }
}
