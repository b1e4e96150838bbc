//! Progress of a run on stderr: a line that is redrawn on a terminal, a line for the phase elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plumb_block::{Bytes, Clock as _, Nanos, RealClock};
use plumb_load::{Event, Observer, Phase, Progress};
use plumb_text::printable;
use plumb_workload::{Job, Scenario};

use super::lines::ProgressLines;
use crate::streams;

/// Resolution of the bar: thousandths of the phase.
const STEPS: u64 = 1000;

/// Shows the progress of a run, its rate, and the remaining time.
pub struct Bar {
    bar: ProgressBar,
    /// Lines used if stderr is not a terminal.
    lines: Option<ProgressLines>,
    /// Names and durations of the spans, as far as known.
    spans: Vec<(String, Nanos)>,
    phase: String,
    expected: Option<Nanos>,
    /// Duration of everything after the phase.
    after: Nanos,
    /// Current turn, if there are many.
    turns: Option<Turns>,
    /// Total bytes of a phase that is measured in bytes, and its start.
    bytes: Option<(Bytes, RealClock)>,
    /// Start of the phase.
    begun: Nanos,
    /// Time of the last update, with the operations and flushes up to it.
    last: (Nanos, u64, u64),
}

/// Current turn of many.
struct Turns {
    /// Start of the first turn.
    since: RealClock,
    which: String,
    /// Share of the total that earlier turns have completed, if known.
    done: Option<f64>,
}

impl Bar {
    /// Creates a bar on stderr, if that is a terminal.
    pub fn on_stderr() -> Self {
        Self {
            bar: redrawn(STEPS, "{bar:24} {percent:>3}%  {msg}"),
            lines: (!std::io::stderr().is_terminal()).then(ProgressLines::from_environment),
            spans: Vec::new(),
            phase: String::new(),
            expected: None,
            after: Nanos::ZERO,
            turns: None,
            bytes: None,
            begun: Nanos::ZERO,
            last: (Nanos::ZERO, 0, 0),
        }
    }

    /// Returns the remaining time of the run after `elapsed` of the phase, as far as known.
    fn left(&self, elapsed: Nanos) -> Nanos {
        self.expected.unwrap_or_default().since(elapsed) + self.after
    }

    /// Describes the current action; with many turns also the number of the turn and the total remaining
    /// time.
    fn in_its_turn(&self, doing: &str) -> String {
        let Some(Turns { since, which, done }) = &self.turns else { return doing.to_owned() };
        let left = done.map(|done| left(*since, done, "at most ")).unwrap_or_default();
        format!("{which}{left}: {doing}")
    }

    /// Shows an action other than a run.
    pub fn doing(&mut self, name: &str) {
        if let Some(lines) = &mut self.lines {
            lines.say(name);
        }
        self.set(0.0, name);
    }

    /// Prints a line above the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| streams::say(line));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows that the share `done` of the current work is complete.
    pub fn set(&mut self, done: f64, message: &str) {
        if let Some(lines) = &mut self.lines {
            lines.look();
        }
        self.bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_message(printable(message));
    }
}

/// Creates a line on stderr that is redrawn, if that is a terminal.
pub(super) fn redrawn(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Returns the estimated remaining time in words, such as `, 5 s left`, of work that has completed `share`
/// `since` its start; empty before that. `bound` precedes the time.
pub(super) fn left(since: RealClock, share: f64, bound: &str) -> String {
    if !(0.0 < share && share < 1.0) {
        return String::new();
    }
    let left = since.now().as_secs_f64() * (1.0 / share - 1.0);
    format!(", {bound}{} left", Nanos::from_secs_f64(left.ceil()))
}

impl Observer for Bar {
    fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::Scenario(scenario) => self.begins(scenario),
            Event::Phase { span, phase, expected } => self.phase(*span, phase, *expected),
            Event::Bytes(done) => self.bytes(*done),
            Event::Progress { progress, .. } => self.progress(progress),
            Event::Scheduled { lines, done } => self.scheduled(lines, *done),
            Event::Note(line) => self.bar.suspend(|| streams::say(&format!("plumb: {line}"))),
            Event::Over => self.finish(),
            _ => {}
        }
    }
}

