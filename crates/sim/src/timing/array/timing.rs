//! The array as a state machine: pieces travel to members, are executed, and answers travel back.

use plumb_block::{Bytes, Nanos, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::layout::Layout;
use super::network::Network;
use super::parameters::{Acknowledge, Parameters};
use super::pieces::{Pieces, Whole};
use super::step::Step;
use crate::command::{Command, CommandId, SECTOR, Sectors};
use crate::timing::agenda::Agenda;
use crate::timing::link::Link;
use crate::timing::{Event, Timing};

/// Number of bits in a piece's number for the slot of its command; the rest counts arrivals.
pub(super) const PLACE_BITS: u32 = 24;

/// Timing of an array of drives.
pub struct ArrayTiming {
    layout: Layout,
    /// Number of columns of a stripe.
    pub(super) columns: u32,
    copies: u32,
    needed: u8,
    /// True if the members have caches that a power cut empties.
    volatile: bool,
    wce: bool,

    /// Copy `c` of column `n` is member `n * copies + c`.
    members: Vec<Box<dyn Timing>>,
    /// Time of each member's next event, `u64::MAX` if none; cached.
    due: Vec<u64>,
    /// Next member with an event, and its time; cached.
    first: Option<(u64, usize)>,
    link: Link,
    network: Network,
    agenda: Agenda<Step>,
    pub(super) pieces: Pieces,
    arrivals: u64,
    answers: u64,
    reads: u64,
    pub(super) at_risk: u64,
    heard: Vec<Event>,
}

/// State of the members' caches, as relevant for a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberCaches {
    /// True if the members have caches that a power cut empties.
    pub volatile: bool,
    /// True if the members' caches are enabled.
    pub wce: bool,
}

impl ArrayTiming {
    /// Creates an array of `size`; `member` creates each member with a given size and seed.
    pub fn new(
        parameters: &Parameters,
        size: Bytes,
        caches: MemberCaches,
        seed: u64,
        mut member: impl FnMut(Bytes, u64) -> Box<dyn Timing>,
    ) -> Self {
        let layout = Layout::new(parameters.stripe.0.0, parameters.columns);
        let member_size = Bytes(layout.member_sectors(size.0 / SECTOR.0) * SECTOR.0);
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = parameters.columns * parameters.copies;
        let needed = match parameters.acknowledge {
            Acknowledge::All => parameters.copies,
            Acknowledge::Quorum => parameters.copies / 2 + 1,
        };
        Self {
            layout,
            columns: parameters.columns,
            copies: parameters.copies,
            needed: needed as u8,
            volatile: caches.volatile,
            wce: caches.wce,
            due: vec![u64::MAX; count as usize],
            first: None,
            members: (0..count).map(|_| member(member_size, chance.next_u64())).collect(),
            link: Link::new(parameters.command, parameters.link, true),
            network: Network::new(parameters, chance),
            agenda: Agenda::default(),
            pieces: Pieces::default(),
            arrivals: 0,
            answers: 0,
            reads: 0,
            at_risk: 0,
            heard: Vec::new(),
        }
    }

    /// Sends the pieces of the command in `place` to the members.
    pub(super) fn send(&mut self, at: u64, place: u32) {
        let Some(whole) = self.pieces.get(place) else { return };
        let command = whole.command;
        let read = command.op == Op::Read;
        self.reads += u64::from(read);
        let chosen = (self.reads % u64::from(self.copies)) as u32;
        for column in 0..self.columns {
            let piece = match command.op {
                Op::Flush => Some(Sectors::NONE),
                _ => self.layout.on_column(command.sectors, u64::from(column)),
            };
            let Some(Sectors { first, count }) = piece else { continue };
            if let Some(whole) = self.pieces.get(place) {
                whole.pieces_short += 1;
            }
            for copy in (0..self.copies).filter(|copy| !read || *copy == chosen) {
                if let Some(whole) = self.pieces.get(place) {
                    whole.outstanding += 1;
                }
                let there = at + self.network.trip();
                self.agenda
                    .put(there, Step::Arrive { place, member: column * self.copies + copy, first, count });
            }
        }
    }

    fn arrive(&mut self, at: u64, place: u32, member: u32, sectors: Sectors) {
        let Some(whole) = self.pieces.get(place) else { return };
        let written = match whole.command.op {
            Op::Read | Op::Flush => false,
            Op::Write { fua } | Op::WriteZeroes { fua, .. } => !fua,
            Op::Discard => true,
        };
        if written && self.volatile && self.wce {
            self.at_risk += u64::from(!whole.at_risk);
            whole.at_risk = true;
            whole.unpersisted += 1;
        }
        self.arrivals += 1;
        let id = CommandId(self.arrivals << PLACE_BITS | u64::from(place));
        let command = Command { id, op: whole.command.op, sectors };
        self.members[member as usize].submit(Nanos(at), command);
        self.ask(member as usize);
    }

