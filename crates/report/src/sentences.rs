//! Sentences about a run in addition to its tables, the same for the terminal and the page.

use crate::balance::Balance;
use crate::document::{LatencyTargetResult, RunDocument, RunSpan, RunTarget, Sides, Transactions};
use crate::figures::spread;
use crate::headline::{capital, sentence};
use crate::quantity::{bytes, count, counted, duration, or_dash, rate, three_digits};
use crate::untorn;

/// Share of the application's bytes moved by the devices, below which the balance is described.
const TOLD_BELOW: f64 = 0.95;
/// Share of the application's bytes that the devices may move in addition, as for a journal, before the
/// balance is described.
const BEYOND_TOLD_FROM: f64 = 0.1;

/// Returns sentences about the run: one or two for each target, then for each span, then for all. They are
/// not made printable. The phases of a check never vary, so for a check only the survey's statements about
/// untorn writes are returned.
pub(crate) fn lines(document: &RunDocument) -> Vec<String> {
    let mut lines = Vec::new();
    if document.is_check() {
        // The path of a check is that of its test file, for which file systems report more than for a
        // directory.
        return document.path.iter().flat_map(untorn::lines).collect();
    }
    for (label, target) in document.labels().into_iter().zip(&document.targets) {
        lines.push(format!("{label}: {}", of_target(document, target)));
    }
    for (index, span) in document.spans.iter().enumerate() {
        let lead = if document.spans.len() > 1 { format!("Span {}: ", index + 1) } else { String::new() };
        lines.extend(of_span(span).into_iter().map(|line| format!("{lead}{line}")));
    }
    lines.extend(of_all(document));
    lines
}

/// Returns the reasons why targets could not be measured.
pub(crate) fn unmeasured(document: &RunDocument) -> Vec<String> {
    let labelled = document.labels().into_iter().zip(&document.targets);
    let words = |(label, target): (String, &RunTarget)| {
        Some(format!("{label}: not measured: {}", sentence(target.failed_because.as_deref()?)))
    };
    labelled.filter(|(_, target)| !is_method(document, target)).filter_map(words).collect()
}

/// Returns true if the target measures the cost of a durable write.
pub(crate) fn is_method(document: &RunDocument, target: &RunTarget) -> bool {
    document.job_of(target).is_some_and(|job| job.method.is_some())
}

/// Returns the balances of targets whose data did not all reach the devices, or made them move much more.
/// Balances on which a verdict rests are stated with the verdict.
pub(crate) fn balances(document: &RunDocument) -> Vec<String> {
    let mut lines = all_balances(document);
    lines.retain(|line| !document.verdicts.iter().any(|finding| finding.evidence.contains(line)));
    lines
}

fn all_balances(document: &RunDocument) -> Vec<String> {
    let sharing = document.sharing();
    let labelled = document.labels().into_iter().zip(&document.targets).zip(&sharing);
    let alone = labelled.filter(|((_, target), shares)| !**shares && !is_method(document, target));
    let mut lines: Vec<String> =
        alone.flat_map(|((label, target), _)| balances_of(&label, &target.sides)).collect();
    // The traffic of targets on the same devices is known only for all of them together.
    if sharing.contains(&true) {
        lines.extend(document.sums().iter().flat_map(|(title, sides)| balances_of(title, sides)));
    }
    lines
}

fn balances_of(label: &str, sides: &Sides) -> Vec<String> {
    let telling = |balance: &Balance| {
        balance.device_share() < TOLD_BELOW || balance.beyond > BEYOND_TOLD_FROM * balance.application
    };
    let directions = [(false, &sides.read), (true, &sides.write)];
    let balances = directions
        .into_iter()
        .filter_map(|(write, direction)| Balance::from_sides(write, direction.bytes, sides));
    balances.filter(telling).map(|balance| format!("{label}: {}", balance.sentence())).collect()
}

