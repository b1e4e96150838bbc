//! Progress of a run on stderr: a line that is redrawn on a terminal, a line for the phase elsewhere.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plumb_block::{Bytes, Nanos};
use plumb_load::{Event, Observer, Phase, Progress};
use plumb_workload::{Job, Scenario};

use plumb_report::printable::printable;

use crate::progress_lines::ProgressLines;
use crate::terminal;

/// How fine the bar counts: thousandths of the phase.
const STEPS: u64 = 1000;

/// Shows how far a run is, how fast, and how long it will still take.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Lines in its place where stderr is not a terminal.
    lines: Option<ProgressLines>,
    /// The spans: their names, and how long they take, as far as that is known.
    spans: Vec<(String, Nanos)>,
    phase: String,
    expected: Option<Nanos>,
    /// How long what comes after the phase takes.
    after: Nanos,
    /// Turn that runs, if there are many.
    turns: Option<Turns>,
    /// Bytes that the phase moves, if it is measured in bytes; and since when.
    bytes: Option<(Bytes, Instant)>,
    /// When the phase began.
    begun: Nanos,
    /// The last look: when, and the operations and flushes until then.
    last: (Nanos, u64, u64),
}

/// Turn that runs, of many.
struct Turns {
    /// When the first of them began.
    since: Instant,
    which: String,
    /// How much of all was done before it, if that is known.
    done: Option<f64>,
}

impl Bar {
    /// Creates a bar on stderr, if that is a terminal.
    pub(crate) fn on_stderr() -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
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

    /// Returns how long the run still takes after so much of the phase, as far as that is known.
    fn left(&self, elapsed: Nanos) -> Nanos {
        self.expected.unwrap_or_default().since(elapsed) + self.after
    }

    /// Describes what is done now, and if there are many turns, which it is and how long all of them still
    /// take.
    fn in_its_turn(&self, doing: &str) -> String {
        let Some(Turns { since, which, done }) = &self.turns else { return doing.to_owned() };
        let left = done.and_then(|done| left(*since, done));
        let left = left.map(|left| format!(", at most {left} left")).unwrap_or_default();
        format!("{which}{left}: {doing}")
    }

    /// Says that something else than a run is being done now.
    pub(crate) fn doing(&mut self, name: &str) {
        if let Some(lines) = &mut self.lines {
            lines.say(name);
        }
        self.set(0.0, name);
    }

    /// Says a line beside the bar, which stays below it.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| terminal::say(line));
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows that the share `done` of the current work is done.
    pub(crate) fn set(&mut self, done: f64, message: &str) {
        if let Some(lines) = &mut self.lines {
            lines.look();
        }
        self.bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_message(printable(message));
    }
}

/// Returns how long what has done this share of its work `since` then still takes, in whole seconds; `None`
/// before it can be told.
pub(crate) fn left(since: Instant, share: f64) -> Option<Nanos> {
    let left = since.elapsed().as_secs_f64() * (1.0 / share - 1.0);
    (0.0 < share && share < 1.0).then(|| Nanos::from_secs_f64(left.ceil()))
}

impl Observer for Bar {
    fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::Scenario(scenario) => self.begins(scenario),
            Event::Phase { span, phase, expected } => self.phase(*span, phase, *expected),
            Event::Bytes(done) => self.bytes(*done),
            Event::Progress { progress, .. } => self.progress(progress),
            Event::Scheduled { lines, done } => self.scheduled(lines, *done),
            Event::Note(line) => self.bar.suspend(|| terminal::say(&format!("plumb: {line}"))),
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

    pub(crate) fn phase(&mut self, span: usize, phase: &Phase, expected: Option<Nanos>) {
        self.bytes = None;
        let (is_measured, name) = match phase {
            Phase::LayingOut { path, size } => {
                self.bytes = Some((*size, Instant::now()));
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

    pub(crate) fn bytes(&mut self, done: Bytes) {
        let share = self.bytes.map_or(0.0, |(all, _)| done.0 as f64 / all.0.max(1) as f64);
        let left = self.bytes.and_then(|(_, since)| left(since, share));
        let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
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
        // Each turn counts anew.
        self.last = (Nanos::ZERO, 0, 0);
        let Some(which) = lines.first() else { return };
        // Under another workload it begins anew.
        let goes_on = self.turns.as_ref().filter(|before| before.done <= done);
        let since = goes_on.map_or_else(Instant::now, |before| before.since);
        self.turns = Some(Turns { since, which: which.clone(), done });
    }
}
