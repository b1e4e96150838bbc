//! A flash drive as a state machine: admission, buffer, flush.

use std::collections::VecDeque;

use plumb_block::{Bytes, Nanos, Op};

use super::agenda::{Agenda, Due};
use super::dies::{Dies, PerByte};
use super::ftl::Ftl;
use super::parameters::{FillState, Parameters};
use super::units::Units;
use crate::command::{Command, CommandId, SECTOR};
use crate::timing::{Event, Timing};

/// What a discard or a write-zeroes takes of the buffer: an entry of the map's journal.
const JOURNAL_ENTRY: u64 = 512;
/// A page of the map that is followed.
const MAP_PAGE: u64 = 4096;

/// What a power cut does to a drive's write buffer, and whether it is used when power comes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBuffer {
    /// The drive believes that it survives: writes are answered from it whatever WCE says, and a flush has nothing to
    /// wait for.
    pub protected: bool,
    /// It does not, although the drive believes so: the capacitors are dead.
    pub dead: bool,
    /// The write cache is on.
    pub wce: bool,
}

/// The timing of a flash drive.
#[derive(Debug)]
pub struct FlashTiming {
    unit: u64,
    command: u64,
    latency: u64,
    link: PerByte,
    duplex: bool,
    queue: usize,
    buffer: u64,
    destage_after: u64,
    flush: u64,
    trim: u64,
    mapping: u64,
    write_buffer: WriteBuffer,

    dies: Dies,
    ftl: Ftl,
    units: Units,
    agenda: Agenda,
    /// Commands for which there is no place in the queue.
    waiting: VecDeque<Command>,
    /// Writes for which there is no room in the buffer.
    stalled: VecDeque<Command>,
    in_flight: usize,
    controller_free: u64,
    /// When the link is free, from and to the host; one of them if it is not duplex.
    link_free: [u64; 2],
    journal_free: u64,
    /// Whether anything came since the journal was written last.
    journal_dirty: bool,
    open_until: Option<u64>,
    write_end: u64,
    rewrite: u64,
}

impl FlashTiming {
    /// A drive of `size` as `parameters` describe it, with power on.
    pub fn new(parameters: &Parameters, size: Bytes, write_buffer: WriteBuffer, seed: u64) -> Self {
        let mut ftl = Ftl::new(size.0.div_ceil(MAP_PAGE), parameters.overprovisioning, seed);
        if parameters.state != FillState::Fresh {
            ftl.fill();
        }
        if parameters.state == FillState::Steady {
            ftl.churn(3);
        }
        Self {
            unit: parameters.unit(),
            command: parameters.command.0.0,
            latency: parameters.latency.0.0,
            link: PerByte::of(parameters.link),
            duplex: parameters.duplex,
            queue: parameters.queue as usize,
            buffer: parameters.buffer.0.0,
            destage_after: parameters.destage_after.0.0,
            flush: parameters.flush.0.0,
            trim: parameters.trim.0.0,
            mapping: parameters.mapping.0.0,
            write_buffer,
            dies: Dies::new(parameters, ftl.window_pages() * MAP_PAGE, seed),
            ftl,
            units: Units::default(),
            agenda: Agenda::default(),
            waiting: VecDeque::new(),
            stalled: VecDeque::new(),
            in_flight: 0,
            controller_free: 0,
            link_free: [0; 2],
            journal_free: 0,
            journal_dirty: false,
            open_until: None,
            write_end: 0,
            rewrite: 0,
        }
    }

    /// Whether a write is out of harm's way only when it is programmed.
    const fn at_risk(&self) -> bool {
        self.write_buffer.wce && !self.write_buffer.protected
    }

    #[inline]
    fn admit(&mut self, now: u64, command: Command) {
        self.in_flight += 1;
        self.controller_free = now.max(self.controller_free) + self.command;
        let at = self.controller_free;
        match command.op {
            Op::Read => self.read(at, command),
            Op::Write { .. } | Op::WriteZeroes { .. } => {
                if self.stalled.is_empty() && self.has_room(command) {
                    self.write(at, command);
                } else {
                    self.stalled.push_back(command);
                    self.close_unit(at);
                }
            }
            Op::Flush => self.flush(at, command.id),
            Op::Discard => self.discard(at, command),
        }
    }

