//! The front side as [`Timing`]: what happens to a command, step by step.

use std::collections::VecDeque;

use plumb_block::{Bytes, Nanos, Op};

use super::agenda::{Agenda, Due};
use super::cache::{Cache, Ticket};
use super::destage::{Room, Sweep};
use super::link::Link;
use super::parameters::{FrontParameters, MediaCacheUse};
use super::slots::{Slot, Slots};
use super::tickets::{Party, Tickets};
use crate::command::{Command, SECTOR, Sectors};
use crate::timing::mechanics::{Job, JobId, JobKind, Mechanics, Urgency};
use crate::timing::{Event, Timing};

/// Jobs of the front side's own, above all those of reads, which are the numbers of slots.
const FIRST_DESTAGE: u64 = 1 << 32;

/// What keeps a write cache through a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protection {
    /// Nothing: it is volatile.
    #[default]
    None,
    /// A battery or capacitors, charged: flush and FUA are answered at once, and rightly.
    Healthy,
    /// A dead battery that the drive knows of: it writes through until that is mended.
    DeadNoticed,
    /// A dead battery that the drive does not know of: flush and FUA are answered at once, and nothing keeps it.
    DeadUnnoticed,
}

/// How a write is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// Answered at once; lost at a cut until it is destaged.
    AtRisk,
    /// Answered at once; outlives a cut.
    Kept,
    /// Answered when it is on the medium.
    Through,
}

/// Link, queue and caches in front of mechanics.
#[derive(Debug)]
pub struct Front<M> {
    mechanics: M,
    link: Link,
    queue_depth: usize,
    write_room: Option<Room>,
    media_room: Option<(MediaCacheUse, Room)>,
    wce: bool,
    protection: Protection,

    agenda: Agenda,
    slots: Slots,
    /// Beyond the queue depth: still in the host.
    outside: VecDeque<Command>,
    /// Writes for which the cache has no room.
    stalled: VecDeque<Slot>,
    cache: Cache,
    tickets: Tickets,
    sweep: Sweep,
    jobs: u64,

    /// The cache is being emptied although nobody waits for it.
    draining: bool,
    /// Something leaves that the mechanics take for background.
    unhurried: bool,
    /// It is noted when dirty data will have waited long enough.
    timer_noted: bool,
    /// Flushes under way, and the age of the youngest data that they cover.
    flushes: usize,
    flush_covers: u64,
    /// The cache has been turned off, and is not empty yet.
    closing: bool,
    /// First sectors of writes that somebody waits for and that wait behind an older version of themselves.
    behind: Vec<u64>,
    done: Vec<(JobId, Nanos)>,
}

impl<M: Mechanics> Front<M> {
    /// A drive of `parameters` in front of `mechanics`, idle, its write cache on or off.
    pub fn new(parameters: &FrontParameters, mechanics: M, wce: bool, protection: Protection) -> Self {
        let write_room = parameters.write.as_ref().map(Room::of_write_cache);
        let coalesce = write_room.as_ref().map_or(0, |room| room.coalesce);
        let media = parameters.media.as_ref();
        let sweep = write_room.as_ref().map_or_else(Sweep::default, |room| Sweep::new(room.order));
        Self {
            link: Link::new(parameters.command_overhead.0.0, parameters.link_rate),
            queue_depth: parameters.queue_depth as usize,
            media_room: media.map(|media| (media.used, Room::of_media_cache(media, coalesce))),
            cache: Cache::new(&sweep),
            sweep,
            write_room,
            wce,
            protection,
            mechanics,
            agenda: Agenda::default(),
            slots: Slots::default(),
            outside: VecDeque::new(),
            stalled: VecDeque::new(),
            tickets: Tickets::default(),
            jobs: FIRST_DESTAGE,
            draining: false,
            unhurried: false,
            timer_noted: false,
            flushes: 0,
            flush_covers: 0,
            closing: false,
            behind: Vec::new(),
            done: Vec::new(),
        }
    }