    /// Updates the time of a member's next event.
    fn ask(&mut self, member: usize) {
        let due = self.members[member].next_event().map_or(u64::MAX, |due| due.0);
        self.due[member] = due;
        if due != u64::MAX && self.first.is_none_or(|first| (due, member) < first) {
            self.first = Some((due, member));
        } else if self.first.is_some_and(|(_, first)| first == member) {
            let all = self.due.iter().copied().zip(0..);
            self.first = all.filter(|(due, _)| *due != u64::MAX).min();
        }
    }

    /// Advances the member to `at` and processes its events.
    fn listen(&mut self, at: u64, member: usize, events: &mut Vec<Event>) {
        let mut heard = std::mem::take(&mut self.heard);
        self.members[member].advance(Nanos(at), &mut heard);
        self.ask(member);
        for event in heard.drain(..) {
            match event {
                Event::Completed { id, at } => {
                    if let Some(place) = self.place_of(id) {
                        let back = at.0 + self.network.trip();
                        self.agenda.put(back, Step::Return { place, column: member as u32 / self.copies });
                    }
                }
                Event::Persisted { id, at } => {
                    if let Some(place) = self.place_of(id)
                        && let Some(whole) = self.pieces.get(place)
                    {
                        whole.unpersisted = whole.unpersisted.saturating_sub(1);
                        self.settle(at.0, place, events);
                    }
                }
            }
        }
        self.heard = heard;
        // Copies that arrived while the cache was being disabled may never be reported as persisted.
        if !self.wce && self.at_risk > 0 && self.dirty() == Bytes(0) {
            self.persist_covered(at, u64::MAX, events);
        }
    }

    fn returned(&mut self, at: u64, place: u32, column: u32, events: &mut Vec<Event>) {
        let Some(whole) = self.pieces.get(place) else { return };
        let enough = whole.take_answer(column as usize);
        let (command, outstanding, answered) = (whole.command, whole.outstanding, whole.answered);
        if enough {
            let bytes = if command.op == Op::Read { command.sectors.bytes() } else { Bytes(0) };
            let told = self.link.carry(at, bytes, true);
            self.agenda.put(told, Step::Answer { place });
        }
        if outstanding == 0
            && let Some(answered) = answered
        {
            self.release_flushes(at, answered);
            self.settle(at, place, events);
        }
    }

    fn answer(&mut self, at: u64, place: u32, events: &mut Vec<Event>) {
        let Some(whole) = self.pieces.get(place) else { return };
        let (id, covers, flush) = (whole.command.id, whole.covers, whole.command.op == Op::Flush);
        whole.answered = Some(self.answers);
        self.answers += 1;
        if flush && self.at_risk > 0 {
            self.persist_covered(at, covers, events);
        }
        events.push(Event::Completed { id, at: Nanos(at) });
        self.settle(at, place, events);
    }

    fn step(&mut self, at: u64, step: Step, events: &mut Vec<Event>) {
        match step {
            Step::Arrive { place, member, first, count } => {
                self.arrive(at, place, member, Sectors { first, count });
            }
            Step::Return { place, column } => self.returned(at, place, column, events),
            Step::Answer { place } => self.answer(at, place, events),
        }
    }
}

impl Timing for ArrayTiming {
    fn submit(&mut self, now: Nanos, command: Command) {
        let mut at = self.link.admit(now.0);
        if matches!(command.op, Op::Write { .. }) {
            at = self.link.carry(at, command.sectors.bytes() * u64::from(self.copies), false);
        }
        let needed = match command.op {
            Op::Read => 1,
            Op::Flush => self.copies as u8,
            _ => self.needed,
        };
        let mut whole = Whole::new(command, needed, self.arrivals);
        if command.op == Op::Flush {
            whole.covers = self.answers;
            whole.stragglers = self.pieces.places_of(Whole::is_straggling).len() as u32;
        }
        let held = whole.is_held_flush();
        let place = self.pieces.add(whole);
        if !held {
            self.send(at, place);
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let member = self.first.map(|(at, _)| at);
        self.agenda.next().into_iter().chain(member).min().map(Nanos)
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        loop {
            let step = self.agenda.next().unwrap_or(u64::MAX);
            if let Some((at, member)) = self.first
                && at <= now.0
                && at <= step
            {
                self.listen(at, member, events);
            } else if step <= now.0
                && let Some((at, step)) = self.agenda.pop_due(u64::MAX)
            {
                self.step(at, step, events);
            } else {
                return;
            }
        }
    }

    fn set_wce(&mut self, now: Nanos, enabled: bool) {
        self.wce = enabled;
        for member in 0..self.members.len() {
            self.members[member].set_wce(now, enabled);
            self.ask(member);
        }
    }

    fn power_cut(&mut self, now: Nanos) {
        for member in &mut self.members {
            member.power_cut(now);
        }
        self.due.fill(u64::MAX);
        self.first = None;
        self.agenda.clear();
        self.link.clear();
        self.pieces.clear();
        self.at_risk = 0;
    }

    fn dirty(&self) -> Bytes {
        self.members.iter().map(|member| member.dirty()).sum()
    }
}
