//! Many hosts in one process, in virtual time: real controller and agents, connections with delays, synthetic
//! tasks. Everything is determined by the seed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use plumb_block::Nanos;
use plumb_fleet::controller::{HostNow, Phase};
use plumb_fleet::message::FromAgent;
use plumb_fleet::{Action, Agent, Controller, Identity, LoadTask, Settings, Task, TaskResult};
use plumb_load::LoadOutcome;
use plumb_report::RunDocument;
use plumb_state::frame::encode;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Fault of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The agent is killed while its load runs: its end of the connection closes.
    Killed,
    /// No data passes in either direction, and neither end is notified.
    HalfOpen,
    /// The host sends data that is not a frame.
    Garbage,
    /// The host sends figures, but never its result.
    Endless,
    /// The host is never ready.
    NeverReady,
    /// The host answers nothing, but sends a byte of a message now and then.
    Drips,
    /// The agent has another version.
    OtherVersion,
    /// The host repeatedly reports that it is ready, reading its input or not.
    ReadyAgain,
    ReadyAndBegun,
    /// The host repeatedly identifies itself.
    HelloAgain,
    /// The host reports a start in the future.
    BegunLate,
    /// The host reports its start, or sends figures, before it was told to start.
    BegunEarly,
    FiguresEarly,
}

/// Event at a host.
enum Event {
    ToAgent(Vec<u8>),
    ToController(Vec<u8>),
    /// The host checks its clock.
    Tick,
    /// The task becomes ready, sends figures, and ends.
    Ready,
    Figures,
    Over,
}

/// A simulated host.
pub(crate) struct Host {
    agent: Option<Agent>,
    pub(crate) fault: Fault,
    /// Offset of the host's clock from the controller's at time zero, in nanoseconds. The clock also drifts.
    ahead: i128,
    ppm: i128,
    /// One-way delay, and the maximum additional delay of a message.
    delay: Nanos,
    jitter: Nanos,
    /// Time at which each direction is free, as messages do not overtake.
    free: [Nanos; 2],
    /// Start of its load, in true time.
    pub(crate) started: Option<Nanos>,
    /// End of the agent in true time, and the reason.
    pub(crate) ended: Option<(Nanos, Option<String>)>,
    is_running: bool,
    cut_at: Option<Nanos>,
}

impl Host {
    /// Returns the time of the host's clock at true time `at`.
    pub(crate) fn clock(&self, at: Nanos) -> Nanos {
        Nanos((i128::from(at.0) + i128::from(at.0) * self.ppm / 1_000_000 + self.ahead) as u64)
    }

    /// Returns the true time at which the host's clock shows `theirs`.
    fn true_time(&self, theirs: Nanos) -> Nanos {
        Nanos(((i128::from(theirs.0) - self.ahead) * 1_000_000 / (1_000_000 + self.ppm)).max(0) as u64)
    }

    pub(crate) fn ahead_at(&self, at: Nanos) -> i128 {
        i128::from(self.clock(at).0) - i128::from(at.0)
    }
}

/// Simulation of the controller and all hosts.
pub(crate) struct World {
    pub(crate) controller: Controller,
    pub(crate) hosts: Vec<Host>,
    pub(crate) now: Nanos,
    random: Xoshiro256PlusPlus,
    events: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    waiting: HashMap<u64, Event>,
    serial: u64,
    /// Outcomes, assigned to the hosts in turn; without any, nothing is measured.
    outcomes: Vec<LoadOutcome>,
    /// Length of the loads.
    pub(crate) length: Nanos,
    /// Reason of incomplete results; `None` for complete ones.
    pub(crate) because: Option<String>,
    /// Document of each host.
    document: String,
    /// Damage applied to the result of the third host.
    pub(crate) spoil: Option<fn(&mut TaskResult)>,
    /// Number of messages received by the controller.
    pub(crate) arrived: u64,
}

pub(crate) const HEARTBEAT: Nanos = Nanos::secs(2);
pub(crate) const PREPARE_WITHIN: Nanos = Nanos::secs(600);
pub(crate) const END_WITHIN: Nanos = Nanos::secs(60);
/// Time within which arrivals are processed together, as by poll(2).
const TOGETHER: Nanos = Nanos::micros(500);

