//! Controller state machine, without I/O: takes bytes received from each host and the time, returns bytes to
//! send and a deadline.
//!
//! The states of a host are `Waiting → Connecting → Idle → Running → Idle → ... → Leaving → Gone`. Any
//! failure leads to `Gone`, with the reason; the other hosts continue. The memory for a host is bounded: one
//! frame, one result, one line of launcher output, unsent bytes. Each message is accepted only in its turn
//! and once. A host that keeps sending without making progress is given up like a silent one.

mod host;
mod reasons;
mod settings;
mod task;

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_state::frame::encode;

use self::host::{Host, State};
pub use self::host::{HostNow, Phase};
pub use self::settings::Settings;
use crate::message::{Task, ToAgent};

/// Controller of the agents on many hosts.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    hosts: Vec<Host>,
    stopping_since: Option<Nanos>,
    /// Time at which the hosts were told to start, by the controller's clock.
    started_at: Option<Nanos>,
    /// Hosts whose launchers must be terminated.
    to_kill: Vec<usize>,
}

impl Controller {
    /// Creates a controller of hosts that are not connected yet.
    pub fn new(settings: Settings, names: &[String]) -> Self {
        let hosts = names.iter().map(|name| Host::new(name)).collect();
        Self { settings, hosts, stopping_since: None, started_at: None, to_kill: Vec::new() }
    }

