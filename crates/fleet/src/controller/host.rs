//! One host as the controller sees it.

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_state::frame::{BODY_MAX, Decoder, encode, silence};

use super::reasons::{mismatch, reason};
use super::settings::Settings;
use super::task::{Run, Turn, out_of_turn};
use crate::agent::silence_max;
use crate::clock::{Estimate, Offset, Sample};
use crate::message::{FromAgent, Task, TaskResult, ToAgent, short};

/// Number of pings that are answered before the clock of a host is known.
const PINGS_FIRST: u32 = 8;
/// Number of pings that are answered after a task.
const PINGS_LAST: u32 = 4;
/// Number of bytes that are kept of what a launcher said.
const SAID_MAX: usize = 16 << 10;
/// Number of bytes that may wait to be sent to a host, which has room for the largest task beside all else: a
/// host that reads nothing is given up.
const OUT_MAX: usize = 2 * BODY_MAX;
/// Beyond what is known of its clock, a host may say that it began so much later than it can have: what it
/// says is not cut to a moment.
const LATE_ERROR: Nanos = Nanos::secs(1);
/// Time that a launcher may take to end.
const LEAVE_WITHIN: Nanos = Nanos::secs(3);
/// Number of bytes that are sent within a second over the slowest link: the answer to a ping waits behind
/// them.
const SLOWEST_LINK: u64 = 4 << 10;

/// How far a host has come.
#[derive(Debug)]
pub(super) enum State {
    /// The launcher was not started.
    Waiting,
    /// The agent has not said who it is, or its clock is not known.
    Connecting {
        /// When its launcher was started.
        since: Nanos,
    },
    /// The host has nothing to do.
    Idle,
    /// The host does its task.
    Running,
    /// The host was told that nothing more comes.
    Leaving {
        /// When.
        since: Nanos,
    },
    /// The connection has ended.
    Gone,
}

/// Phase of a host's work, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The launcher was not started, or the agent has not answered.
    Connecting,
    /// The host makes its task ready, or waits for the others.
    Preparing,
    /// The load runs.
    Running,
    /// The result is here.
    Done,
    /// The connection has ended before the result was here.
    Missing,
}

/// Time limit for something that a host may take too long for.
struct Limit {
    until: Nanos,
    since: Nanos,
    /// Description of the problem after so many seconds since then.
    words: fn(f64) -> String,
}

impl Limit {
    /// Creates a limit of no more than `within` from `since` on.
    fn since(since: Nanos, within: Nanos, words: fn(f64) -> String) -> Self {
        Self { until: since.saturating_add(within), since, words }
    }
}

/// State of a host now.
#[derive(Debug, Clone, Copy)]
pub struct HostNow<'a> {
    /// Name of the host, as it was given.
    pub name: &'a str,
    /// Phase of its work.
    pub phase: Phase,
    /// True if it has a task.
    pub has_task: bool,
    /// Boot id of its machine, if its agent has said one.
    pub boot_id: Option<&'a str>,
    /// The schema of the document that its task gives; empty without one.
    pub schema: &'a str,
    /// Reason why it is missing.
    pub because: Option<&'a str>,
    /// How far its clock was ahead at the start, or at the last answer.
    pub clock: Option<Offset>,
    /// How late it started.
    pub late: Option<Nanos>,
    /// Measurements of its load until now.
    pub figures: Option<&'a LoadOutcome>,
    /// Result of its task.
    pub result: Option<&'a TaskResult>,
}

impl<'a> HostNow<'a> {
    /// Returns what its load has measured, at the end or until now.
    pub fn measured(&self) -> Option<&'a LoadOutcome> {
        self.result.and_then(|result| result.outcome.as_ref()).or(self.figures)
    }
}

