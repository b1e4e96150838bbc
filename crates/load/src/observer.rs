//! Events of a run, and who observes them.

use std::cell::Cell;

use plumb_block::{Bytes, Nanos, StorageSnapshot};
use plumb_workload::Scenario;

use crate::progress::{Progress, Totals};
use crate::span::SpanResult;
use crate::team::TeamOutcome;

/// Part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Filling a file that was made.
    LayingOut {
        /// Path of the file.
        path: String,
        /// Bytes to write.
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

/// Progress of one target of a span, on both sides.
#[derive(Debug, Clone)]
pub struct TargetNow {
    /// Name as typed.
    pub name: String,
    /// Totals of its workers since the start, warm-up included.
    pub application: Totals,
    /// Counters beneath it since the machine started; `None` where they are not known.
    pub storage: Option<StorageSnapshot>,
    /// True if other targets of the span share these counters.
    pub shares_devices: bool,
}

/// Event of a run. A question carries a cell that an observer writes its answer into; nobody has to.
///
/// [`run_teams`](crate::run_teams) tells of `Ready` to `WindowEnds`, `Progress` without targets, and the
/// figures of teams; whoever runs a scenario tells of the others, and of these as far as they concern the
/// whole run.
pub enum Event<'a> {
    /// The scenario is known.
    Scenario(&'a Scenario),
    /// One of many scheduled spans begins. What is known before it takes the place of what was known before
    /// the last.
    Scheduled {
        /// Lines that name it, and tell what earlier ones have shown.
        lines: &'a [String],
        /// Share of all that is done before it, from 0 to 1, if that is known.
        done: Option<f64>,
    },
    /// A phase begins.
    Phase {
        /// Number of the span in the scenario.
        span: usize,
        /// The phase.
        phase: &'a Phase,
        /// Length of the phase, if known.
        expected: Option<Nanos>,
    },
    /// Number of bytes laid out, or read back, since the phase began.
    Bytes(Bytes),
    /// Something that the user should know now.
    Note(&'a str),
    /// Question: whether latencies are wanted while it runs. They cost a little.
    WantsLatency(&'a Cell<bool>),
    /// Question: when the teams start, which are all ready. The cell holds the time now by the clock of the
    /// run; the answer is that time or a later one. Here several hosts wait for one another.
    Ready {
        /// Time at which the teams start.
        start: &'a Cell<Nanos>,
        /// True if the clock of the run is a simulated one.
        is_virtual: bool,
    },
    /// All teams have begun, the last of them so much later than they were told to. Not in virtual time.
    Begun {
        /// Delay of the last team to begin.
        late: Nanos,
    },
    /// Measuring begins now: the moment to read the counters of the storage side.
    WindowBegins {
        /// Time from the start to now.
        warmup: Nanos,
        /// False if the rate was to settle first and has not.
        settled: bool,
    },
    /// Measuring ends now.
    WindowEnds,
    /// A tenth of a second of the run is over, by its own clock: what is kept over time is taken here.
    Sample(&'a Progress),
    /// Progress, about ten times a second of real time, and once at the end.
    Progress {
        /// Totals of the workers.
        progress: &'a Progress,
        /// Looks at each target of the span; reads counters.
        targets: &'a dyn Fn() -> Vec<TargetNow>,
    },
    /// Question before each progress: whether what was measured until now is wanted. It costs each worker a
    /// copy of its figures.
    WantsFigures(&'a Cell<bool>),
    /// Figures of each team until now, as if the run had been stopped: soon after they were wanted, without
    /// ledgers and processor times. The first observer to take them has them.
    TeamFigures(&'a Cell<Vec<TeamOutcome>>),
    /// Figures of the round that runs until now, soon after they were wanted.
    Figures(&'a SpanResult),
    /// Nothing more comes.
    Over,
}

/// Observes a run, on the thread that runs it.
pub trait Observer {
    /// Takes an event; those that do not concern the observer it leaves out.
    fn on(&mut self, event: &Event<'_>);
}

/// Nobody observes.
impl Observer for () {
    fn on(&mut self, _event: &Event<'_>) {}
}

impl<F: FnMut(&Event<'_>)> Observer for F {
    fn on(&mut self, event: &Event<'_>) {
        self(event);
    }
}

impl dyn Observer + '_ {
    /// Asks whether latencies are wanted while the run goes; no answer is no.
    pub fn wants_latency(&mut self) -> bool {
        let answer = Cell::new(false);
        self.on(&Event::WantsLatency(&answer));
        answer.get()
    }

    /// Asks whether all figures until now are wanted; no answer is no.
    pub fn wants_figures(&mut self) -> bool {
        let answer = Cell::new(false);
        self.on(&Event::WantsFigures(&answer));
        answer.get()
    }

    /// Asks when teams start that are ready `now`.
    pub fn start_at(&mut self, now: Nanos, is_virtual: bool) -> Nanos {
        let start = Cell::new(now);
        self.on(&Event::Ready { start: &start, is_virtual });
        start.get()
    }

    /// Tells the user something.
    pub fn note(&mut self, line: &str) {
        self.on(&Event::Note(line));
    }

    /// Tells that a phase of a span begins.
    pub fn phase(&mut self, span: usize, phase: &Phase, expected: Option<Nanos>) {
        self.on(&Event::Phase { span, phase, expected });
    }
}
