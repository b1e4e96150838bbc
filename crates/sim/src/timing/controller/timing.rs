//! The front end as [`Timing`]: its components, and the entry and exit of commands.

use std::collections::VecDeque;

use plumb_block::{Bytes, Nanos, Op};

use super::cache::Cache;
use super::destage::{Room, Sweep};
use super::due::Due;
use super::parameters::{ControllerParameters, MediaCacheUse};
use super::policy::Protection;
use super::slots::{Slot, Slots};
use super::waiters::{WaiterId, Waiters};
use crate::command::{Command, SECTOR};
use crate::timing::agenda::Agenda;
use crate::timing::link::Link;
use crate::timing::mechanics::{JobId, Mechanics};
use crate::timing::{Event, Timing};

/// First number of destage jobs, above those of reads, which are slot numbers.
pub(super) const FIRST_DESTAGE: u64 = 1 << 32;

/// Link, queue and caches in front of mechanics.
#[derive(Debug)]
pub struct Controller<M> {
    pub(super) mechanics: M,
    pub(super) link: Link,
    pub(super) queue_depth: usize,
    pub(super) write_room: Option<Room>,
    pub(super) media_room: Option<(MediaCacheUse, Room)>,
    pub(super) wce: bool,
    pub(super) protection: Protection,

    pub(super) agenda: Agenda<Due>,
    pub(super) slots: Slots,
    /// Commands beyond the queue depth, still in the host.
    pub(super) outside: VecDeque<Command>,
    /// Writes that do not fit into the cache.
    pub(super) stalled: VecDeque<Slot>,
    pub(super) cache: Cache,
    pub(super) waiters: Waiters,
    pub(super) sweep: Sweep,
    pub(super) jobs: u64,

    /// True if the cache is being emptied although nothing waits for it.
    pub(super) draining: bool,
    /// True if a job is being destaged that the mechanics treat as background.
    pub(super) destages_in_background: bool,
    /// True if the end of the destage delay is scheduled.
    pub(super) timer_noted: bool,
    /// Number of flushes in progress.
    pub(super) flushes: usize,
    /// Number of the last write that the flushes in progress cover.
    pub(super) flush_covers: u64,
    /// True if the cache was disabled and is not empty yet.
    pub(super) closing: bool,
    /// First sectors of awaited writes that wait for an older version of themselves.
    pub(super) behind: Vec<u64>,
    pub(super) done: Vec<(JobId, Nanos)>,
    /// Waiters of a destaged run; empty between calls, kept to reuse its memory.
    pub(super) waited: Vec<WaiterId>,
}

impl<M: Mechanics> Controller<M> {
    /// Creates an idle drive with `parameters` in front of `mechanics`; `wce` enables its write cache.
    pub fn new(parameters: &ControllerParameters, mechanics: M, wce: bool, protection: Protection) -> Self {
        let write_room = parameters.write.as_ref().map(Room::of_write_cache);
        let coalesce = write_room.as_ref().map_or(0, |room| room.coalesce);
        let media = parameters.media.as_ref();
        let sweep = write_room.as_ref().map_or_else(Sweep::default, |room| Sweep::new(room.order));
        Self {
            link: Link::new(parameters.command_overhead, parameters.link_rate, false),
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
            waiters: Waiters::default(),
            jobs: FIRST_DESTAGE,
            draining: false,
            destages_in_background: false,
            timer_noted: false,
            flushes: 0,
            flush_covers: 0,
            closing: false,
            behind: Vec::new(),
            done: Vec::new(),
            waited: Vec::new(),
        }
    }

    /// Admits `command` to the controller.
    fn admit(&mut self, now: u64, command: Command) {
        let slot = self.slots.put(command);
        let read = self.link.admit(now);
        let at = if matches!(command.op, Op::Write { .. }) {
            self.link.carry(read, command.sectors.bytes(), false)
        } else {
            read
        };
        self.agenda.put(at, Due::Admitted(slot));
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

    pub(super) fn answer(&mut self, now: u64, slot: Slot, events: &mut Vec<Event>) {
        let Command { id, .. } = self.slots.remove(slot);
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
                self.destage_due(now);
            }
        }
    }
}

impl<M: Mechanics> Timing for Controller<M> {
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
            } else if let Some((at, due)) = self.agenda.pop_due(u64::MAX) {
                self.due(at, due, events);
            }
        }
    }

    fn set_wce(&mut self, now: Nanos, enabled: bool) {
        self.wce = enabled;
        self.closing = !enabled && self.cache.sectors_at_risk > 0;
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
        self.waiters.clear();
        self.behind.clear();
        self.draining = false;
        self.destages_in_background = false;
        self.timer_noted = false;
        self.flushes = 0;
        self.closing = false;
    }

    fn dirty(&self) -> Bytes {
        Bytes(self.cache.sectors_at_risk * SECTOR.0)
    }
}