#[derive(Debug)]
pub(super) struct Host {
    name: String,
    pub(super) state: State,
    because: Option<String>,
    decoder: Decoder,
    pub(super) out: Vec<u8>,
    pub(super) clock: Estimate,
    /// True if its agent has said that it is the same program.
    is_known: bool,
    /// Boot id of its machine, if it has said one.
    boot_id: Option<String>,
    /// The ping without an answer, and when it left.
    ping: Option<(u64, Nanos)>,
    /// How much has arrived since then, in bytes.
    arrived: u64,
    pings: u64,
    /// Number of pings still to be answered before the host goes on.
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
            is_known: false,
            boot_id: None,
            ping: None,
            arrived: 0,
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
            (State::Running, Some(run)) if run.started_at.is_some() => Phase::Running,
            _ => Phase::Preparing,
        };
        HostNow {
            name: &self.name,
            phase,
            has_task: run.is_some(),
            boot_id: self.boot_id.as_deref(),
            schema: run.map(|run| run.schema.as_str()).unwrap_or_default(),
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

    pub(super) fn give(&mut self, task: Option<Task>, expected: Option<Nanos>) {
        self.run = task.map(|task| Run::new(task, expected));
    }

    pub(super) fn has_task(&self) -> bool {
        self.run.is_some()
    }

    /// Returns true if nothing more is to be waited for.
    pub(super) fn is_done(&self) -> bool {
        let Some(run) = &self.run else { return true };
        matches!(self.state, State::Gone) || (run.result.is_some() && self.pings_left == 0)
    }

    /// Returns true if it waits for the others.
    pub(super) fn waits(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.turn == Turn::Ready)
    }

    /// Returns true if the others need not wait for it.
    pub(super) fn is_ready(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.turn == Turn::Ready || run.result.is_some())
    }

    pub(super) fn say(&mut self, message: &ToAgent) {
        encode(message, &mut self.out);
    }

    /// Gives it its task, if it has one that it has not got.
    pub(super) fn run_if_idle(&mut self, now: Nanos) {
        let run = self.run.as_mut().filter(|_| matches!(self.state, State::Idle));
        let Some(run) = run else { return };
        if let Some(task) = run.task.take() {
            (run.told_at, run.moved_at) = (now, now);
            self.state = State::Running;
            self.say(&ToAgent::Run { task });
        }
    }

    /// Tells it when to start, if it is ready; false if its clock cannot say that. The first start of a task
    /// counts.
    pub(super) fn start(&mut self, at: Nanos, first: Nanos) -> bool {
        let Some(run) = self.run.as_mut().filter(|run| run.turn == Turn::Ready) else { return true };
        (run.turn, run.started_at) = (Turn::Started, Some(first));
        (run.told_at, run.moved_at) = (at, at);
        let Some(at) = self.clock.theirs(at) else { return false };
        self.say(&ToAgent::Start { at });
        true
    }

    /// Tells it to end early what it does.
    pub(super) fn stop(&mut self) {
        if let Some(run) = &mut self.run {
            run.turn = Turn::Stopped;
        }
        self.say(&ToAgent::Stop);
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
        self.arrived += bytes.len() as u64;
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
            FromAgent::Hello { identity } if !self.is_known => {
                mismatch(&identity, settings).map_or(Ok(()), Err)?;
                self.boot_id = identity.boot_id.as_deref().map(short);
                self.is_known = true;
                self.next_ping = next_beat(settings, now);
                self.ping_now(now);
            }
            _ if !self.is_known => {
                return Err("its agent did not identify its program".to_owned());
            }
            FromAgent::Hello { .. } => return Err(out_of_turn()),
            FromAgent::Pong { number, received, sent: theirs_sent } => {
                let ping = self.ping.take().filter(|(asked, _)| *asked == number);
                let (_, sent) = ping.ok_or("its agent answered a ping that was not sent")?;
                self.pong(Sample { sent, theirs_received: received, theirs_sent, received: now }, settings)?;
            }
            FromAgent::Ready => self.running()?.ready()?,
            FromAgent::Begun { late } => {
                let error = self.clock.at(now).map(|offset| offset.error).unwrap_or_default();
                let run = self.running()?;
                let latest = now.since(run.told_at).saturating_add(error).saturating_add(LATE_ERROR);
                run.begun(late, latest)?;
            }
            FromAgent::Figures(outcome) => {
                self.running()?.take_figures(*outcome, now, settings.end_within)?;
            }
            FromAgent::Part { text, is_last } => {
                if self.running()?.add_part(&text, is_last, settings.end_within)? {
                    self.state = State::Idle;
                    self.pings_left = PINGS_LAST;
                    self.ping_now(now);
                }
            }
        }
        Ok(())
    }

    /// Returns the task that it does.
    fn running(&mut self) -> Result<&mut Run, String> {
        self.run.as_mut().filter(|_| matches!(self.state, State::Running)).ok_or_else(out_of_turn)
    }

    fn pong(&mut self, sample: Sample, settings: &Settings) -> Result<(), String> {
        let now = sample.received;
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
            (self.ping, self.arrived) = (Some((self.pings, now)), 0);
            self.say(&ToAgent::Ping { number: self.pings });
        }
    }

    /// Sends the heartbeat, if it is due. While an answer is awaited, which a controller with much to read
    /// may have and not know, it says just that it is there: the lease of the agent does not end for that.
    pub(super) fn beat_if_due(&mut self, settings: &Settings, now: Nanos) {
        if !self.is_connected() || now < self.next_ping {
            return;
        }
        self.next_ping = next_beat(settings, now);
        if self.ping.is_some() {
            self.say(&ToAgent::Here);
        } else {
            self.ping_now(now);
        }
    }

    /// Returns true if its agent has said who it is, and is to hear of the controller.
    fn is_connected(&self) -> bool {
        matches!(self.state, State::Connecting { .. } | State::Idle | State::Running) && self.is_known
    }

    /// Returns why it is to be given up; all that it had sent at `looked` was taken in.
    pub(super) fn overdue(
        &self,
        settings: &Settings,
        stopping: Option<Nanos>,
        looked: Nanos,
    ) -> Option<String> {
        if self.out.len() > OUT_MAX {
            return Some(self.with_reason("it does not read the messages that it is sent".to_owned()));
        }
        let Limit { until, since, words } = self.limit(settings, stopping)?;
        (until <= looked).then(|| self.with_reason(words(looked.since(since).as_secs_f64())))
    }

    /// Returns when it is to be given up, and by which limit.
    fn limit(&self, settings: &Settings, stopping: Option<Nanos>) -> Option<Limit> {
        let not_ended = |_| "it did not end when it was told to".to_owned();
        match self.state {
            State::Waiting | State::Gone => None,
            State::Connecting { since } => Some(Limit::since(since, settings.connect_within, |s| {
                format!("it did not answer within {s:.1} s")
            })),
            State::Leaving { since } => Some(Limit::since(since, LEAVE_WITHIN, not_ended)),
            State::Idle => self.silence(settings),
            State::Running => {
                let told = stopping.map(|since| Limit::since(since, settings.stop_within, not_ended));
                let limits = [self.silence(settings), told, self.slowness(settings)];
                limits.into_iter().flatten().min_by_key(|limit| limit.until)
            }
        }
    }

    /// Returns when it counts as silent: a ping is not answered, though all that arrived since has had its
    /// time. Bytes alone are no sign of life: a host that drips them would be waited for as long as it likes.
    fn silence(&self, settings: &Settings) -> Option<Limit> {
        let (_, since) = self.ping?;
        // No more than the largest message can stand before the answer.
        let behind = self.arrived.min(BODY_MAX as u64) / SLOWEST_LINK;
        let patience = silence_max(settings.heartbeat).saturating_add(Nanos::secs(behind));
        Some(Limit::since(since, patience, |s| silence(s).to_string()))
    }

    /// Returns when its task takes too long: the preparation, or what was to last a known time, or what lasts
    /// as long as it takes and comes no further. Who waits for the others does not.
    fn slowness(&self, settings: &Settings) -> Option<Limit> {
        let run = self.run.as_ref().filter(|run| run.turn != Turn::Ready)?;
        Some(match (run.started_at, run.expected) {
            (None, _) => Limit::since(run.told_at, settings.prepare_within, |s| {
                format!("it was not ready within {s:.0} s (--prepare-timeout)")
            }),
            // All of its spans, and what is made ready between them, are in what is expected from the first
            // start on.
            (Some(first), Some(expected)) => {
                Limit::since(first, expected.saturating_add(settings.end_within), |s| {
                    format!("it had not ended {s:.0} s after its start")
                })
            }
            (Some(_), None) => {
                Limit::since(run.moved_at, settings.prepare_within.max(settings.end_within), |s| {
                    format!("it made no progress within {s:.0} s (--prepare-timeout)")
                })
            }
        })
    }

    pub(super) fn deadline(&self, settings: &Settings, stopping: Option<Nanos>) -> Option<Nanos> {
        let beat = Some(self.next_ping).filter(|_| self.is_connected());
        self.limit(settings, stopping).map(|limit| limit.until).into_iter().chain(beat).min()
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

    /// Returns what happened, and what its launcher said of it, ready to print.
    fn with_reason(&self, what: String) -> String {
        let said = reason(&String::from_utf8_lossy(&self.said));
        if said.is_empty() { what } else { format!("{what}: {said}") }
    }

    pub(super) fn why_closed(&self, how: &str) -> String {
        self.with_reason(match self.state {
            State::Connecting { .. } => format!("no agent answered: {how}"),
            _ => format!("{}: {how}", self.decoder.end()),
        })
    }
}

/// Returns the next ping: the same moment for all hosts, so that their answers come together. Twice in a
/// heartbeat, so that a controller that is kept from its work for a while is still heard in time.
const fn next_beat(settings: &Settings, now: Nanos) -> Nanos {
    let beat = settings.heartbeat.0 / 2 + (settings.heartbeat.0 < 2) as u64;
    Nanos((now.0 / beat + 1) * beat)
}
