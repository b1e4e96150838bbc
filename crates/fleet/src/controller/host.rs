//! One host as the controller sees it.

use plumb_block::Nanos;
use plumb_load::LoadOutcome;

use super::Settings;
use super::task::{Run, is_plausible};
use crate::agent::silence_max;
use crate::clock::{Estimate, Offset, Sample};
use crate::frame::{Decoder, encode};
use crate::message::{FromAgent, Identity, Task, TaskResult, ToAgent};

/// So many pings are answered before the clock of a host is known.
const PINGS_FIRST: u32 = 8;
/// So many are answered after a task.
const PINGS_LAST: u32 = 4;
/// So much of what a launcher said is kept.
const SAID_MAX: usize = 4 << 10;
/// How long a launcher may take to end.
const LEAVE_WITHIN: Nanos = Nanos::secs(3);

/// How far a host has come.
#[derive(Debug)]
pub(super) enum State {
    /// Its launcher was not started.
    Waiting,
    /// Its agent has not said who it is, or its clock is not known.
    Connecting {
        /// When its launcher was started.
        since: Nanos,
    },
    /// It has nothing to do.
    Idle,
    /// It does its task.
    Running,
    /// It was told that nothing more comes.
    Leaving {
        /// When.
        since: Nanos,
    },
    /// Its connection has ended.
    Gone,
}

/// What a host does, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its launcher was not started, or its agent has not answered.
    Connecting,
    /// It makes its task ready, or waits for the others.
    Preparing,
    /// Its load runs.
    Running,
    /// Its result is here.
    Done,
    /// Its connection has ended before its result was here.
    Missing,
}

/// What is known of a host now.
#[derive(Debug, Clone, Copy)]
pub struct HostNow<'a> {
    /// As it was named.
    pub name: &'a str,
    /// What it does.
    pub phase: Phase,
    /// Whether it has a task.
    pub has_task: bool,
    /// Why it is missing.
    pub because: Option<&'a str>,
    /// How far its clock was ahead at the start, or at the last answer.
    pub clock: Option<Offset>,
    /// How late it started.
    pub late: Option<Nanos>,
    /// What its load has measured until now.
    pub figures: Option<&'a LoadOutcome>,
    /// What became of its task.
    pub result: Option<&'a TaskResult>,
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    name: String,
    pub(super) state: State,
    because: Option<String>,
    decoder: Decoder,
    pub(super) out: Vec<u8>,
    pub(super) clock: Estimate,
    identity: Option<Identity>,
    /// The ping without an answer, and when it left.
    ping: Option<(u64, Nanos)>,
    pings: u64,
    /// So many are to be answered before the host goes on.
    pings_left: u32,
    next_ping: Nanos,
    pub(super) heard: Nanos,
    said: Vec<u8>,
    run: Option<Run>,
}