impl Bar {
    fn begins(&mut self, scenario: &Scenario) {
        let length = |job: &Job| job.workload.stop.duration.unwrap_or(Nanos::ZERO);
        let first_jobs = scenario.spans.iter().filter_map(|span| span.jobs.first());
        self.spans = first_jobs.map(|job| (job.name.clone(), length(job))).collect();
    }

    /// Begins a phase of a span; `expected` is its length if known.
    pub fn phase(&mut self, span: usize, phase: &Phase, expected: Option<Nanos>) {
        self.bytes = None;
        let (is_measured, name) = match phase {
            Phase::LayingOut { path, size } => {
                self.bytes = Some((*size, RealClock::start()));
                (false, format!("prepare: laying out {path}, {size}"))
            }
            Phase::Preconditioning => (false, "preconditioning".to_owned()),
            Phase::LoadingPageCache => (false, "reading into the page cache".to_owned()),
            Phase::WarmingUp => (false, "warming up".to_owned()),
            Phase::Measuring => (true, "measuring".to_owned()),
            Phase::CoolingDown => (true, "cooling down".to_owned()),
            Phase::Verifying => (true, "reading back".to_owned()),
        };
        self.expected = expected;
        self.begun = self.last.0;
        self.after = self.spans.iter().skip(span + usize::from(is_measured)).map(|(_, time)| *time).sum();
        self.phase = match (&self.spans[..], self.bytes) {
            ([_, _, ..], None) => {
                format!("{} ({} of {}): {name}", self.spans[span].0, span + 1, self.spans.len())
            }
            _ => name,
        };
        let left = Some(self.left(Nanos::ZERO)).filter(|left| *left > Nanos::ZERO && self.turns.is_none());
        let left = left.map(|left| format!(" ({left} left)")).unwrap_or_default();
        let line = format!("{}{left}", self.in_its_turn(&self.phase));
        if let Some(lines) = &mut self.lines {
            lines.say(&line);
        }
    }

    /// Shows the bytes of the phase that are complete.
    pub fn bytes(&mut self, done: Bytes) {
        let share = self.bytes.map_or(0.0, |(all, _)| done.0 as f64 / all.0.max(1) as f64);
        let left = self.bytes.map(|(_, since)| left(since, share, "")).unwrap_or_default();
        self.set(share, &format!("{}: {done}{left}", self.phase));
    }

    fn progress(&mut self, progress: &Progress) {
        let (then, operations, flushes) = self.last;
        let seconds = progress.elapsed.since(then).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        self.last = (progress.elapsed, progress.total.operations(), progress.total.flushes);
        let iops = self.last.1.saturating_sub(operations) as f64 / seconds;
        let syncs = self.last.2.saturating_sub(flushes) as f64 / seconds;
        let elapsed = progress.elapsed.since(self.begun);
        let share = self.expected.map_or(0.0, |time| elapsed.as_secs_f64() / time.as_secs_f64().max(1e-9));
        let flushing = if syncs > 0.0 { format!(", {syncs:.0} flushes/s") } else { String::new() };
        let left = self.left(elapsed).as_secs_f64().ceil();
        let left =
            if left > 0.0 && self.turns.is_none() { format!(", {left:.0} s left") } else { String::new() };
        let share = self.turns.as_ref().and_then(|turns| turns.done).unwrap_or(share);
        let rate = format!("{}: {iops:.0} IOPS{flushing}{left}", self.phase);
        self.set(share, &self.in_its_turn(&rate));
    }

    fn scheduled(&mut self, lines: &[String], done: Option<f64>) {
        // Counts of each turn start at zero.
        self.last = (Nanos::ZERO, 0, 0);
        let Some(which) = lines.first() else { return };
        // The estimate starts over with another workload.
        let goes_on = self.turns.as_ref().filter(|before| before.done <= done);
        let since = goes_on.map_or_else(RealClock::start, |before| before.since);
        self.turns = Some(Turns { since, which: which.clone(), done });
    }
}
