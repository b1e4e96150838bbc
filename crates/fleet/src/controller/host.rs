//! State of one host in the controller.

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_state::frame::{BODY_MAX, Decoder, encode, silence};

use super::reasons::{mismatch, reason};
use super::settings::Settings;
use super::task::{Run, Turn, out_of_turn};
use crate::agent::silence_max;
use crate::clock::{Estimate, Offset, Sample};
use crate::message::{FromAgent, Task, TaskResult, ToAgent, short};

/// Number of pings to estimate the clock of a host before its first task.
const PINGS_FIRST: u32 = 8;
/// Number of pings after a task.
const PINGS_LAST: u32 = 4;
/// Maximum number of bytes kept of a launcher's stderr.
const SAID_MAX: usize = 16 << 10;
/// Maximum number of unsent bytes for a host, with room for the largest task and more. A host that exceeds it
/// does not read, and is given up.
const OUT_MAX: usize = 2 * BODY_MAX;
/// Tolerance for a reported start beyond the clock error, as the host's report is not exact.
const LATE_ERROR: Nanos = Nanos::secs(1);
/// Time limit for a launcher to exit.
const LEAVE_WITHIN: Nanos = Nanos::secs(3);
/// Bytes per second of the slowest supported link. The answer to a ping may wait behind other data.
const SLOWEST_LINK: u64 = 4 << 10;

/// Progress of a host.
#[derive(Debug)]
pub(super) enum State {
    /// The launcher has not been started.
    Waiting,
    /// The agent has not identified itself, or its clock is not known yet.
    Connecting {
        /// Start of the launcher.
        since: Nanos,
    },
    /// The host has no task.
    Idle,
    /// The host executes its task.
    Running,
    /// The host was told that no more tasks follow.
    Leaving {
        /// Time of that message.
        since: Nanos,
    },
    /// The connection has ended.
    Gone,
}

/// Phase of a host's work, for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The launcher has not been started, or the agent has not answered.
    Connecting,
    /// The host prepares its task, or waits for the others.
    Preparing,
    /// The load is running.
    Running,
    /// The result has arrived.
    Done,
    /// The connection ended before the result arrived.
    Missing,
}

/// Time limit for an operation of a host.
struct Limit {
    until: Nanos,
    since: Nanos,
    /// Formats the reason for giving up, given the seconds that have passed since `since`.
    words: fn(f64) -> String,
}

impl Limit {
    /// Creates a limit that expires `within` after `since`.
    fn since(since: Nanos, within: Nanos, words: fn(f64) -> String) -> Self {
        Self { until: since.saturating_add(within), since, words }
    }
}

/// Current state of a host, for readers.
#[derive(Debug, Clone, Copy)]
pub struct HostNow<'a> {
    /// Name of the host, as given by the user.
    pub name: &'a str,
    /// Phase of the host's work.
    pub phase: Phase,
    /// True if the host has a task.
    pub has_task: bool,
    /// Boot id of the host's machine, if reported.
    pub boot_id: Option<&'a str>,
    /// Schema of the document that the task produces; empty without a task.
    pub schema: &'a str,
    /// Reason why the host is missing.
    pub because: Option<&'a str>,
    /// Offset of the host's clock at the start, or at the last ping.
    pub clock: Option<Offset>,
    /// Delay of the start, as reported.
    pub late: Option<Nanos>,
    /// Interim figures of the load.
    pub figures: Option<&'a LoadOutcome>,
    /// Result of the task.
    pub result: Option<&'a TaskResult>,
}

impl<'a> HostNow<'a> {
    /// Returns the figures of the load: final, or interim until the result arrives.
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
    /// True if the agent has identified itself as the same program.
    is_known: bool,
    /// Boot id of the host's machine, if reported.
    boot_id: Option<String>,
    /// Number and time of the unanswered ping.
    ping: Option<(u64, Nanos)>,
    /// Bytes received since that ping.
    arrived: u64,
    pings: u64,
    /// Number of pings to be answered before the host proceeds.
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