    #[inline]
    fn read(&mut self, at: u64, command: Command) {
        let (first, bytes) = (command.sectors.first * SECTOR.0, command.sectors.bytes().0);
        let done = if self.ftl.is_mapped(first / MAP_PAGE) { self.dies.read(at, first, bytes) } else { at };
        self.agenda.put(done, Due::ReadDone(command.id, bytes as u32));
    }

    /// Carries `bytes` over the link, not before `at`; returns when they are across.
    #[inline]
    fn carry(&mut self, at: u64, bytes: u64, to_host: bool) -> u64 {
        let free = &mut self.link_free[usize::from(to_host && self.duplex)];
        *free = at.max(*free) + self.link.cost(bytes);
        *free
    }

    /// What a write takes of the buffer.
    const fn buffered(command: Command) -> u64 {
        match command.op {
            Op::Write { .. } => command.sectors.bytes().0,
            _ => JOURNAL_ENTRY,
        }
    }

    /// A write that is larger than the whole buffer has room when the buffer is empty.
    #[inline]
    const fn has_room(&self, command: Command) -> bool {
        self.units.bytes == 0 || self.units.bytes + Self::buffered(command) <= self.buffer
    }

    #[inline]
    fn write(&mut self, at: u64, command: Command) {
        let bytes = Self::buffered(command);
        let (zeroes, fua) = match command.op {
            Op::WriteZeroes { fua, .. } => (true, fua),
            op => (false, op == Op::Write { fua: true }),
        };
        let arrived = if zeroes { at + self.trim } else { self.carry(at, bytes, false) };
        self.remap(command, zeroes);
        let answered = arrived + self.latency;
        if self.write_buffer.protected {
            self.agenda.put_answer(answered, command.id, true);
            self.store(arrived, answered, bytes, self.write_buffer.dead.then_some(command.id));
        } else if self.at_risk() && !fua {
            self.agenda.put_answer(answered, command.id, true);
            self.store(arrived, answered, bytes, Some(command.id));
        } else {
            let floor = self.store(arrived, 0, bytes, None);
            let end = self.close_unit(arrived).max(floor).max(arrived) + self.latency;
            let due = if self.at_risk() { Due::AnswerPersisted(command.id) } else { Due::Answer(command.id) };
            self.agenda.put(end, due);
        }
    }

    /// Tells the map, and what it costs to keep it.
    #[inline]
    fn remap(&mut self, command: Command, zeroes: bool) {
        self.journal_dirty = true;
        let (first, bytes) = (command.sectors.first * SECTOR.0, command.sectors.bytes().0);
        let page = first / MAP_PAGE;
        let pages = ((first + bytes).div_ceil(MAP_PAGE) - page).max(1);
        if zeroes {
            self.ftl.trim(page, pages);
            return;
        }
        let moved = self.ftl.write(page, pages);
        if moved > 0 {
            self.dies.owe(moved * MAP_PAGE);
        }
        if self.mapping > MAP_PAGE && first != self.write_end {
            self.rewrite += self.mapping;
        }
        self.write_end = first + bytes;
    }

    /// Puts `bytes` into the open unit and those after it, with `id` where the last byte is; returns when those parts are
    /// programmed whose units are full.
    #[inline]
    fn store(&mut self, arrived: u64, answered: u64, bytes: u64, id: Option<CommandId>) -> u64 {
        self.units.bytes += bytes;
        let (mut left, mut floor) = (bytes, answered);
        loop {
            let open = &mut self.units.open;
            let part = left.min(self.unit - open.bytes);
            open.bytes += part;
            open.arrived = open.arrived.max(arrived);
            left -= part;
            if left == 0 {
                open.ids.extend(id);
                open.floor = open.floor.max(floor);
            }
            if open.bytes == self.unit {
                floor = floor.max(self.close_unit(arrived));
            } else if self.open_until.is_none() && part > 0 {
                self.open_until = Some(arrived + self.destage_after);
            }
            if left == 0 {
                return floor;
            }
        }
    }

