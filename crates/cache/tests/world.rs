//! The cache as a state machine, the simulated devices below it, and the oracle of its user, in one thread
//! and without a clock: commands complete in a random order, and steps cut the power at any time.

use std::collections::{BTreeMap, BTreeSet};

use plumb_block::{
    Completion, Errno, Lba, LbaRange, Nanos, Op, Outcome, Payload, Request, Tag, VolatileCache,
};
use plumb_cache::{Action, Cache, Member, Mode, Purpose, State, Status};
use plumb_crash::{Survival, below};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::buffers::Buffers;
use crate::history::{Ask, FaultKind, Step};
use crate::medium::Medium;
use crate::setup::{Faults, LeftOut, Setup};
use marks::{Marking, open};
use plumb_block::conformance::Content;
use plumb_block::conformance::oracle::Oracle;

mod faults;
pub(crate) mod marks;
mod moved;
mod replace;

/// Number of commands or events without an answer that count as no progress.
const PATIENCE: u32 = 20_000;
/// Number of commands or events that count as no progress while a cache is to stop on devices that fail.
const PATIENCE_BROKEN: u32 = 500;
/// The longest read of a verification, in bytes.
const READ_MAX: u64 = 65536;

/// A command of the cache that a device has not answered.
struct Flight {
    action: Action,
    /// Number of the command at the device; none for reads, and for commands that are answered but not
    /// executed.
    ticket: Option<u64>,
}

/// Cache, devices and oracle of a history.
pub(crate) struct World {
    setup: Setup,
    left_out: LeftOut,
    /// The cache; `None` only while it is opened again.
    cache: Option<Cache>,
    /// The legs, then the backing.
    pub(crate) members: Vec<Medium>,
    pub(crate) oracle: Oracle,
    buffers: Buffers,
    now: Nanos,
    flights: Vec<Flight>,
    tag: u64,
    /// Pending faults: member, kind of the failing command, and number of such commands before it.
    faults: Vec<(usize, FaultKind, u64)>,
    /// Absent legs that return unchanged at the next restart.
    away: Vec<usize>,
    /// Legs with a failed command: the others may have continued without them.
    failed_legs: BTreeSet<usize>,
    /// Legs that can be read and not written.
    pub(crate) read_only: BTreeSet<usize>,
    /// Legs of the log from which the cache moves to another.
    old_legs: Option<Vec<Medium>>,
    /// Leg that gets all faults until it is replaced, for [`Faults::OneLeg`].
    weak_leg: usize,
    /// True if a leg was replaced, and nothing has happened since.
    is_replaced: bool,
    /// True if the cache was opened so that a leg may be missing.
    pub(crate) is_degraded: bool,
    /// True if anything broke, so that requests may fail.
    is_broken: bool,
    /// True if so much broke that nothing is required of the cache any more.
    pub(crate) is_hopeless: bool,
    /// True if nothing is required of the cache from the next restart on.
    is_hopeless_later: bool,
    /// Purposes of executed actions, with their number.
    pub(crate) seen: BTreeMap<Purpose, u64>,
    /// Number of reads that were answered with an error.
    pub(crate) failed_reads: u64,
    /// Mark of the backing device, if it is marked.
    pub(crate) marking: Option<Marking>,
    trace: bool,
}

impl World {
    /// Returns a cache newly made, empty, and serving.
    pub(crate) fn new(setup: &Setup, left_out: LeftOut) -> Result<Self, String> {
        let oracle = Oracle::new(setup.block as usize, setup.discard_zeroes, Content::Generation(0));
        let mut world = Self::over(setup, left_out, setup.members()?, oracle, false)?;
        world.settle(&mut Xoshiro256PlusPlus::seed_from_u64(0))?;
        Ok(world)
    }

    /// Returns a world with a cache over these members, which begins recovery, and a new oracle.
    pub(crate) fn over(
        setup: &Setup,
        left_out: LeftOut,
        members: Vec<Medium>,
        oracle: Oracle,
        is_degraded: bool,
    ) -> Result<Self, String> {
        Self::with(setup, left_out, (members, None), oracle, is_degraded)
    }