fn identity(version: &str) -> Identity {
    Identity { version: version.to_owned(), binary: "b".repeat(64), boot_id: None }
}

impl World {
    /// Creates `count` hosts with these outcomes in turn.
    pub(crate) fn new(seed: u64, count: usize, outcomes: Vec<LoadOutcome>) -> Self {
        let settings = Settings {
            identity: identity("1"),
            any_binary: false,
            heartbeat: HEARTBEAT,
            connect_within: Nanos::secs(30),
            forks: 64,
            prepare_within: PREPARE_WITHIN,
            end_within: END_WITHIN,
            stop_within: Nanos::secs(30),
        };
        let names: Vec<String> = (0..count).map(|number| format!("host{number}")).collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut draw = |below: u64| random.next_u64() % below;
        let host = |_| Host {
            agent: None,
            fault: Fault::None,
            ahead: i128::from(draw(1_000_000_000_000)),
            ppm: i128::from(draw(1000)) - 500,
            delay: Nanos(draw(20_000_000)),
            jitter: Nanos(1 + draw(5_000_000)),
            free: [Nanos::ZERO; 2],
            started: None,
            ended: None,
            is_running: false,
            cut_at: None,
        };
        Self {
            controller: Controller::new(settings, &names),
            hosts: (0..count).map(host).collect(),
            now: Nanos::secs(1000),
            random,
            events: BinaryHeap::new(),
            waiting: HashMap::new(),
            serial: 0,
            outcomes,
            length: Nanos::secs(10),
            because: None,
            document: document(),
            spoil: None,
            arrived: 0,
        }
    }

    /// Runs a load on all hosts to its end.
    pub(crate) fn run(&mut self) {
        self.controller.begin(|_| Some(load()), Some(self.length));
        self.turn_until(Controller::is_done);
    }

