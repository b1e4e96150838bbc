//! A flash drive as a state machine: admission, reads, answers.

use std::collections::VecDeque;

use plumb_block::{Bytes, Nanos, Op};

use super::dies::{Dies, PerByte};
use super::due::Due;
use super::ftl::{Ftl, PAGE};
use super::parameters::{FillState, Parameters};
use super::units::Units;
use crate::command::{Command, CommandId, SECTOR};
use crate::timing::agenda::Agenda;
use crate::timing::{Event, Timing};

/// Effect of a power cut on a drive's write buffer, and its use at power-on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBuffer {
    /// True if the drive believes that the buffer survives: it answers writes from it independently of WCE,
    /// and flushes have nothing to wait for.
    pub protected: bool,
    /// True if the buffer does not survive although the drive believes so: the capacitors are dead.
    pub dead: bool,
    /// True if the drive knows that the buffer does not survive: it answers writes once they are programmed,
    /// independently of WCE.
    pub through: bool,
    /// True if the write cache is enabled.
    pub wce: bool,
}

/// Timing of a flash drive.
#[derive(Debug)]
pub struct FlashTiming {
    pub(super) parameters: Parameters,
    /// Bytes programmed at once.
    pub(super) unit: u64,
    link: PerByte,
    pub(super) write_buffer: WriteBuffer,

    pub(super) dies: Dies,
    pub(super) ftl: Ftl,
    pub(super) units: Units,
    pub(super) agenda: Agenda<Due>,
    /// Commands that do not fit into the queue.
    pub(super) waiting: VecDeque<Command>,
    /// Writes that do not fit into the buffer.
    pub(super) stalled: VecDeque<Command>,
    pub(super) in_flight: usize,
    pub(super) controller_free: u64,
    /// Times at which the link is free, from and to the host; only the first is used if it is not duplex.
    pub(super) link_free: [u64; 2],
    pub(super) journal_free: u64,
    /// True if anything arrived since the journal was last written.
    pub(super) journal_dirty: bool,
    /// Time until which the oldest data in the buffer may wait for more.
    pub(super) open_until: Option<u64>,
    pub(super) write_end: u64,
    pub(super) rewrite: u64,
}

impl FlashTiming {
    /// Creates a powered-on drive of `size` with these `parameters`.
    pub fn new(parameters: &Parameters, size: Bytes, write_buffer: WriteBuffer, seed: u64) -> Self {
        let mut ftl = Ftl::new(size.0.div_ceil(PAGE), parameters.overprovisioning, seed);
        if parameters.state != FillState::Fresh {
            ftl.fill();
        }
        if parameters.state == FillState::Steady {
            ftl.churn(3);
        }
        Self {
            parameters: parameters.clone(),
            unit: parameters.unit(),
            link: PerByte::from_rate(parameters.link),
            write_buffer,
            dies: Dies::new(parameters, ftl.window_pages() * PAGE, seed),
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

    /// Returns true if a write is durable only once it is programmed.
    pub(super) const fn at_risk(&self) -> bool {
        self.write_buffer.wce && !self.write_buffer.protected && !self.write_buffer.through
    }

    #[inline]
    fn admit(&mut self, now: u64, command: Command) {
        self.in_flight += 1;
        self.controller_free = now.max(self.controller_free) + self.parameters.command.0.0;
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
        let done = if self.ftl.is_mapped(first / PAGE) { self.dies.read(at, first, bytes) } else { at };
        self.agenda.put(done, Due::ReadDone(command.id, bytes as u32));
    }

    /// Carries `bytes` over the link, starting at `at` at the earliest. Returns the end.
    #[inline]
    pub(super) fn carry(&mut self, at: u64, bytes: u64, to_host: bool) -> u64 {
        let free = &mut self.link_free[usize::from(to_host && self.parameters.duplex)];
        *free = at.max(*free) + self.link.cost(bytes);
        *free
    }

    fn answer(&mut self, at: u64, id: CommandId, events: &mut Vec<Event>) {
        events.push(Event::Completed { id, at: Nanos(at) });
        self.in_flight -= 1;
        if let Some(command) = self.waiting.pop_front() {
            self.admit(at, command);
        }
    }
}

impl Timing for FlashTiming {
    #[inline]
    fn submit(&mut self, now: Nanos, command: Command) {
        if self.in_flight < self.parameters.queue as usize {
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
            // Events due by then come first.
            match self.agenda.pop_due(until.unwrap_or(now.0)) {
                Some((at, Due::ReadDone(id, bytes))) => {
                    let out = self.carry(at, u64::from(bytes), true);
                    self.agenda.put(out + self.parameters.latency.0.0, Due::Answer(id));
                }
                Some((at, Due::Answer(id))) => self.answer(at, id, events),
                Some((at, Due::AnswerPersisted(id))) => {
                    self.answer(at, id, events);
                    events.push(Event::Persisted { id, at: Nanos(at) });
                }
                Some((at, Due::Programmed(number))) => self.programmed(at, number, events),
                None => match until {
                    Some(until) => self.close_waited(until),
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