    fn with(
        setup: &Setup,
        left_out: LeftOut,
        (members, marking): (Vec<Medium>, Option<Marking>),
        oracle: Oracle,
        is_degraded: bool,
    ) -> Result<Self, String> {
        let buffers = Buffers::of_this_thread();
        let cache = open(setup, left_out, &buffers, (&members, marking.as_ref()), is_degraded)?;
        if cache.info().discard_zeroes && !setup.discard_zeroes {
            return Err("the cache promises zeroes that the backing does not".to_owned());
        }
        let is_volatile = cache.info().volatile_cache != VolatileCache::None;
        let mut oracle = oracle;
        oracle.set_volatile(is_volatile);
        Ok(Self {
            setup: *setup,
            left_out,
            cache: Some(cache),
            members,
            oracle,
            buffers,
            now: Nanos::ZERO,
            flights: Vec::new(),
            tag: 0,
            faults: Vec::new(),
            away: Vec::new(),
            failed_legs: BTreeSet::new(),
            read_only: BTreeSet::new(),
            old_legs: None,
            weak_leg: (setup.segments % 2) as usize,
            is_replaced: false,
            is_degraded,
            is_broken: false,
            is_hopeless: false,
            is_hopeless_later: false,
            seen: BTreeMap::new(),
            failed_reads: 0,
            marking,
            trace: std::env::var_os("PLUMB_TRACE").is_some(),
        })
    }

    /// Returns the world after a power cut at this moment that leaves these members.
    pub(crate) fn reborn(&self, members: Vec<Medium>) -> Result<Self, String> {
        let mut oracle = self.oracle.clone();
        oracle.cut();
        let members = (members, self.marking.clone());
        let mut world = Self::with(&self.setup, self.left_out, members, oracle, self.is_degraded)?;
        world.read_only.clone_from(&self.read_only);
        Ok(world)
    }

    /// Records that something below is broken: requests may fail from now on, unless another leg has all
    /// data.
    pub(crate) const fn expect_failures(&mut self) {
        self.is_broken = true;
    }

    /// Returns the commands in flight, in the order of submission.
    pub(crate) fn in_flight(&self) -> Vec<(Purpose, Op)> {
        self.flights.iter().map(|flight| (flight.action.purpose, flight.action.request.op)).collect()
    }

    /// Executes one step. Fails if the user sees something wrong.
    pub(crate) fn step(&mut self, step: Step) -> Result<(), String> {
        if self.is_hopeless {
            return Ok(());
        }
        if self.trace {
            eprintln!("{step:?}");
        }
        let seeded = Xoshiro256PlusPlus::seed_from_u64;
        match step {
            Step::Write { lba, nlb, fua } => self.request(Op::Write { fua }, lba, nlb),
            Step::Zeroes { lba, nlb, fua } => {
                let op = Op::WriteZeroes { fua, no_hole: lba.is_multiple_of(2), fast_only: false };
                self.request(op, lba, nlb)
            }
            Step::Discard { lba, nlb } => self.request(Op::Discard, lba, nlb),
            Step::Read { lba, nlb } => self.request(Op::Read, lba, nlb),
            Step::Flush => self.request(Op::Flush, 0, 0),
            Step::Run { commands, roll } => self.run(commands, &mut seeded(roll)),
            Step::Settle { roll } => self.settle(&mut seeded(roll)),
            Step::Verify { roll } => self.verify(&mut seeded(roll)),
            Step::Pass { millis, roll } => self.pass(Nanos::millis(millis), &mut seeded(roll)),
            Step::Cut { roll } => {
                let mut chance = seeded(roll);
                self.oracle.cut();
                self.members.iter_mut().for_each(|medium| medium.cut(&mut chance, Survival::Mixed));
                self.marking.iter_mut().for_each(|marking| marking.crash(&mut chance));
                self.restart(&mut chance)
            }
            Step::Kill { roll } => {
                let mut chance = seeded(roll);
                self.oracle.kill();
                for (number, medium) in self.members.iter_mut().enumerate() {
                    let flights = self.flights.iter();
                    let here = flights.filter(|flight| member(&self.setup, flight.action.member) == number);
                    let tickets: Vec<u64> = here.filter_map(|flight| flight.ticket).collect();
                    medium.kill(&tickets, &mut chance);
                }
                self.marking.iter_mut().for_each(|marking| marking.crash(&mut chance));
                self.restart(&mut chance)
            }
            Step::Ask { what, roll } => self.ask(what, &mut seeded(roll)),
            Step::Break { fault } => {
                self.break_(fault);
                Ok(())
            }
        }
    }