    /// Returns the hosts as the controller sees them.
    pub(crate) fn seen(&self) -> Vec<HostNow<'_>> {
        self.controller.hosts().collect()
    }

    fn at(&mut self, when: Nanos, host: usize, event: Event) {
        self.serial += 1;
        self.waiting.insert(self.serial, event);
        self.events.push(Reverse((when, self.serial, host)));
    }

    pub(crate) fn turn_until(&mut self, is_over: fn(&Controller) -> bool) {
        let mut turns = 0;
        while !is_over(&self.controller) {
            turns += 1;
            assert!(turns < 1_000_000, "it does not end");
            self.controller.tick(self.now, self.now);
            for host in self.controller.to_launch(self.now) {
                self.launch(host);
            }
            for host in self.controller.to_kill() {
                self.hosts[host].cut_at.get_or_insert(self.now);
            }
            self.send_all();
            let deadline = self.controller.deadline(self.now);
            let next = self.events.peek().map_or(deadline, |Reverse((when, ..))| deadline.min(*when));
            self.now = self.now.max(next);
            let until = self.now + TOGETHER;
            while self.events.peek().is_some_and(|Reverse((when, ..))| *when <= until) {
                self.happen_next();
            }
        }
    }

    fn happen_next(&mut self) {
        let Some(Reverse((when, serial, host))) = self.events.pop() else { return };
        self.now = self.now.max(when);
        let event = self.waiting.remove(&serial).unwrap();
        self.happen(host, event);
    }

    fn launch(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let version = if host.fault == Fault::OtherVersion { "2" } else { "1" };
        host.agent = Some(Agent::new(identity(version), host.clock(self.now)));
        self.at(self.now + Nanos::secs(1), number, Event::Tick);
    }

    /// Returns the arrival of a message sent now. The way back takes a fifth of the way there.
    fn arrival(&mut self, number: usize, direction: usize) -> Nanos {
        let drawn = self.random.next_u64();
        let host = &mut self.hosts[number];
        let delay = if direction == 0 { host.delay } else { Nanos(host.delay.0 / 5) };
        let arrives = (self.now + delay + Nanos(drawn % host.jitter.0)).max(host.free[direction]);
        host.free[direction] = arrives;
        arrives
    }

    fn send_all(&mut self) {
        for number in 0..self.hosts.len() {
            if !self.controller.output(number).is_empty() {
                let bytes = std::mem::take(self.controller.output(number));
                let arrives = self.arrival(number, 0);
                self.at(arrives, number, Event::ToAgent(bytes));
            }
        }
    }

    fn send_agent(&mut self, number: usize) {
        let Some(agent) = &mut self.hosts[number].agent else { return };
        let bytes = std::mem::take(agent.output());
        if !bytes.is_empty() {
            let arrives = self.arrival(number, 1);
            self.at(arrives, number, Event::ToController(bytes));
        }
    }

    fn is_cut(&self, number: usize) -> bool {
        self.hosts[number].cut_at.is_some_and(|at| at <= self.now)
    }

    fn happen(&mut self, number: usize, event: Event) {
        let theirs = self.hosts[number].clock(self.now);
        let mut actions = Vec::new();
        match event {
            Event::ToAgent(bytes) if !self.is_cut(number) => {
                let agent = self.hosts[number].agent.as_mut();
                actions.extend(agent.map(|agent| agent.receive(&bytes, theirs)).unwrap_or_default());
            }
            Event::ToController(bytes) if !self.is_cut(number) => {
                self.arrived += 1;
                self.controller.receive(number, &bytes, self.now);
            }
            Event::Tick => {
                actions.extend(self.hosts[number].agent.as_mut().and_then(|agent| agent.tick(theirs)));
                let next = self.hosts[number].agent.as_ref().map(Agent::deadline);
                if let Some(next) = next.filter(|_| self.hosts[number].ended.is_none()) {
                    let next = self.hosts[number].true_time(next).max(self.now + Nanos::micros(1));
                    self.at(next, number, Event::Tick);
                }
            }
            Event::Ready => self.ready(number),
            Event::Figures if self.hosts[number].is_running => self.figures(number),
            Event::Over if self.hosts[number].is_running && self.hosts[number].fault != Fault::Endless => {
                self.hosts[number].is_running = false;
                let outcome = self.outcomes.get(number % self.outcomes.len().max(1)).cloned();
                let length = outcome.as_ref().map_or(self.length, |outcome| outcome.length);
                let (because, lasted) = (self.because.clone(), Some(length));
                let document = Some(self.document.clone());
                let mut result = TaskResult { outcome, because, lasted, document, ..TaskResult::default() };
                self.spoil.iter().filter(|_| number == 2).for_each(|spoil| spoil(&mut result));
                self.hosts[number].agent.as_mut().unwrap().result(&result);
            }
            _ => {}
        }
        actions.into_iter().for_each(|action| self.act(number, action));
        self.send_agent(number);
    }

    fn ready(&mut self, number: usize) {
        let outcome = self.outcomes.first().cloned().unwrap_or_else(LoadOutcome::empty);
        let host = &mut self.hosts[number];
        let agent = host.agent.as_mut().unwrap();
        match host.fault {
            Fault::BegunEarly => agent.begun(Nanos::ZERO),
            Fault::FiguresEarly => agent.figures(outcome),
            Fault::HelloAgain => {
                let mut bytes = Vec::new();
                encode(&FromAgent::Hello { identity: identity("1") }, &mut bytes);
                self.at(self.now, number, Event::ToController(bytes));
            }
            _ => agent.ready(),
        }
    }

    fn figures(&mut self, number: usize) {
        match self.hosts[number].fault {
            Fault::Killed => {
                self.hosts[number].is_running = false;
                self.hosts[number].agent = None;
                self.controller.closed(number, "the launcher was ended by signal 9");
            }
            Fault::HalfOpen => self.hosts[number].cut_at = Some(self.now),
            Fault::Garbage => {
                self.hosts[number].is_running = false;
                let arrives = self.arrival(number, 1);
                self.at(arrives, number, Event::ToController(vec![0xff; 3000]));
            }
            Fault::Endless => {
                let outcome = self.outcomes[number % self.outcomes.len()].clone();
                self.hosts[number].agent.as_mut().unwrap().figures(outcome);
                self.at(self.now + Nanos::secs(1), number, Event::Figures);
            }
            Fault::Drips => {
                let is_first = self.hosts[number].cut_at.replace(self.now).is_none();
                let bytes: &[u8] = if is_first { &[0, 0, 8, 0] } else { b" " };
                self.controller.receive(number, bytes, self.now);
                self.at(self.now + Nanos::secs(4), number, Event::Figures);
            }
            Fault::ReadyAgain => {
                let agent = self.hosts[number].agent.as_mut().unwrap();
                (0..1000).for_each(|_| agent.ready());
            }
            Fault::ReadyAndBegun => self.hosts[number].agent.as_mut().unwrap().ready(),
            _ => {}
        }
    }

    fn act(&mut self, number: usize, action: Action) {
        match action {
            Action::Run(_) if self.hosts[number].fault == Fault::NeverReady => {}
            Action::Run(_) => {
                let prepared = self.now + Nanos(self.random.next_u64() % 3_000_000_000);
                self.at(prepared, number, Event::Ready);
            }
            Action::Start(at) => {
                let start = self.hosts[number].true_time(at).max(self.now);
                self.hosts[number].started = Some(start);
                self.hosts[number].is_running = true;
                let is_late = self.hosts[number].fault == Fault::BegunLate;
                let agent = self.hosts[number].agent.as_mut().unwrap();
                agent.begun(if is_late { Nanos(u64::MAX) } else { Nanos::ZERO });
                self.at(start + Nanos::secs(1), number, Event::Figures);
                if self.hosts[number].fault != Fault::ReadyAndBegun {
                    self.at(start + self.length, number, Event::Over);
                }
            }
            Action::Stop => self.at(self.now, number, Event::Over),
            Action::End(because) => {
                self.hosts[number].is_running = false;
                self.hosts[number].ended = Some((self.now, because));
            }
        }
    }

    /// Stalls the controller for `length` while the hosts continue. It then checks its clock before reading.
    pub(crate) fn stall(&mut self, length: Nanos) {
        let (looked, until) = (self.now, self.now + length);
        let mut unread = Vec::new();
        while self.events.peek().is_some_and(|Reverse((when, ..))| *when <= until) {
            let Some(Reverse((when, serial, host))) = self.events.peek().copied() else { break };
            if matches!(self.waiting[&serial], Event::ToController(_)) {
                self.events.pop();
                unread.push((when, serial, host));
            } else {
                self.happen_next();
            }
        }
        self.now = until;
        self.controller.tick(self.now, looked);
        self.events.extend(unread.into_iter().map(Reverse));
    }

    /// Continues without the controller until every agent has ended.
    pub(crate) fn outlive_controller(&mut self) {
        while let Some(Reverse((_, serial, _))) = self.events.peek() {
            if matches!(self.waiting[serial], Event::ToController(_)) {
                self.events.pop();
            } else {
                self.happen_next();
            }
        }
    }
}

