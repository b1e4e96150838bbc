//! Who looks on while a load runs.

use plumb_block::Nanos;

use crate::progress::Progress;
use crate::runner::TeamOutcome;

/// Looks on, from the thread that called [`run_teams`](crate::run_teams). What one does not care for it leaves out.
pub trait Observer {
    /// All teams are ready, and it is `now` by the clock of the run: when they start, now or later. The place for a barrier
    /// with other hosts.
    fn start_at(&mut self, now: Nanos) -> Nanos {
        now
    }

    /// All teams have begun, the last of them so much later than they were told to. Not in virtual time, where none is late.
    fn begun(&mut self, _late: Nanos) {}

    /// About ten times a second, and once at the end.
    fn look(&mut self, _progress: &Progress) {}

    /// A tenth of a second of the run is over, by its own clock: what is kept over time is taken here.
    fn sample(&mut self, _progress: &Progress) {}

    /// Measuring begins now: the moment to read the counters of the storage side. `warmup` is how long it took to get
    /// here; `settled` is false if the rate was to settle first and has not.
    fn window_begins(&mut self, _warmup: Nanos, _settled: bool) {}

    /// Measuring ends now.
    fn window_ends(&mut self) {}

    /// Asked before each [`look`](Self::look): whether what was measured until now is wanted. It costs each worker a copy
    /// of its figures, between two steps.
    fn wants_figures(&mut self) -> bool {
        false
    }

    /// What each team has measured until now, as if the run had been stopped: soon after it was wanted, without ledgers
    /// and processor times.
    fn figures(&mut self, _teams: Vec<TeamOutcome>) {}
}

/// Nobody looks.
impl Observer for () {}