    /// Sends the open unit to a die, if there is anything in it, and returns when all so far is programmed at the latest.
    fn close_unit(&mut self, at: u64) -> u64 {
        self.open_until = None;
        if self.units.open.bytes == 0 {
            return 0;
        }
        let open = &self.units.open;
        let (start, floor) = (at.max(open.arrived), open.floor);
        let end = self.dies.program(start, std::mem::take(&mut self.rewrite)).max(floor);
        let number = self.units.send();
        self.agenda.put(end, Due::Programmed(number));
        // A flush waits for the floor too.
        self.dies.last_end = self.dies.last_end.max(end);
        end
    }

    fn flush(&mut self, at: u64, id: CommandId) {
        let done = if self.write_buffer.protected {
            at + self.flush
        } else {
            self.close_unit(at);
            if std::mem::take(&mut self.journal_dirty) {
                self.journal_free = at.max(self.dies.last_end).max(self.journal_free) + self.flush;
            }
            at.max(self.journal_free)
        };
        self.agenda.put(done + self.latency, Due::Answer(id));
    }

    fn discard(&mut self, at: u64, command: Command) {
        self.journal_dirty = true;
        let (first, bytes) = (command.sectors.first * SECTOR.0, command.sectors.bytes().0);
        // Only whole pages are forgotten.
        let (page, end) = (first.div_ceil(MAP_PAGE), (first + bytes) / MAP_PAGE);
        self.ftl.trim(page, end.saturating_sub(page));
        let answered = at + self.trim + self.latency;
        self.agenda.put(answered, Due::Answer(command.id));
        if self.at_risk() || self.write_buffer.dead {
            self.store(at, answered, JOURNAL_ENTRY, Some(command.id));
        }
    }

    fn answer(&mut self, at: u64, id: CommandId, events: &mut Vec<Event>) {
        events.push(Event::Completed { id, at: Nanos(at) });
        self.in_flight -= 1;
        if let Some(command) = self.waiting.pop_front() {
            self.admit(at, command);
        }
    }

    fn programmed(&mut self, at: u64, number: u32, events: &mut Vec<Event>) {
        self.units.land(number, |id| events.push(Event::Persisted { id, at: Nanos(at) }));
        while let Some(command) = self.stalled.front().copied()
            && self.has_room(command)
        {
            self.stalled.pop_front();
            self.write(at, command);
        }
        if !self.stalled.is_empty() {
            self.close_unit(at);
        }
    }
}

impl Timing for FlashTiming {
    #[inline]
    fn submit(&mut self, now: Nanos, command: Command) {
        if self.in_flight < self.queue {
            self.admit(now.0, command);
        } else {
            self.waiting.push_back(command);
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        match (self.agenda.next(), self.open_until) {
            (Some(due), Some(until)) => Some(Nanos(due.min(until))),
            (due, until) => due.or(until).map(Nanos),
        }
    }

    #[inline]
    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        loop {
            let until = self.open_until.filter(|until| *until <= now.0);
            // What is due no later than the open unit's time comes first.
            match self.agenda.take(until.unwrap_or(now.0)) {
                Some((at, Due::ReadDone(id, bytes))) => {
                    let out = self.carry(at, u64::from(bytes), true);
                    self.agenda.put_answer(out + self.latency, id, false);
                }
                Some((at, Due::Answer(id))) => self.answer(at, id, events),
                Some((at, Due::AnswerPersisted(id))) => {
                    self.answer(at, id, events);
                    events.push(Event::Persisted { id, at: Nanos(at) });
                }
                Some((at, Due::Programmed(number))) => self.programmed(at, number, events),
                None => match until {
                    Some(until) => {
                        self.close_unit(until);
                    }
                    None => return,
                },
            }
        }
    }

    fn set_wce(&mut self, now: Nanos, enabled: bool) {
        self.write_buffer.wce = enabled;
        if !enabled && !self.write_buffer.protected {
            self.close_unit(now.0);
        }
    }

    fn power_cut(&mut self, _now: Nanos) {
        self.dies.power_cut();
        self.units.clear();
        self.agenda.clear();
        self.waiting.clear();
        self.stalled.clear();
        self.in_flight = 0;
        self.controller_free = 0;
        self.link_free = [0; 2];
        self.journal_free = 0;
        self.journal_dirty = false;
        self.open_until = None;
        self.write_end = 0;
        self.rewrite = 0;
    }

    fn dirty(&self) -> Bytes {
        let survives = self.write_buffer.protected && !self.write_buffer.dead;
        Bytes(if survives { 0 } else { self.units.bytes })
    }
}
