//! Rules for a valid scenario: its spans, its jobs, and their combinations.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Caching, EngineChoice, FlushCall, Nanos};

use super::{CheckResult, trace};
use crate::access::{Access, Walk};
use crate::byte_range::ByteRange;
use crate::invalid::{Invalid, invalid_if};
use crate::pace::Stop;
use crate::scenario::{Affinity, Job, LatencyTarget, PageCache, Scenario, Span, Warmup};
use crate::workload::Workload;

/// Number of rounds over which a steady state is judged (SNIA PTS 2.0.2).
const STEADY_ROUNDS: u32 = 5;

impl Scenario {
    /// Maximum number of threads of a job.
    pub const THREADS_MAX: u32 = 4096;

    /// Checks every field of every span and job, and that they do not contradict each other.
    ///
    /// # Errors
    /// Fails at the first invalid field, with its path (`spans[0].jobs[1].workload.depth`), its value and
    /// what was expected.
    pub fn validate(&self) -> Result<(), Invalid> {
        invalid_if!(self.spans.is_empty(), "spans", "empty", "at least one span");
        for (index, span) in self.spans.iter().enumerate() {
            check_span(span).map_err(|invalid| invalid.within(&format!("spans[{index}]")))?;
        }
        Ok(())
    }
}

fn check_span(span: &Span) -> CheckResult {
    let Some(first) = span.jobs.first() else {
        return Err(Invalid::new("jobs", "empty", "at least one job"));
    };
    let expected = "false in the first job of a span: there is no job before it";
    invalid_if!(first.same_threads, "jobs[0].same_threads", true, expected);
    if let Some(steady) = span.steady {
        let expected = format!("at least {STEADY_ROUNDS}, over which a steady state is judged");
        invalid_if!(steady.rounds_max < STEADY_ROUNDS, "steady.rounds_max", steady.rounds_max, expected);
        let expected = "none with steady: a run looks either for a steady state or for a depth";
        invalid_if!(span.latency_target.is_some(), "latency_target", "given", expected);
    }
    span.latency_target.map_or(Ok(()), check_latency_target)?;
    if span.jobs.iter().any(|job| job.trace.is_some()) {
        trace::check_in(span)?;
    }
    for (index, job) in span.jobs.iter().enumerate() {
        let place = format!("jobs[{index}]");
        check_job(job).and_then(|()| check_job_in(job, span)).map_err(|invalid| invalid.within(&place))?;
    }
    for (index, pair) in span.jobs.windows(2).enumerate().filter(|(_, pair)| pair[1].same_threads) {
        check_same_threads(&pair[0], &pair[1])
            .map_err(|invalid| invalid.within(&format!("jobs[{}]", index + 1)))?;
    }
    check_verified_alone(span)
}

/// Checks that jobs on the same threads agree: a thread has one affinity, and one depth if it is shared.
fn check_same_threads(before: &Job, job: &Job) -> CheckResult {
    let of_thread = |job: &Job| {
        (
            job.threads,
            job.threads_shared,
            job.depth_shared,
            job.affinity.clone(),
            job.priority,
            job.trace.is_some(),
        )
    };
    if of_thread(job) == of_thread(before) && job.threads_shared && job.trace.is_none() {
        return Ok(());
    }
    let expected = "false, or shared threads in this job and the one before, as many of them, with the same \
        affinity and priority, and a depth that is shared in both or in neither";
    Err(Invalid::new("same_threads", true, expected))
}

fn check_latency_target(target: LatencyTarget) -> CheckResult {
    invalid_if!(target.latency == Nanos::ZERO, "latency_target.latency", Nanos::ZERO, "a time above zero");
    if !(target.percentile > 0.0 && target.percentile <= 100.0) {
        return Err(Invalid::new("latency_target.percentile", target.percentile, "above 0, at most 100"));
    }
    Ok(())
}