    fn request(&mut self, op: Op, lba: u64, nlb: u64) -> Result<(), String> {
        let range = LbaRange::new(Lba(lba), nlb);
        let length = nlb * self.setup.block;
        let is_data = matches!(op, Op::Read | Op::Write { .. });
        let buffer = if is_data { self.buffers.take(length) } else { None };
        if is_data && buffer.is_none() {
            // Too many requests are in flight.
            return Ok(());
        }
        self.tag += 1;
        let pattern = self.oracle.submitted(self.tag, op, range);
        let payload = match (op, buffer, pattern) {
            (Op::Read, Some(buffer), _) => Payload::Into(buffer),
            (_, Some(_), Some(pattern)) if self.tag.is_multiple_of(4) => Payload::Pattern(pattern),
            (_, Some(mut buffer), Some(pattern)) => {
                pattern.fill(self.setup.block as usize, &mut buffer);
                Payload::Bytes(buffer.freeze())
            }
            _ => Payload::None,
        };
        let (now, tag) = (self.now, Tag(self.tag));
        self.cache().submit(Request { tag, op, range, payload, deadline: None }, now);
        self.pump()
    }

    /// Hands over the actions of the cache, and judges its answers.
    pub(crate) fn pump(&mut self) -> Result<(), String> {
        let mut actions = Vec::new();
        self.cache().take_actions(&mut actions);
        for action in actions {
            *self.seen.entry(action.purpose).or_default() += 1;
            let medium = &mut self.members[member(&self.setup, action.member)];
            let is_left_out = self.left_out == LeftOut::Purpose(action.purpose);
            let request = &action.request;
            let ticket = if is_left_out || medium.is_dead {
                None
            } else {
                medium.submit(request.op, request.range, &request.payload)
            };
            self.flights.push(Flight { action, ticket });
        }
        let mut answers = Vec::new();
        self.cache().take_answers(&mut answers);
        let may_fail = self.is_broken && self.setup.faults != Faults::OneLeg;
        for Completion { tag, outcome, payload, .. } in answers {
            let bytes = match &payload {
                Payload::Into(buffer) => Some(&buffer[..]),
                _ => None,
            };
            self.failed_reads += u64::from(bytes.is_some() && !outcome.is_done());
            self.oracle.ended(tag.0, outcome, bytes, may_fail)?;
        }
        match self.state() {
            State::Failed { because } | State::Latched { because } if !may_fail => {
                Err(format!("the cache failed: {because}"))
            }
            _ => Ok(()),
        }
    }

    /// Answers a command in flight.
    pub(crate) fn complete(&mut self, index: usize, chance: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        let Flight { action, ticket } = self.flights.remove(index);
        let number = member(&self.setup, action.member);
        let kind = match action.request.op {
            Op::Read => FaultKind::Read,
            Op::Flush => FaultKind::Flush,
            _ => FaultKind::Write,
        };
        let mut fails = self.members[number].is_dead;
        for fault in self.faults.iter_mut().filter(|(at, of, left)| *at == number && *of == kind && *left > 0)
        {
            fault.2 -= 1;
            fails |= fault.2 == 0;
        }
        let is_refused = kind == FaultKind::Write && self.read_only.contains(&number);
        // The user must not notice a failed write of a log that is then sealed.
        let is_noticed = !(kind == FaultKind::Write && self.setup.faults == Faults::LogWrites);
        let medium = &mut self.members[number];
        let mut payload = action.request.payload;
        if fails || is_refused {
            fails = true;
            self.is_broken |= is_noticed && !is_refused;
            self.failed_legs.insert(number);
            if let Some(ticket) = ticket {
                medium.fail(ticket, chance);
            }
        } else if let Some(ticket) = ticket {
            medium.complete(ticket, chance);
        } else if let Payload::Into(buffer) = &mut payload
            && self.left_out != LeftOut::Purpose(action.purpose)
        {
            fails |= !medium.read(action.request.range, buffer);
        }
        let outcome = if fails { Outcome::Failed(Errno::EIO) } else { Outcome::Done };
        if self.trace {
            let request = (action.request.op, action.request.range);
            eprintln!("  {:?} {:?} {request:?}: {outcome:?}", action.purpose, action.member);
        }
        let now = self.now;
        self.cache().completed(action.id, outcome, payload, now);
        self.pump()
    }

