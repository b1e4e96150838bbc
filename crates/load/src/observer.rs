//! Events of a run, and the trait of their observers.

use std::cell::Cell;

use plumb_block::{Bytes, Nanos, StorageSnapshot};
use plumb_workload::Scenario;

use crate::progress::{Progress, Totals};
use crate::span::SpanResult;
use crate::team::TeamOutcome;

/// Part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Filling of a new file.
    LayingOut {
        /// Path of the file.
        path: String,
        /// Bytes to write.
        size: Bytes,
    },
    /// Sequential write of the targets before the measurement.
    Preconditioning,
    /// Read of files into the page cache before the measurement.
    LoadingPageCache,
    /// Load before the measurement.
    WarmingUp,
    /// Measurement.
    Measuring,
    /// Load after the measurement.
    CoolingDown,
    /// Read of the written data.
    Verifying,
}

/// Progress of one target of a span, of the application and the storage side.
#[derive(Debug, Clone)]
pub struct TargetNow {
    /// Name as typed.
    pub name: String,
    /// Totals of its workers since the start, with the warm-up.
    pub application: Totals,
    /// Counters of the devices below since the machine started; `None` if unknown.
    pub storage: Option<StorageSnapshot>,
    /// True if other targets of the span share these counters.
    pub shares_devices: bool,
}

/// Event of a run. A question has a cell to which an observer can write its answer; an answer is optional.
///
/// [`run_teams`](crate::run_teams) sends `Ready` to `WindowEnds`, `Progress` without targets, and the figures
/// of teams. The code that runs a scenario sends the others, and of these the ones about the whole run.
pub enum Event<'a> {
    /// The scenario is known.
    Scenario(&'a Scenario),
    /// One of many scheduled spans begins. Its facts replace those of the span before.
    Scheduled {
        /// Lines with its name and the results of earlier spans.
        lines: &'a [String],
        /// Share of all work done before it, from 0 to 1, if known.
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
    /// Message for the user.
    Note(&'a str),
    /// Question whether latencies are wanted during the run. They cost a little.
    WantsLatency(&'a Cell<bool>),
    /// Question when the teams, which are all ready, start. The cell holds the current time by the clock of
    /// the run; the answer is that time or a later one. Several hosts wait for one another here.
    Ready {
        /// Time at which the teams start.
        start: &'a Cell<Nanos>,
        /// True if the clock of the run is a simulated one.
        is_virtual: bool,
    },
    /// All teams have begun. `late` is the delay of the last one. Not sent in virtual time.
    Begun {
        /// Delay of the last team to begin.
        late: Nanos,
    },
    /// The measurement begins now: the moment to read the counters of the storage side.
    WindowBegins {
        /// Time from the start to now.
        warmup: Nanos,
        /// False if the rate had to settle first and did not.
        settled: bool,
    },
    /// The measurement ends now.
    WindowEnds,
    /// A tenth of a second of the run is over, by its own clock: time series are sampled here.
    Sample(&'a Progress),
    /// Progress, about ten times a second of real time, and once at the end.
    Progress {
        /// Totals of the workers.
        progress: &'a Progress,
        /// Returns the progress of each target of the span; reads counters.
        targets: &'a dyn Fn() -> Vec<TargetNow>,
    },
    /// Question before each progress event whether the measurements so far are wanted. Each worker then
    /// copies its figures.
    WantsFigures(&'a Cell<bool>),
    /// Figures of each team so far, as if the run had been stopped: soon after the request, without ledgers
    /// and processor times. The first observer that takes them removes them.
    TeamFigures(&'a Cell<Vec<TeamOutcome>>),
    /// Figures of the current round so far, soon after the request.
    Figures(&'a SpanResult),
    /// End of the events.
    Over,
}

/// Observer of a run, called on the thread that runs it.
pub trait Observer {
    /// Handles an event; an observer ignores those that it does not need.
    fn on(&mut self, event: &Event<'_>);
}

/// Observer that ignores all events.
impl Observer for () {
    fn on(&mut self, _event: &Event<'_>) {}
}

impl<F: FnMut(&Event<'_>)> Observer for F {
    fn on(&mut self, event: &Event<'_>) {
        self(event);
    }
}

impl dyn Observer + '_ {
    /// Asks whether latencies are wanted during the run; the default is no.
    pub fn wants_latency(&mut self) -> bool {
        let answer = Cell::new(false);
        self.on(&Event::WantsLatency(&answer));
        answer.get()
    }

    /// Asks whether all figures so far are wanted; the default is no.
    pub fn wants_figures(&mut self) -> bool {
        let answer = Cell::new(false);
        self.on(&Event::WantsFigures(&answer));
        answer.get()
    }

    /// Asks for the start time of teams that are ready `now`.
    pub fn start_at(&mut self, now: Nanos, is_virtual: bool) -> Nanos {
        let start = Cell::new(now);
        self.on(&Event::Ready { start: &start, is_virtual });
        start.get()
    }

    /// Sends a message to the user.
    pub fn note(&mut self, line: &str) {
        self.on(&Event::Note(line));
    }

    /// Announces a phase of a span.
    pub fn phase(&mut self, span: usize, phase: &Phase, expected: Option<Nanos>) {
        self.on(&Event::Phase { span, phase, expected });
    }
}