fn check_job(job: &Job) -> CheckResult {
    if job.threads == 0 || job.threads > Scenario::THREADS_MAX {
        return Err(Invalid::new("threads", job.threads, format!("1 to {}", Scenario::THREADS_MAX)));
    }
    check_targets(job)?;
    invalid_if!(job.name.is_empty(), "name", "empty", "a name for reports");
    job.trace.as_ref().map_or(Ok(()), |how| trace::check(job, how))?;
    check_depth_shared(job)?;
    check_opening(job)?;
    check_append(job)?;
    check_page_cache(job)?;
    if let Affinity::Each(processors) | Affinity::Shared(processors) = &job.affinity
        && processors.is_empty()
    {
        return Err(Invalid::new("affinity", "an empty list", "at least one processor"));
    }
    let ends_by_itself = job.trace.is_some() || job.program.is_some();
    let workload = if ends_by_itself { without_end(&job.workload) } else { job.workload.clone() };
    workload.validate().map_err(|invalid| invalid.within("workload"))?;
    let workers = NonZeroU32::new(job.threads).unwrap_or(NonZeroU32::MIN);
    workload.validate_workers(workers).map_err(|invalid| invalid.within("workload"))?;
    let Some(size) = job.size else { return Ok(()) };
    invalid_if!(size == Bytes(0), "size", size, "above zero");
    let resolved = workload.within(size).and_then(|workload| workload.validate());
    resolved.map_err(|invalid| invalid.within("workload"))
}

/// Returns the workload for checks of a trace or program, which ends by itself.
fn without_end(workload: &Workload) -> Workload {
    Workload { stop: Stop { operations: Some(u64::MAX), ..workload.stop }, ..workload.clone() }
}

fn check_targets(job: &Job) -> CheckResult {
    invalid_if!(job.targets.is_empty() && job.trace.is_none(), "targets", "empty", "at least one target");
    for (index, target) in job.targets.iter().enumerate() {
        if target.name.is_empty() {
            return Err(Invalid::new(format!("targets[{index}].name"), "empty", "a path, `#N`, or a scheme"));
        }
        let field = || format!("targets[{index}].weight");
        invalid_if!(target.weight == 0, field(), 0, "at least 1");
        let expected = "1 without a shared depth: each target has a depth of its own, so none is chosen";
        invalid_if!(target.weight != 1 && !job.depth_shared, field(), target.weight, expected);
    }
    Ok(())
}

fn check_depth_shared(job: &Job) -> CheckResult {
    if !job.depth_shared {
        return Ok(());
    }
    let expected = "false where each thread works on one target: there is nothing to share the depth with";
    invalid_if!(!job.threads_shared, "depth_shared", true, expected);
    let expected = "false with a parallel walk: it sends the depth of a target to each place";
    invalid_if!(walk_of(job) == Some(Walk::Parallel), "depth_shared", true, expected);
    Ok(())
}

fn check_opening(job: &Job) -> CheckResult {
    let (opening, depth) = (job.opening, job.workload.depth);
    let is_mapped = opening.caching == Caching::Mapped;
    let expected = "auto or synchronous for a mapping: loads and stores make no requests";
    invalid_if!(is_mapped && opening.engine == EngineChoice::IoUring, "opening.engine", "io-uring", expected);
    if is_mapped && opening.flush != FlushCall::Fdatasync {
        let expected =
            "fdatasync with a mapping, which stands for msync there: it is the one flush of a mapping";
        return Err(Invalid::new(
            "opening.flush",
            if opening.flush == FlushCall::Range { "range" } else { "fsync" },
            expected,
        ));
    }
    let expected = "false through the page cache, which may write a block back in parts: use direct";
    invalid_if!(opening.untorn && opening.caching != Caching::Direct, "opening.untorn", true, expected);
    let expected = "false for a file that grows: untorn writes need blocks that are there";
    invalid_if!(opening.untorn && job.append, "opening.untorn", true, expected);
    if depth > 1 && (is_mapped || opening.engine == EngineChoice::Synchronous) {
        let how = if is_mapped { "a mapping" } else { "synchronous calls" };
        let expected =
            format!("1 with {how}, which come one after the other; more threads make more at a time");
        return Err(Invalid::new("workload.depth", depth, expected));
    }
    Ok(())
}

