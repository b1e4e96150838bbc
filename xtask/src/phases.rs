//! Durations of the steps of a task, printed at its end.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Steps in the order of their ends, each with its duration.
#[derive(Debug, Default)]
pub(crate) struct Phases(Vec<(String, Duration)>);

impl Phases {
    /// Runs a step and records its duration.
    pub(crate) fn time<T>(&mut self, name: &str, step: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = step();
        self.add(name, began.elapsed());
        done
    }

    /// Records the duration of a step, or of a part of one.
    pub(crate) fn add(&mut self, name: impl Into<String>, taken: Duration) {
        self.0.push((name.into(), taken));
    }

    /// Returns the durations, one per line.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for (name, taken) in &self.0 {
            // Writing to a string does not fail.
            writeln!(text, "{:8.1} s  {name}", taken.as_secs_f64()).ok();
        }
        text
    }
}
