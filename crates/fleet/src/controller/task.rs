//! The task of a host, and what it answers: bounded, and checked before it is believed.

use plumb_block::Nanos;
use plumb_load::{Direction, LoadOutcome};
use plumb_measure::COUNT_MAX;

use crate::message::{Task, TaskResult, short};

/// The longest result.
const RESULT_MAX: usize = 16 << 20;
/// Maximum number of ways to fail that are told apart.
const FAILURES_MAX: usize = 200;
/// No operation of a workload moves more: the largest block that there is, in bytes.
const OPERATION_MAX: u64 = 1 << 30;
/// No host moves more in a second, simulated ones included: the memory of the largest machines is slower, in
/// bytes.
const RATE_MAX: u64 = 1 << 43;

/// How far a task has come: what its agent may say next follows from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The task is being made ready.
    Preparing,
    /// The task waits for the others.
    Ready,
    /// The task was told when to start.
    Started,
    /// The task has begun. The next span of a load is made ready after that.
    Begun,
    /// The task was told to end early: a message that it is ready, or has begun, may be on its way, and does
    /// not count.
    Stopped,
}

/// A task of a host.
#[derive(Debug)]
pub(super) struct Run {
    /// Task that waits to be given to the host.
    pub(super) task: Option<Task>,
    /// True if it is a load: another command waits for nobody, and has no figures.
    is_load: bool,
    /// The schema of the document that it gives.
    pub(super) schema: String,
    pub(super) turn: Turn,
    /// When all started first, by the controller's clock.
    pub(super) started_at: Option<Nanos>,
    /// When it was given, or told to start last.
    pub(super) told_at: Nanos,
    /// When it has last come further: it was given or told to start, or its figures went on.
    pub(super) moved_at: Nanos,
    /// Time that it runs from its start, as far as that is known.
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
    /// If it was not its turn to say that.
    pub(super) fn ready(&mut self) -> Result<(), String> {
        match self.turn {
            Turn::Preparing | Turn::Begun if self.is_load => self.turn = Turn::Ready,
            Turn::Stopped => {}
            _ => return Err(out_of_turn()),
        }
        Ok(())
    }

    /// Records that the task has begun, so much `late`; `latest` is the most that can have passed since it
    /// was to begin.
    ///
    /// # Errors
    /// As [`ready`](Self::ready), or if that cannot be true.
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

    /// Takes in what the task has measured until `now`.
    ///
    /// # Errors
    /// As [`ready`](Self::ready), or if they cannot be true.
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

    /// Returns the longest time that a load may run: by the clock that it goes by, which may be that of a
    /// simulated drive.
    fn longest(&self, end_within: Nanos) -> Nanos {
        self.expected.map_or(Nanos(COUNT_MAX), |expected| expected.saturating_add(end_within))
    }

    /// Takes in a piece of the result; whether it was the last.
    ///
    /// # Errors
    /// Why the host is to be given up.
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

/// Returns why a host is given up that says what it was not asked, or says it twice.
pub(super) fn out_of_turn() -> String {
    "its agent sent an answer that was not asked for".to_owned()
}

/// Returns true if figures can be added to those of others: no host has counted so much. The processor times
/// of workers stay there.
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
    // Discarded bytes are not moved, so the limit is for reads and writes only.
    let is_moved = |one: &Direction| one.bytes.0 <= most;
    directions.into_iter().all(direction)
        && [&outcome.read, &outcome.write].into_iter().all(is_moved)
        && verified
        && counts.into_iter().all(|count| count < COUNT_MAX)
        && outcome.worker_cpu.is_empty()
}
