//! Progress of a load on stderr: a line that is redrawn on a terminal, one line for each phase elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plumb_block::{Bytes, Nanos};
use plumb_load::Progress;
use plumb_trial::{Phase, TargetNow, Watcher};

/// How fine the bar counts: thousandths of the phase.
const STEPS: u64 = 1000;

/// Shows how far a load is, how fast, and how long it will still take.
pub(crate) struct Bar {
    bar: ProgressBar,
    redraws: bool,
    spans: usize,
    phase: String,
    expected: Option<Nanos>,
    /// Bytes that the phase moves, if it is measured in bytes.
    bytes: Option<Bytes>,
    /// When the phase began, and what had been done then.
    begun: Nanos,
    last: (Nanos, u64, u64),
}

impl Bar {
    /// A bar on stderr, if that is a terminal.
    pub(crate) fn on_stderr(spans: usize) -> Self {
        let redraws = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
            redraws,
            spans,
            phase: String::new(),
            expected: None,
            bytes: None,
            begun: Nanos::ZERO,
            last: (Nanos::ZERO, 0, 0),
        }
    }

    fn set(&self, done: f64, message: String) {
        self.bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_message(message);
    }
}

impl Watcher for Bar {
    fn phase(&mut self, span: usize, phase: &Phase, expected: Option<Nanos>) {
        let name = match phase {
            Phase::LayingOut { path, size } => format!("laying out {path}, {size}"),
            Phase::Preconditioning => "preconditioning".to_owned(),
            Phase::WarmingUp => "warming up".to_owned(),
            Phase::Measuring => "measuring".to_owned(),
            Phase::CoolingDown => "cooling down".to_owned(),
            Phase::Verifying => "reading back".to_owned(),
        };
        self.phase =
            if self.spans > 1 { format!("span {} of {}: {name}", span + 1, self.spans) } else { name };
        self.expected = expected;
        self.begun = self.last.0;
        self.bytes = match phase {
            Phase::LayingOut { size, .. } => Some(*size),
            _ => None,
        };
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
            format!(", {:.0} s left", expected.since(elapsed).as_secs_f64().ceil())
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