    /// Returns true if nothing more is expected of the host.
    pub(super) fn is_done(&self) -> bool {
        let Some(run) = &self.run else { return true };
        matches!(self.state, State::Gone) || (run.result.is_some() && self.pings_left == 0)
    }

    /// Returns true if the host is ready and waits for the others.
    pub(super) fn waits(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.turn == Turn::Ready)
    }

    /// Returns true if the others need not wait for the host.
    pub(super) fn is_ready(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.turn == Turn::Ready || run.result.is_some())
    }

    pub(super) fn say(&mut self, message: &ToAgent) {
        encode(message, &mut self.out);
    }

    /// Sends the next task to an idle host.
    pub(super) fn run_if_idle(&mut self, now: Nanos) {
        let run = self.run.as_mut().filter(|_| matches!(self.state, State::Idle));
        let Some(run) = run else { return };
        if let Some(task) = run.task.take() {
            (run.told_at, run.moved_at) = (now, now);
            self.state = State::Running;
            self.say(&ToAgent::Run { task });
        }
    }

    /// Sends the start time `at` to a host that is ready; `first` is the first start of the task. Returns
    /// false if `at` cannot be expressed in the host's clock.
    pub(super) fn start(&mut self, at: Nanos, first: Nanos) -> bool {
        let Some(run) = self.run.as_mut().filter(|run| run.turn == Turn::Ready) else { return true };
        (run.turn, run.started_at) = (Turn::Started, Some(first));
        (run.told_at, run.moved_at) = (at, at);
        let Some(at) = self.clock.theirs(at) else { return false };
        self.say(&ToAgent::Start { at });
        true
    }

    /// Tells the host to end its task early.
    pub(super) fn stop(&mut self) {
        if let Some(run) = &mut self.run {
            run.turn = Turn::Stopped;
        }
        self.say(&ToAgent::Stop);
    }

    /// Processes received bytes.
    ///
    /// # Errors
    /// The reason for giving up the host.
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

    /// Returns the running task.
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

    /// Sends the heartbeat, if it is due. While a ping is unanswered, sends [`ToAgent::Here`] instead, so
    /// that the agent's lease does not expire when the answer waits unread in a busy controller.
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

    /// Returns true if the agent has identified itself and expects heartbeats.
    fn is_connected(&self) -> bool {
        matches!(self.state, State::Connecting { .. } | State::Idle | State::Running) && self.is_known
    }

    /// Returns the reason for giving up the host, if a limit expired before `looked`. All bytes that had
    /// arrived at that time have been processed.
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

    /// Returns the limit that expires next.
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

    /// Returns the limit for the answer to a ping, extended by the transmission time of all bytes received
    /// since. Bytes alone do not renew the limit, or a host that sends a few at a time could delay the run
    /// indefinitely.
    fn silence(&self, settings: &Settings) -> Option<Limit> {
        let (_, since) = self.ping?;
        // At most one message of the maximum length precedes the answer.
        let behind = self.arrived.min(BODY_MAX as u64) / SLOWEST_LINK;
        let patience = silence_max(settings.heartbeat).saturating_add(Nanos::secs(behind));
        Some(Limit::since(since, patience, |s| silence(s).to_string()))
    }

    /// Returns the limit for the task: for its preparation, for its known length, or for progress if its
    /// length is unknown. None applies while the host waits for the others.
    fn slowness(&self, settings: &Settings) -> Option<Limit> {
        let run = self.run.as_ref().filter(|run| run.turn != Turn::Ready)?;
        Some(match (run.started_at, run.expected) {
            (None, _) => Limit::since(run.told_at, settings.prepare_within, |s| {
                format!("it was not ready within {s:.0} s (--prepare-timeout)")
            }),
            // The expected time from the first start includes all spans and the preparations between them.
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

    /// Returns `what`, with the launcher's error output appended, printable.
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

/// Returns the time of the next ping: the same for all hosts, so that their answers arrive together, and
/// twice per heartbeat, so that a delayed controller is still heard in time.
const fn next_beat(settings: &Settings, now: Nanos) -> Nanos {
    let beat = settings.heartbeat.0 / 2 + (settings.heartbeat.0 < 2) as u64;
    Nanos((now.0 / beat + 1) * beat)
}
