//! The task of a host, and what it answers: bounded, and checked before it is believed.

use plumb_block::Nanos;
use plumb_load::{Direction, LoadOutcome};
use plumb_report::RunDocument;

use crate::message::{Task, TaskResult};

/// The longest result.
const RESULT_MAX: usize = 16 << 20;
/// Counts of one host stay below this, so that those of all hosts can be added.
const MOST: u64 = 1 << 53;
/// So many ways to fail are told apart.
const FAILURES_MAX: usize = 200;

/// A task of a host.
#[derive(Debug)]
pub(super) struct Run {
    /// Until it is given.
    pub(super) task: Option<Task>,
    /// It waits for the others.
    pub(super) ready: bool,
    pub(super) started: bool,
    /// When all started first, by the controller's clock.
    pub(super) started_at: Option<Nanos>,
    pub(super) late: Option<Nanos>,
    pub(super) figures: Option<LoadOutcome>,
    parts: String,
    pub(super) result: Option<TaskResult>,
}

impl Run {
    pub(super) fn new(task: Task) -> Self {
        Self {
            task: Some(task),
            ready: false,
            started: false,
            started_at: None,
            late: None,
            figures: None,
            parts: String::new(),
            result: None,
        }
    }

    /// Takes in a piece of the result; whether it was the last.
    ///
    /// # Errors
    /// Why the host is to be given up.
    pub(super) fn add_part(&mut self, text: &str, is_last: bool) -> Result<bool, String> {
        if self.parts.len() + text.len() > RESULT_MAX {
            return Err(format!("its result is larger than {} MiB", RESULT_MAX >> 20));
        }
        self.parts.push_str(text);
        if !is_last {
            return Ok(false);
        }
        let parts = std::mem::take(&mut self.parts);
        let result: TaskResult =
            serde_json::from_str(&parts).map_err(|error| format!("its result cannot be read: {error}"))?;
        if result.outcome.as_ref().is_some_and(|outcome| !is_plausible(outcome)) {
            return Err("its result has figures that cannot be true".to_owned());
        }
        self.figures = None;
        self.result = Some(result);
        Ok(true)
    }

    pub(super) fn forget_parts(&mut self) {
        self.parts = String::new();
    }
}

impl TaskResult {
    /// Its document as that of a run; `None` if it is none.
    pub fn run_document(&self) -> Option<RunDocument> {
        RunDocument::from_json(self.document.as_deref()?).ok()
    }
}

/// Whether figures can be added to those of others: no host has counted so much. The processor times of workers stay there.
pub(super) fn is_plausible(outcome: &LoadOutcome) -> bool {
    let direction = |one: &Direction| {
        one.bytes.0 < MOST
            && one.errors.len() < FAILURES_MAX
            && one.errors.iter().all(|(_, count)| *count < MOST)
    };
    let directions = [&outcome.read, &outcome.write, &outcome.trim, &outcome.flush];
    let verified = outcome.verified.as_ref().is_none_or(|found| {
        let counts = [found.blocks, found.wrong(), found.at_risk, found.older, found.unreached];
        counts.into_iter().all(|count| count < MOST)
    });
    let counts = [
        outcome.in_flight_max,
        outcome.latencies_late,
        outcome.late_starts,
        outcome.unstarted,
        outcome.length.0,
    ];
    directions.into_iter().all(direction)
        && verified
        && counts.into_iter().all(|count| count < MOST)
        && outcome.worker_cpu.is_empty()
}