    /// Lets `commands` commands complete. If none is in flight, time advances to the next event.
    fn run(&mut self, commands: u64, chance: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        for _ in 0..commands {
            if !self.advance(Nanos(u64::MAX), chance)? {
                break;
            }
        }
        Ok(())
    }

    /// Completes one command, or advances time to the next event before `until`. Returns false if there is
    /// neither.
    fn advance(&mut self, until: Nanos, chance: &mut Xoshiro256PlusPlus) -> Result<bool, String> {
        let is_turn = self.marking.is_some() && (self.flights.is_empty() || below(chance, 4) == 0);
        if is_turn && self.advance_mark()? {
            return Ok(true);
        }
        if !self.flights.is_empty() {
            let index = below(chance, self.flights.len() as u64) as usize;
            self.complete(index, chance)?;
            return Ok(true);
        }
        let Some(next) = self.cache().next_event().filter(|next| *next <= until) else { return Ok(false) };
        let now = self.now.max(next);
        self.now = now;
        self.cache().advance(now);
        self.pump()?;
        Ok(true)
    }

    fn is_settled(&self) -> bool {
        !self.oracle.is_pending() && !matches!(self.state(), State::Recovering)
    }

    /// Lets everything be answered.
    pub(crate) fn settle(&mut self, chance: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        self.pump()?;
        for _ in 0..PATIENCE {
            if self.is_settled() {
                return Ok(());
            }
            if !self.advance(Nanos(u64::MAX), chance)? {
                return Err(format!("nothing is in flight, and {} is not answered", self.oracle.waiting()));
            }
        }
        Err(format!("so much has happened, and {} is not answered", self.oracle.waiting()))
    }

    /// Lets time pass. Commands in flight take no time.
    fn pass(&mut self, time: Nanos, chance: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        let until = self.now.saturating_add(time);
        for _ in 0..PATIENCE {
            if !self.advance(until, chance)? {
                self.now = until;
                self.cache().advance(until);
                return self.pump();
            }
        }
        Err("time does not pass".to_owned())
    }

    /// Reads everything that was ever written, and a little that was not.
    pub(crate) fn verify(&mut self, chance: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        self.settle(chance)?;
        let mut ranges = self.oracle.written(READ_MAX / self.setup.block);
        ranges.push(LbaRange::new(Lba(below(chance, self.setup.blocks())), 1));
        for range in ranges {
            self.request(Op::Read, range.lba.0, range.nlb)?;
            if chance.next_u64() >> 62 == 0 {
                self.settle(chance)?;
            }
        }
        self.settle(chance)
    }

    /// Opens the cache again over the present members.
    fn restart(&mut self, chance: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        self.cache = None;
        self.flights.clear();
        self.faults.clear();
        if self.is_hopeless_later {
            self.is_hopeless = true;
            return Ok(());
        }
        self.choose_log();
        for leg in std::mem::take(&mut self.away) {
            self.members[leg].is_dead = false;
        }
        // To start a mirror while a leg is lost, or may be lost, the user must state that the leg no longer
        // counts, unless it was just replaced.
        let is_one_gone = self.members.iter().any(|medium| medium.is_dead);
        let degraded = is_one_gone || (self.setup.faults == Faults::OneLeg && !self.is_replaced);
        self.is_degraded = degraded;
        let members = (&self.members[..], self.marking.as_ref());
        let cache = open(&self.setup, self.left_out, &self.buffers, members, degraded)?;
        self.oracle.set_volatile(cache.info().volatile_cache != VolatileCache::None);
        self.cache = Some(cache);
        if below(chance, 2) == 0 { self.pump() } else { Ok(()) }
    }