/// Checks that an append-only file is written in order, by one thread, one write at a time.
fn check_append(job: &Job) -> CheckResult {
    let workload = &job.workload;
    let (found, expected) = if !job.append {
        return Ok(());
    } else if job.size.is_none() {
        ("no size", "a size: the file grows to that, and then starts again")
    } else if workload.access != Access::SEQUENTIAL {
        (
            "writes that are not sequential",
            "sequential writes: each goes to the end of the file (add sequential)",
        )
    } else if workload.range != ByteRange::ALL {
        ("a part of the target", "no offset and no length: each write goes to the end of the file")
    } else if workload.write_percent != 100 {
        ("reads or trims", "writes alone (write 100)")
    } else if workload.verify {
        ("verification", "none: what was written is gone when the file starts again")
    } else if job.threads > 1 || workload.depth > 1 {
        (
            "several writes at a time",
            "one thread and a depth of 1: where a write goes depends on the one before",
        )
    } else if job.opening.caching == Caching::Mapped {
        ("a mapping", "no mapping, which is as long as the file")
    } else {
        return Ok(());
    };
    Err(Invalid::new("append", found, expected))
}

fn check_page_cache(job: &Job) -> CheckResult {
    let expected = match job.page_cache {
        PageCache::Loaded if !job.opening.caching.is_cached() => {
            "cached or mapped: others go past the page cache"
        }
        PageCache::Loaded if job.append || job.workload.changes() => "reads alone",
        PageCache::Loaded if job.workload.stop.duration.is_none() => {
            "a duration: half of it may go by with that"
        }
        _ => return Ok(()),
    };
    Err(Invalid::new("page_cache", "loaded", expected))
}

/// Checks the rules for a job that depend on its span.
fn check_job_in(job: &Job, span: &Span) -> CheckResult {
    let duration = job.workload.stop.duration;
    for (asked, why) in [
        (span.steady.is_some(), "the length of a round of a steady state"),
        (
            span.latency_target.is_some(),
            "the \
          length of a round in search of a latency",
        ),
    ] {
        invalid_if!(asked && duration.is_none(), "workload.stop.duration", "none", format!("a time: {why}"));
    }
    let is_serial = job.opening.caching == Caching::Mapped || job.opening.engine == EngineChoice::Synchronous;
    let expected =
        "auto or io-uring, not mapped, in search of a latency: without a queue there is no depth to vary";
    invalid_if!(span.latency_target.is_some() && is_serial, "opening.engine", "synchronous", expected);
    if let (Warmup::For(warmup), Some(duration)) = (span.warmup, duration) {
        let end = warmup.saturating_add(duration);
        let expected = format!("less than {end}, when the job is over already");
        invalid_if!(job.start_delay >= end, "start_delay", job.start_delay, expected);
    }
    Ok(())
}

/// Checks that nothing else changes the data that a job verifies.
fn check_verified_alone(span: &Span) -> CheckResult {
    let uses: Vec<(usize, &Job, &str)> = span
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(index, job)| job.targets.iter().map(move |target| (index, job, target.name.as_str())))
        .collect();
    for (nth, (index, job, name)) in uses.iter().enumerate().filter(|(_, (_, job, _))| job.workload.verify) {
        let disturbing = uses.iter().enumerate().find(|(other_nth, (_, other, other_name))| {
            let same = *other_nth != nth && other_name == name;
            same && other.workload.changes() && overlap(job.workload.range, other.workload.range)
        });
        if let Some((_, (other, _, _))) = disturbing {
            let expected =
                format!("false, or a range that jobs[{other}] does not change on {name} at the same time");
            return Err(Invalid::new(format!("jobs[{index}].workload.verify"), true, expected));
        }
    }
    Ok(())
}

fn overlap(one: ByteRange, other: ByteRange) -> bool {
    let end = |range: ByteRange| range.offset.0.saturating_add(range.length.0);
    one.offset.0 < end(other) && other.offset.0 < end(one)
}

fn walk_of(job: &Job) -> Option<Walk> {
    match &job.workload.access {
        Access::Sequential(sequential) => Some(sequential.walk),
        Access::Random(_) => None,
    }
}

#[cfg(test)]
mod tests;
