//! Who watches a trial: the progress line, the live view.

use plumb_block::{Bytes, Nanos, StorageSnapshot, Time};
use plumb_load::{Progress, SpanResult, Totals};
use plumb_workload::Scenario;

/// What a trial is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Filling a file that was made.
    LayingOut {
        /// Which.
        path: String,
        /// How much is to be written.
        size: Bytes,
    },
    /// Writing targets from end to end before they are measured.
    Preconditioning,
    /// Reading files into the page cache before they are measured.
    LoadingPageCache,
    /// Running, before it is measured.
    WarmingUp,
    /// Measuring.
    Measuring,
    /// Running on after it was measured.
    CoolingDown,
    /// Reading back what was written.
    Verifying,
}

/// What one target of the span has done until now, on both sides.
#[derive(Debug, Clone)]
pub struct TargetNow {
    /// As typed.
    pub name: String,
    /// What the workers saw since the start, warm-up included.
    pub application: Totals,
    /// The counters beneath it since the machine started; `None` where they are not known.
    pub storage: Option<StorageSnapshot>,
    /// Whether these counters are of other targets of the span as well.
    pub shares_devices: bool,
}

/// Watches. What one does not care for it leaves out.
pub trait Watcher {
    /// What will be run is known.
    fn begins(&mut self, _scenario: &Scenario) {}

    /// A phase begins, of the span with this number; `expected` is how long it takes, if that is known.
    fn phase(&mut self, _span: usize, _phase: &Phase, _expected: Option<Nanos>) {}

    /// So much of a file is laid out, or read back.
    fn bytes(&mut self, _done: Bytes) {}

    /// About ten times a second while a span runs. `targets` looks at each target of the span.
    fn progress(&mut self, _progress: &Progress, _targets: &dyn Fn() -> Vec<TargetNow>) {}

    /// Which of many turns begins, and what is known before it, in place of what was known before the last; and how much of all is done, from
    /// 0 to 1.
    fn standing(&mut self, _lines: &[String], _done: Option<f64>) {}

    /// Something that the user should know now.
    fn note(&mut self, _line: &str) {}

    /// Nothing more comes.
    fn end(self: Box<Self>) {}

    /// Whether latencies are wanted while it runs: they cost a little.
    fn wants_latency(&self) -> bool {
        false
    }

    /// The workers of a span, or of a round of it, are ready, and it is `now` by `time`: when they start, now or later. Here
    /// several hosts wait for one another.
    fn start_at(&mut self, now: Nanos, _time: &Time) -> Nanos {
        now
    }

    /// They have all begun, the last of them so much later than [`start_at`](Self::start_at) said. Not in virtual time.
    fn begun(&mut self, _late: Nanos) {}

    /// Asked about ten times a second while it is measured: whether all that was measured until now is wanted.
    fn wants_figures(&mut self) -> bool {
        false
    }

    /// What the round that runs has measured until now, soon after it was wanted.
    fn figures(&mut self, _result: &SpanResult) {}
}