    /// Returns the state of the hosts, in the order given.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = HostNow<'_>> {
        self.hosts.iter().map(|host| host.now(self.started_at))
    }

    /// Moves the figures of all loads out of the controller, in the order of the hosts.
    pub fn take_measured(&mut self) -> Vec<Option<LoadOutcome>> {
        self.hosts.iter_mut().map(Host::take_measured).collect()
    }

    /// Returns the start time last sent to the hosts.
    pub fn started_at(&self) -> Option<Nanos> {
        self.started_at
    }

    /// Assigns tasks: `task` returns the task of a host by its number, or `None`. `expected` is the time from
    /// start to end, if known. Replaces earlier tasks and results.
    pub fn begin(&mut self, task: impl Fn(usize) -> Option<Task>, expected: Option<Nanos>) {
        self.started_at = None;
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.give(task(number), expected);
        }
    }

    /// Returns true if every host has completed its task or is gone.
    pub fn is_done(&self) -> bool {
        self.hosts.iter().all(Host::is_done)
    }

    /// Tells all hosts to end their tasks early.
    pub fn stop(&mut self, now: Nanos) {
        if self.stopping_since.is_some() {
            return;
        }
        self.stopping_since = Some(now);
        for number in 0..self.hosts.len() {
            match self.hosts[number].state {
                State::Running => self.hosts[number].stop(),
                State::Waiting | State::Connecting { .. } | State::Idle if !self.hosts[number].is_done() => {
                    self.lose(number, "interrupted before it had begun".to_owned());
                }
                _ => {}
            }
        }
    }

    /// Tells all hosts that no more tasks follow.
    pub fn leave(&mut self, now: Nanos) {
        for number in 0..self.hosts.len() {
            match self.hosts[number].state {
                State::Idle => {
                    self.hosts[number].say(&ToAgent::Bye);
                    self.hosts[number].state = State::Leaving { since: now };
                }
                State::Gone | State::Leaving { .. } => {}
                _ => self.lose(number, "it was no longer needed".to_owned()),
            }
        }
    }

    /// Returns true if every host is gone.
    pub fn has_left(&self) -> bool {
        self.hosts.iter().all(|host| matches!(host.state, State::Gone))
    }

    /// Returns the hosts whose launchers must be started now, and marks them as connecting.
    pub fn to_launch(&mut self, now: Nanos) -> Vec<usize> {
        let connecting =
            self.hosts.iter().filter(|host| matches!(host.state, State::Connecting { .. })).count();
        let waiting = |host: &Host| matches!(host.state, State::Waiting) && host.has_task();
        let chosen: Vec<usize> = (0..self.hosts.len())
            .filter(|number| waiting(&self.hosts[*number]))
            .take(self.settings.forks.max(1).saturating_sub(connecting))
            .collect();
        for number in &chosen {
            let hello = ToAgent::Hello {
                identity: self.settings.identity.clone(),
                heartbeat: self.settings.heartbeat,
            };
            let host = &mut self.hosts[*number];
            host.state = State::Connecting { since: now };
            host.heard = now;
            encode(&hello, &mut host.out);
        }
        chosen
    }

    /// Returns, once, the hosts whose launchers must be terminated.
    pub fn to_kill(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.to_kill)
    }

    /// Returns the bytes to be sent to a host. The caller removes sent bytes from the front.
    pub fn output(&mut self, number: usize) -> &mut Vec<u8> {
        &mut self.hosts[number].out
    }

    /// Processes bytes received from a host.
    pub fn receive(&mut self, number: usize, bytes: &[u8], now: Nanos) {
        if let Err(why) = self.hosts[number].receive(bytes, &self.settings, now) {
            self.lose(number, why);
        }
    }

    /// Stores stderr output of a launcher. Its end is reported if the launcher fails.
    pub fn said(&mut self, number: usize, bytes: &[u8]) {
        self.hosts[number].said(bytes);
    }

    /// Records the end of the connection to a host; `how` describes the exit of the launcher.
    pub fn closed(&mut self, number: usize, how: &str) {
        let host = &mut self.hosts[number];
        if matches!(host.state, State::Leaving { .. }) {
            host.state = State::Gone;
        } else {
            let why = host.why_closed(how);
            self.lose(number, why);
        }
    }

    /// Performs all due work: pings, gives up overdue hosts, assigns tasks, starts hosts that are ready.
    /// Checks each host once. All bytes that had arrived at `looked` must have been processed; limits are
    /// checked against that time, so a delay of the controller until `now` is not blamed on the hosts.
    pub fn tick(&mut self, now: Nanos, looked: Nanos) {
        for number in 0..self.hosts.len() {
            if let Some(why) = self.hosts[number].overdue(&self.settings, self.stopping_since, looked) {
                self.lose(number, why);
            } else {
                self.hosts[number].beat_if_due(&self.settings, now);
            }
        }
        self.advance(now);
    }

    /// Returns the time of the next [`tick`](Self::tick), unless bytes arrive earlier.
    pub fn deadline(&self, now: Nanos) -> Nanos {
        let deadlines =
            self.hosts.iter().filter_map(|host| host.deadline(&self.settings, self.stopping_since));
        deadlines.min().unwrap_or(now + self.settings.heartbeat).max(now)
    }

    /// Gives up a host.
    fn lose(&mut self, number: usize, why: String) {
        if !matches!(self.hosts[number].state, State::Gone) {
            self.hosts[number].lose(why);
            self.to_kill.push(number);
        }
    }

    /// Assigns tasks to idle hosts, and starts the load once all hosts are ready.
    fn advance(&mut self, now: Nanos) {
        let is_stopping = self.stopping_since.is_some();
        for host in self.hosts.iter_mut().filter(|_| !is_stopping) {
            host.run_if_idle(now);
        }
        let live = || self.hosts.iter().filter(|host| !host.is_done());
        let is_ready = live().all(Host::is_ready) && live().any(Host::waits);
        if !is_ready || is_stopping {
            return;
        }
        let at = now.saturating_add(self.lead(now));
        let first = *self.started_at.get_or_insert(at);
        for number in 0..self.hosts.len() {
            if !self.hosts[number].is_done() && !self.hosts[number].start(at, first) {
                self.lose(number, "its clock is set to a time before 1970".to_owned());
            }
        }
    }

    /// Returns the time between sending the start and the start itself: enough for the slowest link and for
    /// sending the message to all hosts.
    fn lead(&self, now: Nanos) -> Nanos {
        let errors = self.hosts.iter().filter_map(|host| Some(host.clock.at(now)?.error));
        let slowest = errors.max().unwrap_or_default().min(Nanos::secs(2));
        Nanos::millis(200) + Nanos::millis(2) * self.hosts.len() as u64 + slowest * 4
    }
}
