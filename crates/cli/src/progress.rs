//! Progress on stderr: a line that is redrawn on a terminal, one line for each phase elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plumb_block::Nanos;
use plumb_check::Progress;

/// How fine the bar counts: thousandths of the whole.
const STEPS: u64 = 1000;

/// Shows how far a check is and how long it will still take.
pub(crate) struct Bar {
    bar: ProgressBar,
    redraws: bool,
}

impl Bar {
    /// A bar on stderr, if that is a terminal.
    pub(crate) fn on_stderr() -> Self {
        let redraws = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, redraws }
    }
}

impl Progress for Bar {
    fn at(&mut self, phase: &str, done: f64, left: Nanos) {
        let seconds = left.as_secs_f64().ceil();
        self.bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_message(format!("{phase}, {seconds:.0} s left"));
    }

    fn begin(&mut self, phase: &str, left: Nanos) {
        if !self.redraws {
            crate::terminal::say(&format!("plumb: {phase} ({:.0} s left)", left.as_secs_f64().ceil()));
        }
    }

    fn note(&mut self, line: &str) {
        self.bar.suspend(|| crate::terminal::say(&format!("plumb: {line}")));
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
