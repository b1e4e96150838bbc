//! Task of a host and its answers, which are bounded and validated.

use plumb_block::Nanos;
use plumb_load::{Direction, LoadOutcome};
use plumb_measure::COUNT_MAX;

use crate::message::{Task, TaskResult, short};

/// Maximum length of a result in bytes.
const RESULT_MAX: usize = 16 << 20;
/// Maximum number of distinct failures.
const FAILURES_MAX: usize = 200;
/// Upper bound of the bytes of an operation, to reject impossible figures.
const OPERATION_MAX: u64 = 1 << 30;
/// Upper bound of bytes per second of a host, including simulated drives: above the memory bandwidth of the
/// largest machines.
const RATE_MAX: u64 = 1 << 43;

/// Progress of a task, which determines the messages that the agent may send next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The task is being prepared.
    Preparing,
    /// The host is ready and waits for the others.
    Ready,
    /// The host was told when to start.
    Started,
    /// The task has started. The next span of a load is prepared after that.
    Begun,
    /// The host was told to end the task early. A message about being ready or started may still be in
    /// transit, and is ignored.
    Stopped,
}

/// A task of a host.
#[derive(Debug)]
pub(super) struct Run {
    /// Task that has not been sent to the host yet.
    pub(super) task: Option<Task>,
    /// True for a load. Other commands do not wait for other hosts, and send no figures.
    is_load: bool,
    /// Schema of the document that the task produces.
    pub(super) schema: String,
    pub(super) turn: Turn,
    /// First start of all hosts, by the controller's clock.
    pub(super) started_at: Option<Nanos>,
    /// Time at which the task was sent, or of its last start.
    pub(super) told_at: Nanos,
    /// Time of the last progress: the task was sent or started, or its figures advanced.
    pub(super) moved_at: Nanos,
    /// Expected time from start to end, if known.
    pub(super) expected: Option<Nanos>,
    pub(super) late: Option<Nanos>,
    pub(super) figures: Option<LoadOutcome>,
    parts: String,
    pub(super) result: Option<TaskResult>,
}

impl Run {
    pub(super) fn new(task: Task, expected: Option<Nanos>) -> Self {
        Self {
            is_load: matches!(task, Task::Load(_)),
            schema: task.schema().to_owned(),
            task: Some(task),
            turn: Turn::Preparing,
            started_at: None,
            told_at: Nanos::ZERO,
            moved_at: Nanos::ZERO,
            expected,
            late: None,
            figures: None,
            parts: String::new(),
            result: None,
        }
    }

    /// Records that the agent is ready to start.
    ///
    /// # Errors
    /// The message is out of turn.
    pub(super) fn ready(&mut self) -> Result<(), String> {
        match self.turn {
            Turn::Preparing | Turn::Begun if self.is_load => self.turn = Turn::Ready,
            Turn::Stopped => {}
            _ => return Err(out_of_turn()),
        }
        Ok(())
    }

    /// Records that the task started with a delay of `late`; `latest` is the largest possible delay.
    ///
    /// # Errors
    /// The message is out of turn, or the delay is impossible.
    pub(super) fn begun(&mut self, late: Nanos, latest: Nanos) -> Result<(), String> {
        match self.turn {
            Turn::Started => self.turn = Turn::Begun,
            Turn::Stopped => return Ok(()),
            _ => return Err(out_of_turn()),
        }
        if late > latest {
            return Err("its agent reports a start in the future".to_owned());
        }
        self.late = Some(self.late.unwrap_or_default().max(late));
        Ok(())
    }

    /// Stores interim figures, received at `now`.
    ///
    /// # Errors
    /// The message is out of turn, or the figures are impossible.
    pub(super) fn take_figures(
        &mut self,
        outcome: LoadOutcome,
        now: Nanos,
        end_within: Nanos,
    ) -> Result<(), String> {
        if !matches!(self.turn, Turn::Started | Turn::Begun | Turn::Stopped) || !self.is_load {
            return Err(out_of_turn());
        }
        if !is_plausible(&outcome) || outcome.length > self.longest(end_within) {
            return Err("its agent sent figures that are impossible".to_owned());
        }
        if self.figures.as_ref().is_none_or(|before| outcome.length > before.length) {
            self.moved_at = now;
        }
        self.figures = Some(outcome);
        Ok(())
    }

    /// Returns the maximum length of a load, in its own time, which is that of a simulated drive for one.
    fn longest(&self, end_within: Nanos) -> Nanos {
        self.expected.map_or(Nanos(COUNT_MAX), |expected| expected.saturating_add(end_within))
    }

    /// Appends a part of the result. Returns true if it was the last.
    ///
    /// # Errors
    /// The reason for giving up the host.
    pub(super) fn add_part(&mut self, text: &str, is_last: bool, end_within: Nanos) -> Result<bool, String> {
        if self.parts.len() + text.len() > RESULT_MAX {
            return Err(format!("its result is larger than {} MiB", RESULT_MAX >> 20));
        }
        self.parts.push_str(text);
        if !is_last {
            return Ok(false);
        }
        let parts = std::mem::take(&mut self.parts);
        let mut result: TaskResult = serde_json::from_slice(parts.as_bytes())
            .map_err(|error| format!("its result cannot be read: {}", short(&error.to_string())))?;
        result.because = result.because.as_deref().map(short);
        let length = result.outcome.as_ref().map(|outcome| outcome.length).max(result.lasted);
        if result.outcome.as_ref().is_some_and(|outcome| !is_plausible(outcome))
            || length.is_some_and(|length| length > self.longest(end_within))
        {
            return Err("its result has figures that are impossible".to_owned());
        }
        self.figures = None;
        self.result = Some(result);
        Ok(true)
    }

    pub(super) fn forget_parts(&mut self) {
        self.parts = String::new();
    }
}

/// Returns the reason for giving up a host that sends a message out of turn.
pub(super) fn out_of_turn() -> String {
    "its agent sent an answer that was not asked for".to_owned()
}

/// Returns true if the figures are possible and can be added to those of other hosts without overflow.
/// Processor times of workers are not checked, as they are not added.
pub(super) fn is_plausible(outcome: &LoadOutcome) -> bool {
    let most = RATE_MAX.saturating_mul(outcome.length.as_secs_f64() as u64 + 1).min(COUNT_MAX);
    let direction = |one: &Direction| {
        one.bytes.0 < COUNT_MAX
            && one.bytes.0 <= one.latency.count().saturating_mul(OPERATION_MAX)
            && one.errors.len() < FAILURES_MAX
            && one.errors.iter().all(|(_, count)| *count < COUNT_MAX)
    };
    let directions = [&outcome.read, &outcome.write, &outcome.trim, &outcome.flush];
    let verified = outcome.verified.as_ref().is_none_or(|found| {
        let counts = [found.blocks, found.wrong(), found.at_risk, found.older, found.unreached];
        counts.into_iter().all(|count| count < COUNT_MAX)
    });
    let counts = [
        outcome.in_flight_max,
        outcome.latencies_late,
        outcome.late_starts,
        outcome.unstarted,
        outcome.length.0,
    ];
    // The limit applies to reads and writes only: discarding does not transfer the bytes.
    let is_moved = |one: &Direction| one.bytes.0 <= most;
    directions.into_iter().all(direction)
        && [&outcome.read, &outcome.write].into_iter().all(is_moved)
        && verified
        && counts.into_iter().all(|count| count < COUNT_MAX)
        && outcome.worker_cpu.is_empty()
}