    fn ask(&mut self, what: Ask, chance: &mut Xoshiro256PlusPlus) -> Result<(), String> {
        // The cache accepts no commands before recovery has ended.
        self.pump()?;
        while self.state() == State::Recovering && self.advance(Nanos(u64::MAX), chance)? {}
        let now = self.now;
        match what {
            Ask::Drain => self.cache().drain(now),
            Ask::Stop => {
                self.cache().stop(now);
                return self.stopped(chance, false);
            }
            Ask::Detach => {
                self.cache().detach(now);
                return self.stopped(chance, true);
            }
            Ask::Grow { segments } => {
                let legs = self.members[..self.setup.legs()].iter();
                let legs = legs.map(|leg| Some(leg.info.clone())).collect();
                let size = self.setup.grown(segments);
                // The log may be as large already, or growing.
                self.cache().grow(size, legs, now).ok();
            }
            Ask::Move => {
                self.cache().retire_log(now).ok();
                self.pump()?;
                return self.move_log(u64::MAX, chance).map(drop);
            }
            Ask::Replace { leg, is_same } => return self.replace(leg, is_same, chance),
            // The user does not vouch for legs with a volatile cache.
            Ask::Mode(Mode::Protected) if self.setup.mode != Mode::Protected => {}
            Ask::Mode(mode) => {
                self.cache().set_mode(mode, now);
                let is_volatile = self.cache().info().volatile_cache != VolatileCache::None;
                self.oracle.set_volatile(is_volatile);
            }
        }
        self.pump()
    }

    /// Waits until the cache has stopped, judges the promises of a stop, and starts it again.
    fn stopped(&mut self, chance: &mut Xoshiro256PlusPlus, is_detached: bool) -> Result<(), String> {
        self.pump()?;
        // A fault may prevent a cache from ever becoming empty.
        let patience = if self.is_broken { PATIENCE_BROKEN } else { PATIENCE };
        for _ in 0..patience {
            match self.state() {
                State::Stopped { is_clean } => {
                    if is_detached && !is_clean && !self.is_broken {
                        return Err("detached, and not clean".to_owned());
                    }
                    self.oracle.stopped()?;
                    self.mark_stopped();
                    if is_detached && is_clean {
                        let mut backing = self.members[self.setup.legs()].clone();
                        backing.cut(chance, Survival::Mixed);
                        let mut bytes = vec![0; self.setup.block as usize];
                        for range in self.oracle.written(1) {
                            if backing.read(range, &mut bytes) {
                                self.oracle.detached(range, &bytes)?;
                            }
                        }
                    }
                    return self.restart(chance);
                }
                State::Failed { .. } | State::Latched { .. } => return Ok(()),
                _ if self.advance(Nanos(u64::MAX), chance)? => {}
                state => return Err(format!("the cache does not stop: {state:?}, {:?}", self.status())),
            }
        }
        self.is_hopeless = self.is_broken;
        if self.is_broken { Ok(()) } else { Err("the cache does not stop".to_owned()) }
    }

    fn cache(&mut self) -> &mut Cache {
        self.cache.as_mut().expect("a cache is open")
    }

    /// Returns the state of the cache.
    pub(crate) fn state(&self) -> State {
        self.cache.as_ref().expect("a cache is open").state()
    }

    /// Returns the status that the cache reports; `None` before it serves.
    pub(crate) fn status(&self) -> Option<Status> {
        self.cache.as_ref().expect("a cache is open").status()
    }
}

/// Returns the place of a member in the list of media.
fn member(setup: &Setup, member: Member) -> usize {
    match member {
        Member::Leg(leg) => leg,
        Member::Backing => setup.legs(),
    }
}