impl Host {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: State::Waiting,
            because: None,
            decoder: Decoder::default(),
            out: Vec::new(),
            clock: Estimate::default(),
            identity: None,
            ping: None,
            pings: 0,
            pings_left: PINGS_FIRST,
            next_ping: Nanos::ZERO,
            heard: Nanos::ZERO,
            said: Vec::new(),
            run: None,
        }
    }

    pub(super) fn now(&self, started_at: Option<Nanos>) -> HostNow<'_> {
        let run = self.run.as_ref();
        let phase = match (&self.state, run) {
            (_, Some(run)) if run.result.is_some() => Phase::Done,
            (State::Gone, _) => Phase::Missing,
            (State::Waiting | State::Connecting { .. }, _) => Phase::Connecting,
            (State::Running, Some(run)) if run.started => Phase::Running,
            _ => Phase::Preparing,
        };
        HostNow {
            name: &self.name,
            phase,
            has_task: run.is_some(),
            because: self.because.as_deref(),
            clock: self.clock.at(started_at.unwrap_or(self.heard)),
            late: run.and_then(|run| run.late),
            figures: run.and_then(|run| run.figures.as_ref()),
            result: run.and_then(|run| run.result.as_ref()),
        }
    }

    pub(super) fn take_measured(&mut self) -> Option<LoadOutcome> {
        let run = self.run.as_mut()?;
        run.result.as_mut().and_then(|result| result.outcome.take()).or_else(|| run.figures.take())
    }

    pub(super) fn give(&mut self, task: Option<Task>) {
        self.run = task.map(Run::new);
    }

    pub(super) fn has_task(&self) -> bool {
        self.run.is_some()
    }

    /// Whether nothing more is to be waited for.
    pub(super) fn is_done(&self) -> bool {
        let Some(run) = &self.run else { return true };
        matches!(self.state, State::Gone) || (run.result.is_some() && self.pings_left == 0)
    }

    /// Whether it waits for the others.
    pub(super) fn waits(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.ready)
    }

    /// Whether the others need not wait for it.
    pub(super) fn is_ready(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.ready || run.result.is_some())
    }

    pub(super) fn say(&mut self, message: &ToAgent) {
        encode(message, &mut self.out);
    }

    /// Gives it its task, if it has one that it has not got.
    pub(super) fn run_if_idle(&mut self) {
        if !matches!(self.state, State::Idle) {
            return;
        }
        let task = self.run.as_mut().and_then(|run| run.task.take());
        if let Some(task) = task {
            self.state = State::Running;
            self.say(&ToAgent::Run { task });
        }
    }

    /// Tells it when to start, if it is ready; false if its clock cannot say that. The first start of a task counts.
    pub(super) fn start(&mut self, at: Nanos, first: Nanos) -> bool {
        let Some(run) = self.run.as_mut().filter(|run| run.ready) else { return true };
        (run.ready, run.started, run.started_at) = (false, true, Some(first));
        let Some(at) = self.clock.theirs(at) else { return false };
        self.say(&ToAgent::Start { at });
        true
    }

    /// Takes in what it sent.
    ///
    /// # Errors
    /// Why it is to be given up.
    pub(super) fn receive(&mut self, bytes: &[u8], settings: &Settings, now: Nanos) -> Result<(), String> {
        if matches!(self.state, State::Gone) {
            return Ok(());
        }
        self.heard = now;
        self.decoder.push(bytes);
        loop {
            match self.decoder.take::<FromAgent>() {
                Ok(Some(message)) => self.take_in(message, settings, now)?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.decoder = Decoder::default();
                    return Err(error.to_string());
                }
            }
        }
    }

    fn take_in(&mut self, message: FromAgent, settings: &Settings, now: Nanos) -> Result<(), String> {
        match message {
            FromAgent::Hello { identity } => {
                mismatch(&identity, settings).map_or(Ok(()), Err)?;
                self.identity = Some(identity);
                self.ping_now(now);
            }
            _ if self.identity.is_none() => {
                return Err("its agent did not say which program it is".to_owned());
            }
            FromAgent::Pong { number, received, sent } => {
                self.pong(number, (received, sent), settings, now)?
            }
            FromAgent::Ready => self.running()?.ready = true,
            FromAgent::Begun { late } => {
                let run = self.running()?;
                run.late = Some(run.late.unwrap_or_default().max(late));
            }
            FromAgent::Figures(outcome) => {
                if !is_plausible(&outcome) {
                    return Err("its agent sent figures that cannot be true".to_owned());
                }
                self.running()?.figures = Some(*outcome);
            }
            FromAgent::Part { text, is_last } => {
                if self.running()?.add_part(&text, is_last)? {
                    self.state = State::Idle;
                    self.pings_left = PINGS_LAST;
                    self.ping_now(now);
                }
            }
        }
        Ok(())
    }

    /// The task that it does.
    fn running(&mut self) -> Result<&mut Run, String> {
        let out_of_turn = || "its agent answered what it was not asked".to_owned();
        self.run.as_mut().filter(|_| matches!(self.state, State::Running)).ok_or_else(out_of_turn)
    }

    fn pong(
        &mut self,
        number: u64,
        theirs: (Nanos, Nanos),
        settings: &Settings,
        now: Nanos,
    ) -> Result<(), String> {
        let Some((_, sent)) = self.ping.take().filter(|(asked, _)| *asked == number) else {
            return Err("its agent answered a ping that was not sent".to_owned());
        };
        let sample = Sample { sent, theirs_received: theirs.0, theirs_sent: theirs.1, received: now };
        let reference = self.run.as_ref().and_then(|run| run.started_at).unwrap_or(now);
        if !self.clock.add(sample, reference) {
            return Err("its agent answered a ping before it was sent".to_owned());
        }
        self.pings_left = self.pings_left.saturating_sub(1);
        self.next_ping = next_beat(settings, now);
        if self.pings_left > 0 {
            self.ping_now(now);
        } else if matches!(self.state, State::Connecting { .. }) {
            self.state = State::Idle;
        }
        Ok(())
    }

    fn ping_now(&mut self, now: Nanos) {
        if self.ping.is_none() {
            self.pings += 1;
            self.ping = Some((self.pings, now));
            self.say(&ToAgent::Ping { number: self.pings });
        }
    }

    /// The heartbeat.
    pub(super) fn ping_if_due(&mut self, settings: &Settings, now: Nanos) {
        if matches!(self.state, State::Idle | State::Running) && self.ping.is_none() && now >= self.next_ping
        {
            self.next_ping = next_beat(settings, now);
            self.ping_now(now);
        }
    }

    /// Why it is to be given up now.
    pub(super) fn overdue(&self, settings: &Settings, stopping: Option<Nanos>, now: Nanos) -> Option<String> {
        if self.limit(settings, stopping)? > now {
            return None;
        }
        let said = self.last_line();
        let with = |what: String| if said.is_empty() { what } else { format!("{what}: {said}") };
        Some(match self.state {
            State::Connecting { since } => {
                with(format!("it did not answer within {:.1} s", now.since(since).as_secs_f64()))
            }
            _ if now.since(self.heard) >= silence_max(settings.heartbeat) => {
                with(format!("it was silent for {:.1} s", now.since(self.heard).as_secs_f64()))
            }
            _ => "it did not end when it was told to".to_owned(),
        })
    }

    /// When it is to be given up, unless it is heard.
    fn limit(&self, settings: &Settings, stopping: Option<Nanos>) -> Option<Nanos> {
        let silent = self.heard.saturating_add(silence_max(settings.heartbeat));
        match self.state {
            State::Waiting | State::Gone => None,
            State::Connecting { since } => Some(since.saturating_add(settings.connect_within)),
            State::Leaving { since } => Some(since.saturating_add(LEAVE_WITHIN)),
            State::Idle => self.ping.map(|_| silent),
            State::Running => {
                let told = stopping.map(|since| since.saturating_add(settings.stop_within));
                self.ping.map(|_| silent).into_iter().chain(told).min()
            }
        }
    }

    pub(super) fn deadline(&self, settings: &Settings, stopping: Option<Nanos>) -> Option<Nanos> {
        let is_connected = matches!(self.state, State::Idle | State::Running);
        let ping = Some(self.next_ping).filter(|_| is_connected && self.ping.is_none());
        self.limit(settings, stopping).into_iter().chain(ping).min()
    }

    pub(super) fn lose(&mut self, why: String) {
        self.state = State::Gone;
        self.out.clear();
        self.decoder = Decoder::default();
        if let Some(run) = &mut self.run {
            run.forget_parts();
        }
        self.because.get_or_insert(why);
    }

    pub(super) fn said(&mut self, bytes: &[u8]) {
        self.said.extend_from_slice(&bytes[bytes.len().saturating_sub(SAID_MAX)..]);
        let surplus = self.said.len().saturating_sub(SAID_MAX);
        self.said.drain(..surplus);
    }

    /// The last line that its launcher said, ready to print.
    fn last_line(&self) -> String {
        let said = String::from_utf8_lossy(&self.said);
        let line = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        plumb_report::printable::printable(line)
    }

    pub(super) fn why_closed(&self, how: &str) -> String {
        let what = match self.state {
            State::Connecting { .. } => format!("no agent answered: {how}"),
            _ => format!("the connection ended: {how}"),
        };
        let said = self.last_line();
        if said.is_empty() { what } else { format!("{what}: {said}") }
    }
}

/// The next heartbeat: the same moment for all hosts, so that their answers come together.
const fn next_beat(settings: &Settings, now: Nanos) -> Nanos {
    let beat = settings.heartbeat.0 + (settings.heartbeat.0 == 0) as u64;
    Nanos((now.0 / beat + 1) * beat)
}

/// Why an agent is not the same program.
fn mismatch(theirs: &Identity, settings: &Settings) -> Option<String> {
    let ours = &settings.identity;
    let short = |text: &str| plumb_report::printable::printable(&text.chars().take(16).collect::<String>());
    if theirs.version != ours.version {
        let (theirs, ours) = (short(&theirs.version), &ours.version);
        return Some(format!("plumb {theirs} is there, {ours} here: install the same, or use --push"));
    }
    (theirs.binary != ours.binary && !settings.any_binary).then(|| {
        format!(
            "another build of plumb {} is there (SHA-256 {}..., here {}...): install the same, use --push, or take it as it is with \
             --any-build",
            ours.version,
            short(&theirs.binary),
            short(&ours.binary)
        )
    })
}
