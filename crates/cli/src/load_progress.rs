//! Progress of a run on stderr: a line that is redrawn on a terminal, one line for each phase elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plumb_block::{Bytes, Nanos};
use plumb_load::Progress;
use plumb_trial::{Phase, TargetNow, Watcher};
use plumb_workload::Scenario;

/// How fine the bar counts: thousandths of the phase.
const STEPS: u64 = 1000;

/// Shows how far a load is, how fast, and how long it will still take.
pub(crate) struct Bar {
    bar: ProgressBar,
    redraws: bool,
    /// The spans: their names, and how long they take, as far as that is known.
    spans: Vec<(String, Nanos)>,
    /// Of a check, whose spans have names that are known, how long all of it takes.
    whole: Option<Nanos>,
    phase: String,
    expected: Option<Nanos>,
    /// What of a check comes after the phase.
    after: Nanos,
    /// Bytes that the phase moves, if it is measured in bytes.
    bytes: Option<Bytes>,
    /// When the phase began, and what had been done then.
    begun: Nanos,
    last: (Nanos, u64, u64),
}

impl Bar {
    /// A bar on stderr, if that is a terminal.
    pub(crate) fn on_stderr() -> Self {
        let redraws = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
            redraws,
            spans: Vec::new(),
            whole: None,
            phase: String::new(),
            expected: None,
            after: Nanos::ZERO,
            bytes: None,
            begun: Nanos::ZERO,
            last: (Nanos::ZERO, 0, 0),
        }
    }

    /// The bar of a check that takes so long.
    pub(crate) fn of_check(length: Nanos) -> Self {
        Self { whole: Some(length), ..Self::on_stderr() }
    }

    /// Shows that a part of a check begins, and how much is left of the whole.
    fn part(&mut self, span: usize, phase: &Phase, whole: Nanos) {
        let name = match phase {
            Phase::LayingOut { .. } => "prepare",
            _ => self.spans.get(span).map_or("", |(name, _)| name),
        };
        let is_new = self.phase != name;
        self.phase = name.to_owned();
        let following: Nanos = self.spans.iter().skip(span + 1).map(|(_, time)| *time).sum();
        let left = match phase {
            Phase::LayingOut { .. } => whole,
            _ => following + self.spans.get(span).map_or(Nanos::ZERO, |(_, time)| *time),
        };
        self.after = following;
        if !self.redraws && is_new {
            crate::terminal::say(&format!("plumb: {name} ({:.0} s left)", left.as_secs_f64().ceil()));
        }
    }

    fn set(&self, done: f64, message: String) {
        self.bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_message(message);
    }
}

impl Watcher for Bar {
    fn begins(&mut self, scenario: &Scenario) {
        let length = |job: &plumb_workload::Job| job.workload.stop.duration.unwrap_or(Nanos::ZERO);
        let spans = scenario.spans.iter();
        self.spans =
            spans.filter_map(|span| span.jobs.first()).map(|job| (job.name.clone(), length(job))).collect();
    }

    fn phase(&mut self, span: usize, phase: &Phase, expected: Option<Nanos>) {
        self.expected = expected;
        self.begun = self.last.0;
        self.bytes = match phase {
            Phase::LayingOut { size, .. } => Some(*size),
            _ => None,
        };
        if let Some(whole) = self.whole {
            return self.part(span, phase, whole);
        }
        let name = match phase {
            Phase::LayingOut { path, size } => format!("laying out {path}, {size}"),
            Phase::Preconditioning => "preconditioning".to_owned(),
            Phase::LoadingPageCache => "reading into the page cache".to_owned(),
            Phase::WarmingUp => "warming up".to_owned(),
            Phase::Measuring => "measuring".to_owned(),
            Phase::CoolingDown => "cooling down".to_owned(),
            Phase::Verifying => "reading back".to_owned(),
        };
        let spans = self.spans.len();
        self.phase = if spans > 1 { format!("span {} of {spans}: {name}", span + 1) } else { name };
        if !self.redraws {
            let left = expected.map_or_else(String::new, |time| format!(" ({time})"));
            crate::terminal::say(&format!("plumb: {}{left}", self.phase));
        }
    }

    fn bytes(&mut self, done: Bytes) {
        let share = self.bytes.map_or(0.0, |all| done.0 as f64 / all.0.max(1) as f64);
        self.set(share, format!("{}: {done}", self.phase));
    }

    fn progress(&mut self, progress: &Progress, _targets: &dyn Fn() -> Vec<TargetNow>) {
        let (then, operations, flushes) = self.last;
        let now = progress.elapsed;
        let seconds = now.since(then).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        self.last = (now, progress.total.operations(), progress.total.flushes);
        let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / seconds;
        let iops = rate(self.last.1, operations);
        let syncs = rate(self.last.2, flushes);
        let elapsed = now.since(self.begun);
        let left = self.expected.map_or_else(String::new, |expected| {
            format!(", {:.0} s left", (expected.since(elapsed) + self.after).as_secs_f64().ceil())
        });
        let share = self.expected.map_or(0.0, |time| elapsed.as_secs_f64() / time.as_secs_f64().max(1e-9));
        let flushing = if syncs > 0.0 { format!(", {syncs:.0} flushes/s") } else { String::new() };
        self.set(share, format!("{}: {iops:.0} IOPS{flushing}{left}", self.phase));
    }

    fn note(&mut self, line: &str) {
        self.bar.suspend(|| crate::terminal::say(&format!("plumb: {line}")));
    }

    fn end(self: Box<Self>) {
        self.bar.finish_and_clear();
    }
}