/// Returns the document of a load.
pub(crate) fn document() -> String {
    RunDocument::default().to_json().unwrap()
}

/// Returns a load.
pub(crate) fn load() -> Task {
    Task::Load(LoadTask {
        words: String::new(),
        overwrite: false,
        destroy: Vec::new(),
        remove_after: false,
        level: None,
    })
}

/// Returns the figures of `operations` operations with latencies drawn from the seed.
pub(crate) fn outcome(seed: u64, operations: u64) -> LoadOutcome {
    let mut outcome = LoadOutcome::empty();
    record(&mut outcome, seed, operations);
    outcome.length = Nanos::secs(10);
    outcome
}

/// Records operations with latencies drawn from the seed.
pub(crate) fn record(outcome: &mut LoadOutcome, seed: u64, operations: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..operations {
        let magnitude = 1 << (20 + random.next_u64() % 10);
        let latency = Nanos(1000 + random.next_u64() % magnitude);
        outcome.read.latency.record(latency);
        outcome.read.bytes += plumb_block::Bytes(8192);
        outcome.flush.latency.record(latency * 3);
    }
}

/// Returns the number of hosts in `phase`.
pub(crate) fn in_phase(world: &World, phase: Phase) -> usize {
    world.seen().iter().filter(|host| host.phase == phase).count()
}