/// Returns where and why the storage side is unknown: one sentence for all targets if they are alike.
pub(crate) fn unknown_storage(document: &RunDocument) -> Vec<String> {
    let shown = document
        .labels()
        .into_iter()
        .zip(&document.targets)
        .filter(|(_, target)| target.failed_because.is_none() && !is_method(document, target));
    let because: Vec<(String, Option<&str>)> = shown
        .map(|(label, target)| {
            let why = target.sides.flushes_unknown_because();
            (label, Some(why).filter(|_| target.sides.storage.is_none()))
        })
        .collect();
    let words = |why: &str| format!("what the storage saw is not known: {}", sentence(why));
    match because.as_slice() {
        [(_, Some(first)), rest @ ..] if rest.iter().all(|(_, why)| *why == Some(*first)) => {
            vec![capital(&words(first))]
        }
        each => each.iter().filter_map(|(label, why)| Some(format!("{label}: {}", words((*why)?)))).collect(),
    }
}

/// Describes the requests to the target in a few words, for the line under its name.
pub(crate) fn description(document: &RunDocument, target: &RunTarget) -> String {
    let Some(job) = document.job_of(target) else { return String::new() };
    let depth = target.sides.depth.map_or_else(String::new, |depth| format!(", {} in flight", count(depth)));
    // The accesses of an application have no range.
    let range = match target.range_bytes {
        0 => String::new(),
        range => format!(", over {}", bytes(range as f64)),
    };
    format!("{}, {}{depth}{range}", job.description, job.caching.word())
}

fn of_target(document: &RunDocument, target: &RunTarget) -> String {
    let sides = &target.sides;
    let mut text = description(document, target);
    if let Some(job) = document.job_of(target) {
        let threads = if job.threads == 1 { "thread" } else { "threads" };
        text.push_str(&format!("; {} {threads}", job.threads));
    }
    let engine = match &target.engine_because {
        Some(why) => format!("{} (not io_uring: {})", target.engine, why.trim_end_matches('.')),
        None => target.engine.clone(),
    };
    text.push_str(&format!(", {engine}."));
    if let Some(mean) = sides.application.in_flight_mean {
        text.push_str(&format!(" In flight on average: {}.", three_digits(mean)));
    }
    if let Some(schedule) = sides.schedule {
        text.push_str(&format!(
            " Of the schedule, {} started late, {} not at all, at most {} behind.",
            count(schedule.late_starts),
            count(schedule.unstarted),
            duration(schedule.backlog_max)
        ));
    }
    if sides.application.errors > 0 {
        text.push_str(&format!(" {} failed.", counted(sides.application.errors, "operation")));
    }
    text
}

fn of_span(span: &RunSpan) -> Vec<String> {
    let settled = match span.settled {
        Some(true) => ", until the rate had settled",
        Some(false) => ", and the rate had not settled then",
        None => "",
    };
    let mut first = format!("Measured for {}", duration(span.duration));
    if span.warmup > 0.0 {
        first.push_str(&format!(" after {} of warm-up{settled}", duration(span.warmup)));
    }
    let mut lines = Vec::new();
    if span.duration > 0.0 {
        lines.push(format!("{first}."));
    }
    if let Some(steady) = &span.steady {
        let rounds: Vec<String> = steady.rounds.iter().map(|round| rate(round.iops)).collect();
        let state = match steady.steady {
            Some(true) => "the steady state of SNIA PTS 2.0.2 was reached",
            Some(false) => "the steady state of SNIA PTS 2.0.2 was not reached",
            None => "too few for the steady state of SNIA PTS 2.0.2",
        };
        lines.push(format!("Rounds of {} IOPS: {state}.", rounds.join(", ")));
    }
    if let Some(target) = &span.latency_target {
        let kept = kept(target);
        lines.push(match target.depth {
            Some(depth) => {
                let tried = target.tried.iter().rev().find(|tried| tried.depth == depth);
                let iops = or_dash(tried, |tried| rate(tried.iops));
                match measured_beyond(span) {
                    Some(latency) => format!(
                        "Depth {depth} kept {kept} during the search ({iops} IOPS); in the measured run that percentile was {}.",
                        duration(latency)
                    ),
                    None => format!("A depth of {depth} keeps {kept}, at {iops} IOPS."),
                }
            }
            None => format!("No depth keeps {kept}."),
        });
    }
    lines
}

/// Describes the latency to keep.
pub(crate) fn kept(target: &LatencyTargetResult) -> String {
    format!("{} of 100 operations within {}", three_digits(target.percentile), duration(target.latency))
}