    /// The battery dies, is found dead, or is replaced. What a healthy one kept is at risk only for writes that come later.
    pub fn set_protection(&mut self, protection: Protection) {
        self.protection = protection;
    }

    /// The mechanics behind.
    pub const fn mechanics(&self) -> &M {
        &self.mechanics
    }

    fn cache_is_on(&self) -> bool {
        self.wce && self.write_room.is_some() && self.protection != Protection::DeadNoticed
    }

    /// The room for writes as things are.
    fn room(&self) -> Option<&Room> {
        let media = self.media_room.as_ref().map(|(_, room)| room);
        if self.cache_is_on() { self.write_room.as_ref() } else { media }
    }

    fn treatment(&self, fua: bool, count: u64) -> Treatment {
        let Some(room) = self.room() else { return Treatment::Through };
        let always = self.media_room.as_ref().is_some_and(|(used, _)| *used == MediaCacheUse::Always);
        match self.protection {
            _ if room.too_long(count) => Treatment::Through,
            _ if !self.cache_is_on() => Treatment::Kept,
            Protection::Healthy => Treatment::Kept,
            Protection::DeadUnnoticed => Treatment::AtRisk,
            _ if !fua => Treatment::AtRisk,
            _ if always => Treatment::Kept,
            _ => Treatment::Through,
        }
    }

    /// Lets the controller read `command`.
    fn admit(&mut self, now: u64, command: Command) {
        let slot = self.slots.put(command);
        let read = self.link.admit(now);
        let at = if matches!(command.op, Op::Write { .. }) {
            self.link.transfer(read, command.sectors.bytes())
        } else {
            read
        };
        self.agenda.note(at, Due::Admitted(slot));
    }

    fn admitted(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let Command { op, sectors, .. } = self.slots.get(slot);
        match op {
            Op::Read => self.read(now, slot, sectors),
            Op::Write { .. } | Op::WriteZeroes { .. } => self.write(now, slot, events),
            Op::Discard => self.discard(now, slot, events),
            Op::Flush => self.flush(now, slot, events),
        }
    }

    fn read(&mut self, now: u64, slot: Slot, sectors: Sectors) {
        if self.cache.runs() > 0 && self.cache.holds(sectors) {
            let at = self.link.transfer(now, sectors.bytes());
            return self.agenda.note(at, Due::Delivered(slot));
        }
        let id = JobId(u64::from(slot));
        let job = Job { id, kind: JobKind::Read, sectors, urgency: Urgency::Foreground };
        self.mechanics.submit(Nanos(now), job);
    }

    /// Takes a write into the cache, or lets it wait for room.
    fn write(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
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

    fn treatment_of(&self, slot: Slot) -> Treatment {
        let Command { op, sectors, .. } = self.slots.get(slot);
        let fua = matches!(op, Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. });
        self.treatment(fua, sectors.count)
    }

    fn fits(&self, sectors: Sectors) -> bool {
        self.room().is_some_and(|room| room.takes(sectors.count, self.cache.sectors(), self.cache.runs()))
    }

    fn write_through(&mut self, now: u64, slot: Slot, sectors: Sectors) {
        let ticket = self.tickets.issue(1, Party::Write(slot));
        let first = self.cache.insert(sectors, 0, false, Some(ticket));
        if !self.destage(now, first, Urgency::Foreground) {
            self.behind.push(sectors.first);
        }
    }

    /// Puts a write for which there is room into the cache, and answers it.
    fn take_in(&mut self, now: u64, slot: Slot, at_risk: bool, events: &mut Vec<Event>) {
        let Command { id, sectors, .. } = self.slots.get(slot);
        let ticket = at_risk.then(|| self.tickets.issue(1, Party::Persisted(id)));
        let coalesce = self.room().map_or(0, |room| room.coalesce);
        self.cache.insert(sectors, coalesce, at_risk, ticket);
        self.answer(now, slot, events);
        self.consider_draining(now);
    }

