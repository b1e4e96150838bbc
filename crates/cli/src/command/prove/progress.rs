//! Progress of a proof on stderr.

use plumb_prove::proof::ExploreProgress;
use plumb_report::progress::Bar;

/// Progress display, with the remaining time of a step if it is known.
pub(super) struct ProofProgress {
    bar: Bar,
    doing: String,
}

impl ProofProgress {
    pub(super) const fn new(bar: Bar) -> Self {
        Self { bar, doing: String::new() }
    }

    pub(super) fn show(&mut self, doing: &str, done: Option<ExploreProgress>) {
        if self.doing != doing {
            self.doing = doing.to_owned();
            self.bar.doing(doing);
        }
        let Some(ExploreProgress { progress, of, elapsed, left: Some(left) }) = done else { return };
        let share = elapsed.as_secs_f64() / (elapsed + left).as_secs_f64().max(1e-9);
        let left = left.as_secs_f64().ceil();
        let (distinct, failing) = (progress.distinct, progress.failing);
        self.bar.set(share, &format!("{doing}: {distinct} of {of} states, {failing} fail, {left:.0} s left"));
    }

    pub(super) fn end(&self) {
        self.bar.finish();
    }
}