/// Returns the measured latency at the percentile of the span's target, if a depth was chosen for that target
/// and did not meet it.
pub(crate) fn measured_beyond(span: &RunSpan) -> Option<f64> {
    let target = span.latency_target.as_ref().filter(|target| target.depth.is_some())?;
    let latency = span.total.application.latency.as_ref()?;
    let at = [
        (25.0, latency.p25),
        (50.0, latency.p50),
        (75.0, latency.p75),
        (99.0, latency.p99),
        (99.9, latency.p999),
        (100.0, Some(latency.max)),
    ];
    // Between two known percentiles only the lower one is certain.
    let below = at.iter().rev().filter(|(percentile, _)| *percentile <= target.percentile);
    let known = below.filter_map(|(_, seconds)| *seconds).next()?;
    (known > target.latency).then_some(known)
}

fn of_transactions(transactions: &Transactions) -> Vec<String> {
    let mut first =
        format!("{} transactions, {} per second", count(transactions.count), rate(transactions.per_second));
    if let Some(latency) = transactions.latency {
        first.push_str(&format!(": {}", spread(&latency)));
    }
    if let Some(syncs) = transactions.syncs_each {
        first.push_str(&format!("; {} syncs each", three_digits(syncs)));
    }
    let mut lines = vec![format!("{first}.")];
    let calls = transactions.calls.iter().map(|call| {
        let latency = &call.latency;
        format!(
            "{} {} (p50 {}, p99 {})",
            count(latency.count),
            call.name,
            duration(latency.p50),
            duration(latency.p99)
        )
    });
    let calls: Vec<String> = calls.collect();
    if !calls.is_empty() {
        lines.push(format!("Calls: {}.", calls.join(", ")));
    }
    lines
}

fn of_all(document: &RunDocument) -> Vec<String> {
    let mut lines = document.transactions.as_ref().map(of_transactions).unwrap_or_default();
    if let Some(cpu) = document.total.cpu {
        let each = document.total.cpu_per_million().map_or_else(String::new, |seconds| {
            format!(", {} for each million operations", duration(seconds))
        });
        lines.push(format!(
            "Processor time: {} user, {} system{each}.",
            duration(cpu.user),
            duration(cpu.system)
        ));
    }
    if let Some(seconds) = document.latency_resolution_seconds.filter(|_| !document.targets.is_empty()) {
        let late = match document.latencies_late {
            0 => String::new(),
            late => format!(", but for {} that came with a stall: those by at most 4 ms", count(late)),
        };
        lines.push(format!(
            "Latencies are never too short, and too long by at most {}{late}.",
            duration(seconds)
        ));
    }
    if let Some(verified) = &document.total.verified {
        let wrong = match verified.wrong() {
            0 => "every one holds what was written".to_owned(),
            wrong => format!("{} are wrong", count(wrong)),
        };
        lines.push(format!("Verified: {} blocks were compared, {wrong}.", count(verified.blocks)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn only_balances_that_tell_something_are_told() {
        let mut document = fixture::load("cache-or-disk");
        let told = balances(&document);
        assert!(told.iter().all(|line| line.starts_with("all of span")), "targets share a device: {told:?}");
        assert!(told[0].contains("all of it from memory"), "{told:?}");
        // Each target is alone on its devices.
        document.targets.retain(|target| target.sides.write.ios == 0);
        let told = balances(&document);
        assert!(told.iter().any(|line| line.contains("read-cached")), "{told:?}");
        assert!(!told.iter().any(|line| line.contains("read-direct")), "{told:?}");
        assert_eq!(balances(&fixture::load("side-by-side")), [""; 0]);
    }

    #[test]
    fn an_unknown_storage_side_is_said_once_if_it_is_the_same_for_all() {
        let mut document = fixture::load("many-writers");
        assert_eq!(
            unknown_storage(&document),
            ["sim:ssd: what the storage saw is not known: a simulated drive has counters of its own."]
        );
        let why = document.targets[1].sides.storage_unknown_because.clone();
        (document.targets[0].sides.storage, document.targets[0].sides.storage_unknown_because) = (None, why);
        assert_eq!(
            unknown_storage(&document),
            ["What the storage saw is not known: a simulated drive has counters of its own."]
        );
        assert_eq!(unknown_storage(&fixture::load("side-by-side")), [""; 0]);
    }
}