    /// Begins to empty the cache if it is full enough, and notes when it is to be emptied if not.
    fn consider_draining(&mut self, now: u64) {
        let Some(room) = self.room() else { return };
        if room.presses(self.cache.sectors()) || room.delay == 0 {
            self.draining = true;
        } else if !self.timer_noted && !self.draining {
            let at = now + room.delay;
            self.agenda.note(at, Due::Destage);
            self.timer_noted = true;
        }
        self.pump(now);
    }

    /// A discard changes no medium here; it is persisted when no answered write that it replaces can come after it.
    fn discard(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let Command { id, sectors, .. } = self.slots.get(slot);
        let at_risk = self.treatment(false, 0) == Treatment::AtRisk;
        self.answer(now, slot, events);
        if !at_risk {
            return;
        }
        let ticket = self.tickets.issue(0, Party::Persisted(id));
        match self.cache.wait_for(ticket, |at, run| run.at_risk && at.overlaps(sectors)) {
            0 => {
                self.tickets.withdraw(ticket);
                events.push(Event::Persisted { id, at: Nanos(now) });
            }
            runs => self.tickets.await_runs(ticket, runs),
        }
    }

    fn flush(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let unneeded = self.cache.sectors_at_risk() == 0 || self.protection == Protection::DeadUnnoticed;
        if unneeded || self.secure(now, events) {
            return self.answer(now, slot, events);
        }
        let ticket = self.tickets.issue(0, Party::Flush(slot));
        let runs = self.cache.wait_for(ticket, |_, run| run.at_risk);
        self.tickets.await_runs(ticket, runs);
        self.flushes += 1;
        self.flush_covers = self.cache.births();
        self.press(now);
    }

    /// Saves all that is at risk into the media cache, if that is used for it and can hold it.
    fn secure(&mut self, now: u64, events: &mut Vec<Event>) -> bool {
        let holds = |room: &Room| room.can_hold(self.cache.sectors(), self.cache.runs());
        let can = matches!(&self.media_room, Some((MediaCacheUse::Always, room)) if holds(room));
        if can {
            for ticket in self.cache.secure() {
                self.one_left(now, ticket, events);
            }
        }
        can
    }

    /// What is leaving is now waited for, and more must leave.
    fn press(&mut self, now: u64) {
        if std::mem::take(&mut self.unhurried) {
            for job in self.cache.unhurried() {
                self.mechanics.hurry(Nanos(now), job);
            }
        }
        self.pump(now);
    }

