//! Requirements of a job on its span: warm-up, steady state, latency target.

use plumb_block::Nanos;
use plumb_workload::{LatencyTarget, Span, Steady, Warmup};

use crate::Error;
use crate::fio::options::Options;

/// Number of rounds of a steady state (SNIA PTS 2.0.2).
const ROUNDS: u64 = 5;

/// Requirements of a job on its span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Window {
    /// Length of the warm-up.
    pub(super) warmup: Nanos,
    /// Maximum number of rounds until the rate is steady, and the length of a round.
    pub(super) steady: Option<(Steady, Nanos)>,
    /// Latency target of the search for a depth.
    pub(super) latency_target: Option<LatencyTarget>,
    /// Duration of the trial of each depth, if given.
    pub(super) latency_window: Option<Nanos>,
}

impl Window {
    /// Returns the length of a round, if the job runs in rounds.
    pub(super) fn round(&self) -> Option<Nanos> {
        self.steady.map(|(_, round)| round).or(self.latency_window)
    }

    /// Returns true if the job runs in rounds.
    pub(super) fn has_rounds(&self) -> bool {
        self.steady.is_some() || self.latency_target.is_some()
    }

    /// Sets the requirements on the span.
    pub(super) fn put_into(&self, span: &mut Span) {
        span.warmup = Warmup::For(self.warmup);
        span.steady = self.steady.map(|(steady, _)| steady);
        span.latency_target = self.latency_target;
    }
}

/// Returns the requirements.
pub(super) fn from_options(options: &Options<'_>) -> Result<Window, Error> {
    let ramp = options.time("ramp_time", Nanos::secs(1))?.unwrap_or_default();
    let steady = steady(options)?;
    let steady_ramp = options.time("steadystate_ramp_time", Nanos::secs(1))?.unwrap_or_default();
    let latency_target = latency_target(options)?;
    let latency_window = options.time("latency_window", Nanos::micros(1))?;
    let latency_window = latency_window.filter(|window| latency_target.is_some() && *window > Nanos::ZERO);
    let warmup = if steady.is_some() { ramp.saturating_add(steady_ramp) } else { ramp };
    Ok(Window { warmup, steady, latency_target, latency_window })
}

/// Converts fio's window to the five rounds of a steady state.
fn steady(options: &Options<'_>) -> Result<Option<(Steady, Nanos)>, Error> {
    let duration = options.time("steadystate_duration", Nanos::secs(1))?.unwrap_or_default();
    let Some(criterion) = options.text("steadystate")? else {
        options.note_unused(
            &["steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval"],
            "no steadystate is given",
        );
        return Ok(None);
    };
    let kind = criterion.split(':').next().unwrap_or_default();
    if !["iops", "iops_slope", "bw", "bw_slope"].contains(&kind) {
        let problem = format!("is {criterion}: expected iops, iops_slope, bw or bw_slope, and a limit");
        return Err(options.error("steadystate", problem));
    }
    let runtime = options.time("runtime", Nanos::secs(1))?.unwrap_or_default();
    if duration == Nanos::ZERO || runtime == Nanos::ZERO {
        return options.refuse(
            "steadystate",
            "needs a window to judge and a time after which to give up",
            "give ss_dur and runtime with time_based",
        );
    }
    let round = Nanos(duration.0.div_ceil(ROUNDS));
    let rounds = (runtime.0 / round.0).clamp(ROUNDS, u64::from(u32::MAX)) as u32;
    options.note(format!(
        "steadystate={criterion}: judged by SNIA PTS 2.0.2 instead, over five rounds of {round}: all within 20 % of \
         their mean, and the fitted line within 10 %"
    ));
    Ok(Some((Steady { rounds_max: rounds }, round)))
}

fn latency_target(options: &Options<'_>) -> Result<Option<LatencyTarget>, Error> {
    let latency = options.time("latency_target", Nanos::micros(1))?.filter(|latency| *latency > Nanos::ZERO);
    let percentile = options.decimal("latency_percentile")?.unwrap_or(100.0);
    let keeps_running = options.truth("latency_run", false)?;
    let Some(latency) = latency else {
        options.note_unused(
            &["latency_percentile", "latency_window", "latency_run"],
            "no latency_target is given",
        );
        return Ok(None);
    };
    if keeps_running {
        options.note("latency_run=1 has no effect: the run is over when the depth is found");
    }
    Ok(Some(LatencyTarget { latency, percentile }))
}
