//! Spans run more than once: preconditioned, repeated until they are steady, or to find a depth.

use plumb_block::Nanos;
use plumb_load::{Phase, SpanResult};
use plumb_measure::steadiness::snia_steady;
use plumb_workload::{
    Access, BlockSizes, ByteRange, Division, Durability, Job, LatencyTarget, Rate, Scenario, Span, Steady,
    Stop, Warmup, Workload,
};

use crate::error::TrialError;
use crate::request::ScheduledSpan;
use crate::span::SpanRunner;
use crate::span_run::{FinishedSpan, Round, SpanEnd, SpanRun, together};
use crate::teams::{PRECONDITION_BLOCK, Variation};

/// Number of rounds over which the rate must be steady (SNIA PTS 2.0.2).
const STEADY_ROUNDS: usize = 5;
/// Number of passes over the capacity while preconditioning.
const PRECONDITION_PASSES: u64 = 2;
/// Number of requests in flight while preconditioning.
const PRECONDITION_DEPTH: u32 = 32;
/// Maximum duration of each trial of a depth.
const PROBE: Nanos = Nanos::secs(2);

impl SpanRunner<'_> {
    /// Runs a span in the requested way.
    ///
    /// # Errors
    /// If it could not be started.
    pub(crate) fn run_span(
        &mut self,
        scheduled: &ScheduledSpan,
        scenario: &Scenario,
    ) -> Result<SpanRun, TrialError> {
        let number = scheduled.span;
        if scheduled.is_block {
            self.drain()?;
        }
        let mut span = self.set_page_cache(number, &scenario.spans[number])?;
        span.warmup = scheduled.warmup.map_or(span.warmup, Warmup::For);
        let span = &span;
        if span.precondition {
            let ran = self.precondition(number, span)?;
            if !matches!(ran.ended, SpanEnd::Complete) {
                return Ok(SpanRun::once(ran));
            }
        }
        if let Some(steady) = span.steady {
            return self.until_steady(number, span, steady);
        }
        if let Some(target) = span.latency_target {
            return self.depth_for(number, span, target);
        }
        let ran = self.run(number, span, Variation { round: scheduled.round, ..Variation::default() })?;
        Ok(SpanRun::once(ran))
    }

    /// Flushes all written targets.
    fn drain(&self) -> Result<(), TrialError> {
        for one in self.targets.job_targets.iter().filter(|one| one.is_written) {
            plumb_load::flush(&*one.opened.device, 1)
                .map_err(|source| TrialError::Flush { target: one.opened.shown.clone(), source })?;
        }
        Ok(())
    }

    /// Writes every target of the span from end to end, twice.
    fn precondition(&mut self, number: usize, span: &Span) -> Result<FinishedSpan, TrialError> {
        self.observer.phase(number, &Phase::Preconditioning, None);
        let sizes = self.targets.of_span(number).map(|(_, one)| one.opened.size.0);
        let largest = sizes.max().unwrap_or(0);
        let jobs = span.jobs.iter().map(|job| preconditioning(job, largest)).collect();
        self.run(number, &Span::new(jobs), Variation { prepares: true, ..Variation::default() })
    }

    /// Repeats the span until the last five rounds are steady.
    fn until_steady(&mut self, number: usize, span: &Span, steady: Steady) -> Result<SpanRun, TrialError> {
        let mut rounds: Vec<Round> = Vec::new();
        let (mut last, mut series) = (Vec::new(), Vec::new());
        let mut settled = Span { steady: None, ..span.clone() };
        loop {
            let round = rounds.len() as u64;
            let mut ran = self.run(number, &settled, Variation { round, ..Variation::default() })?;
            settled.warmup = Warmup::For(Nanos::ZERO);
            rounds.push(Round::from_result(&ran.result));
            last.push(ran.result.clone());
            series.extend(std::mem::take(&mut ran.series));
            if last.len() > STEADY_ROUNDS {
                last.remove(0);
                series.remove(0);
            }
            self.interim.round(&rounds, &last, &series);
            let rates: Vec<f64> = rounds.iter().map(|round| round.iops).collect();
            let is_steady = snia_steady(&rates) == Some(true);
            let is_over =
                !matches!(ran.ended, SpanEnd::Complete) || rounds.len() >= steady.rounds_max as usize;
            if is_steady || is_over {
                let result = together(last);
                let ran = FinishedSpan { result, series, ..ran };
                return Ok(SpanRun::new(ran, rounds, None));
            }
        }
    }

    /// Finds the largest depth that meets the latency, by bisection, and measures there.
    fn depth_for(
        &mut self,
        number: usize,
        span: &Span,
        target: LatencyTarget,
    ) -> Result<SpanRun, TrialError> {
        let most = span.jobs.iter().map(|job| job.workload.depth).max().unwrap_or(1);
        let probe = shortened(span);
        let mut rounds = Vec::new();
        // Met at `low`, not met at `high`.
        let (mut low, mut high) = (0, most + 1);
        let mut depth = most;
        while high - low > 1 {
            let round = rounds.len() as u64;
            let variation = Variation { depth: Some(depth), round, ..Variation::default() };
            let ran = self.run(number, &probe, variation)?;
            let latency = at_percentile(&ran.result, target);
            rounds.push(Round { depth: Some(depth), latency, ..Round::from_result(&ran.result) });
            self.interim.round(&rounds, &[], &[]);
            if !matches!(ran.ended, SpanEnd::Complete) {
                return Ok(SpanRun::new(ran, rounds, None));
            }
            if latency.is_none_or(|latency| latency <= target.latency) {
                low = depth;
            } else {
                high = depth;
            }
            depth = low.midpoint(high).max(1);
        }
        let variation = Variation { depth: Some(low.max(1)), ..Variation::default() };
        let ran = self.run(number, span, variation)?;
        Ok(SpanRun::new(ran, rounds, Some(low)))
    }
}

/// Returns the latency at the target's percentile; `None` if nothing completed.
fn at_percentile(result: &SpanResult, target: LatencyTarget) -> Option<Nanos> {
    let per_mille = (target.percentile * 10.0).ceil() as u32;
    result.total().operations().latency.at_per_mille(per_mille)
}

/// Returns a short version of the span.
fn shortened(span: &Span) -> Span {
    let mut short = span.clone();
    for job in &mut short.jobs {
        let duration = job.workload.stop.duration.map_or(PROBE, |duration| duration.min(PROBE));
        job.workload.stop.duration = Some(duration);
    }
    short
}

/// Returns a job that writes its targets from end to end.
fn preconditioning(job: &Job, largest: u64) -> Job {
    let stop = Stop { bytes: Some(largest.saturating_mul(PRECONDITION_PASSES)), ..Stop::default() };
    let workload = Workload {
        blocks: BlockSizes::one(PRECONDITION_BLOCK),
        access: Access::SEQUENTIAL,
        write_percent: 100,
        trim_percent: 0,
        depth: PRECONDITION_DEPTH,
        stop,
        durability: Durability { flush_at_end: true, ..Durability::default() },
        rate: Rate::Unlimited,
        burst: None,
        range: ByteRange::ALL,
        division: Division::Parts,
        verify: false,
        ..job.workload.clone()
    };
    Job {
        threads: 1,
        threads_shared: false,
        same_threads: false,
        depth_shared: false,
        start_delay: Nanos::ZERO,
        workload,
        ..job.clone()
    }
}