    /// Gives the mechanics as much of what must or should leave as they make use of.
    fn pump(&mut self, now: u64) {
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

    fn destage_up_to(&mut self, now: u64, born_by: u64, urgency: Urgency) {
        while self.cache.leaving().len() < self.mechanics.parallelism()
            && self.cache.waiting_runs() > 0
            && let Some(first) = self.cache.next(&self.sweep, born_by)
            && self.destage(now, first, urgency)
        {}
    }

    /// Gives the run at `first` to the mechanics; not if an older version of it is still leaving.
    fn destage(&mut self, now: u64, first: u64, urgency: Urgency) -> bool {
        let id = JobId(self.jobs);
        let Some(sectors) = self.cache.leave(first, id, urgency) else { return false };
        self.jobs += 1;
        self.sweep.passed(sectors.end());
        self.unhurried |= urgency == Urgency::Background;
        self.mechanics.submit(Nanos(now), Job { id, kind: JobKind::Write, sectors, urgency });
        true
    }

    /// The mechanics have done `job`.
    fn job_done(&mut self, now: u64, job: JobId, events: &mut Vec<Event>) {
        if job.0 < FIRST_DESTAGE {
            let slot = job.0 as Slot;
            let at = self.link.transfer(now, self.slots.get(slot).sectors.bytes());
            return self.agenda.note(at, Due::Delivered(slot));
        }
        for ticket in self.cache.left(job).unwrap_or_default() {
            self.one_left(now, ticket, events);
        }
        if self.flushes > 0 {
            self.secure(now, events);
        }
        self.send_those_behind(now);
        self.resume(now, events);
        self.draining &= self.cache.waiting_runs() > 0;
        self.closing &= self.cache.sectors_at_risk() > 0;
        self.pump(now);
    }

    fn one_left(&mut self, now: u64, ticket: Ticket, events: &mut Vec<Event>) {
        match self.tickets.one_left(ticket) {
            None => {}
            Some(Party::Persisted(id)) => events.push(Event::Persisted { id, at: Nanos(now) }),
            Some(Party::Write(slot)) => self.answer(now, slot, events),
            Some(Party::Flush(slot)) => {
                self.flushes -= 1;
                self.answer(now, slot, events);
            }
        }
    }

    /// Sends writes that waited for an older version of themselves.
    fn send_those_behind(&mut self, now: u64) {
        let mut behind = std::mem::take(&mut self.behind);
        behind.retain(|sector| match self.cache.run_with(*sector) {
            Some(first) => !self.destage(now, first, Urgency::Foreground),
            None => false,
        });
        self.behind = behind;
    }

    /// Takes in stalled writes, in their order, if there is room again.
    fn resume(&mut self, now: u64, events: &mut Vec<Event>) {
        let (sectors, runs) = (self.cache.sectors(), self.cache.runs());
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

    fn answer(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let Command { id, .. } = self.slots.take(slot);
        events.push(Event::Completed { id, at: Nanos(now) });
        if let Some(command) = self.outside.pop_front() {
            self.admit(now, command);
        }
    }

    fn due(&mut self, now: u64, due: Due, events: &mut Vec<Event>) {
        match due {
            Due::Admitted(slot) => self.admitted(now, slot, events),
            Due::Delivered(slot) => self.answer(now, slot, events),
            Due::Destage => {
                self.timer_noted = false;
                self.draining = self.cache.waiting_runs() > 0;
                self.pump(now);
            }
        }
    }
}

impl<M: Mechanics> Timing for Front<M> {
    fn submit(&mut self, now: Nanos, command: Command) {
        if self.slots.len() < self.queue_depth {
            self.admit(now.0, command);
        } else {
            self.outside.push_back(command);
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let agenda = self.agenda.next().map(Nanos);
        match (agenda, self.mechanics.next_event()) {
            (Some(agenda), Some(mechanics)) => Some(agenda.min(mechanics)),
            (one, other) => one.or(other),
        }
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        loop {
            let agenda = self.agenda.next().map_or(u64::MAX, |at| at);
            let mechanics = self.mechanics.next_event().map_or(u64::MAX, |at| at.0);
            if agenda.min(mechanics) > now.0 {
                return;
            }
            if mechanics <= agenda {
                let mut done = std::mem::take(&mut self.done);
                self.mechanics.advance(Nanos(mechanics), &mut done);
                for (job, at) in done.drain(..) {
                    self.job_done(at.0, job, events);
                }
                self.done = done;
            } else if let Some((at, due)) = self.agenda.take() {
                self.due(at, due, events);
            }
        }
    }

    fn set_wce(&mut self, now: Nanos, enabled: bool) {
        self.wce = enabled;
        self.closing = !enabled && self.cache.sectors_at_risk() > 0;
        if self.closing {
            self.press(now.0);
        }
    }

    fn power_cut(&mut self, now: Nanos) {
        self.mechanics.power_cut(now);
        self.link.clear();
        self.agenda.clear();
        self.slots.clear();
        self.outside.clear();
        self.stalled.clear();
        self.cache.clear();
        self.tickets.clear();
        self.behind.clear();
        self.draining = false;
        self.unhurried = false;
        self.timer_noted = false;
        self.flushes = 0;
        self.closing = false;
    }

    fn dirty(&self) -> Bytes {
        Bytes(self.cache.sectors_at_risk() * SECTOR.0)
    }
}
