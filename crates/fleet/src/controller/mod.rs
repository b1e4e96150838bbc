//! The controller without I/O: what arrived from each host and the time in, bytes for each host out, and when
//! to look again.
//!
//! A host goes `Waiting → Connecting → Idle → Running → Idle → ... → Leaving → Gone`; whatever goes wrong
//! with it leads to `Gone` with the reason, and the others go on. All that a host can make the controller
//! keep is bounded: one frame, one result, one line of what its launcher said, what it does not read. It may
//! say each thing when it is its turn, and once; what it goes on with and comes no further is given up like
//! what it does not do.

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

/// The controller of the agents of many hosts.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    hosts: Vec<Host>,
    stopping_since: Option<Nanos>,
    /// When the hosts were told to start, by this clock.
    started_at: Option<Nanos>,
    /// Returns the hosts whose launchers are to be ended.
    to_kill: Vec<usize>,
}

impl Controller {
    /// Creates a controller of these hosts, none of which is connected.
    pub fn new(settings: Settings, names: &[String]) -> Self {
        let hosts = names.iter().map(|name| Host::new(name)).collect();
        Self { settings, hosts, stopping_since: None, started_at: None, to_kill: Vec::new() }
    }

    /// Returns the hosts, in the order in which they were named.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = HostNow<'_>> {
        self.hosts.iter().map(|host| host.now(self.started_at))
    }

    /// Takes out what the loads of the hosts have measured, in the order of the hosts; the controller no
    /// longer keeps it.
    pub fn take_measured(&mut self) -> Vec<Option<LoadOutcome>> {
        self.hosts.iter_mut().map(Host::take_measured).collect()
    }

    /// Returns when the hosts were last told to start.
    pub fn started_at(&self) -> Option<Nanos> {
        self.started_at
    }

    /// Gives `task` to each host that it returns one for, `expected` to last so long from its start as far as
    /// that is known. What was there of an earlier task goes.
    pub fn begin(&mut self, task: impl Fn(usize) -> Option<Task>, expected: Option<Nanos>) {
        self.started_at = None;
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.give(task(number), expected);
        }
    }

    /// Returns true if each host that has a task is done with it, or gone.
    pub fn is_done(&self) -> bool {
        self.hosts.iter().all(Host::is_done)
    }

    /// Tells all hosts to end what they do early.
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

    /// Says good-bye to all hosts.
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

    /// Returns the hosts whose launchers are to be started now; each is connecting from now on.
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

    /// Returns the hosts whose launchers are to be ended now.
    pub fn to_kill(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.to_kill)
    }

    /// Returns the bytes to be sent to a host; whoever sends takes them from the front.
    pub fn output(&mut self, number: usize) -> &mut Vec<u8> {
        &mut self.hosts[number].out
    }

    /// Takes in what a host sent.
    pub fn receive(&mut self, number: usize, bytes: &[u8], now: Nanos) {
        if let Err(why) = self.hosts[number].receive(bytes, &self.settings, now) {
            self.lose(number, why);
        }
    }

    /// Takes in what the launcher of a host said on stderr: its end is kept, for when it fails.
    pub fn said(&mut self, number: usize, bytes: &[u8]) {
        self.hosts[number].said(bytes);
    }

    /// Notes that the connection to a host has ended; `how` the launcher did, in words.
    pub fn closed(&mut self, number: usize, how: &str) {
        let host = &mut self.hosts[number];
        if matches!(host.state, State::Leaving { .. }) {
            host.state = State::Gone;
        } else {
            let why = host.why_closed(how);
            self.lose(number, why);
        }
    }

    /// Does what is due: pings, gives silent hosts up, gives tasks, starts what is ready; it looks at each
    /// host once. All that had arrived at `looked` was taken in: what hosts have not done until then they are
    /// late with, however late it is `now`.
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

    /// Returns when [`tick`](Self::tick) is due, unless something arrives.
    pub fn deadline(&self, now: Nanos) -> Nanos {
        let deadlines =
            self.hosts.iter().filter_map(|host| host.deadline(&self.settings, self.stopping_since));
        deadlines.min().unwrap_or(now + self.settings.heartbeat).max(now)
    }

    /// Gives up a host, for this reason.
    fn lose(&mut self, number: usize, why: String) {
        if !matches!(self.hosts[number].state, State::Gone) {
            self.hosts[number].lose(why);
            self.to_kill.push(number);
        }
    }

    /// Gives tasks to hosts whose clocks are known, and starts them once all are ready.
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

    /// Returns how long before the start the hosts are told: as long as the slowest message takes, and as it
    /// takes to send them all.
    fn lead(&self, now: Nanos) -> Nanos {
        let errors = self.hosts.iter().filter_map(|host| Some(host.clock.at(now)?.error));
        let slowest = errors.max().unwrap_or_default().min(Nanos::secs(2));
        Nanos::millis(200) + Nanos::millis(2) * self.hosts.len() as u64 + slowest * 4
    }
}
