//! Requests in flight: asked for, reached, and looked for.

use plumb_path::Severity;

use super::Verdict;
use super::evidence::Evidence;
use crate::quantity::{count, duration, three_digits};

/// In flight on average below this share of what was asked means that it was not reached.
const REACHED_FROM: f64 = 0.7;
/// Fewer operations for each request in flight than this are mostly start and end.
const ROUNDS_MIN: u64 = 10;

/// `depth-not-reached`: fewer requests were in flight than asked; with an engine that makes one call at a time there
/// cannot be more than one for each thread.
pub(super) fn not_reached(evidence: &Evidence<'_>) -> Option<Verdict> {
    let mut shallow = Vec::new();
    for (label, target, job) in evidence.targets() {
        let sides = &target.sides;
        let (Some(asked), Some(mean)) = (sides.depth, sides.application.in_flight_mean) else { continue };
        let enough = sides.application.operations >= asked.saturating_mul(ROUNDS_MIN);
        let shallow_enough = mean < REACHED_FROM * asked as f64;
        if !job.scheduled && asked > 1 && enough && shallow_enough {
            let one_each = sides.in_flight_max > 0
                && sides.in_flight_max <= u64::from(job.threads)
                && asked > u64::from(job.threads);
            // Who waits for a flush has nothing else in flight meanwhile: that is what was asked for.
            if one_each || sides.sync.ios == 0 {
                shallow.push((label, target, asked, mean, one_each));
            }
        }
    }
    let (label, target, asked, mean, _) =
        shallow.iter().find(|(.., one_each)| *one_each).or(shallow.first())?;
    let capped = shallow.iter().any(|(.., one_each)| *one_each);
    let why = if capped {
        format!(": {} makes one call at a time, so the depth is 1 for each thread", target.engine)
    } else {
        String::new()
    };
    Some(Verdict {
        id: "depth-not-reached",
        severity: if capped { Severity::Warning } else { Severity::Info },
        sentence: format!(
            "{} requests were asked to be in flight on {label}, and {} were on average{why}.",
            count(*asked),
            three_digits(*mean)
        ),
        evidence: shallow
            .iter()
            .map(|(label, target, asked, mean, _)| {
                format!(
                    "{label}: asked {}, mean {}, at most {}, by {}",
                    count(*asked),
                    three_digits(*mean),
                    count(target.sides.in_flight_max),
                    target.engine
                )
            })
            .collect(),
        remedy: "Compare these figures with others of the depth that was reached, not of the one that was asked. More \
                     threads, or io_uring, would reach it.",
    })
}

/// `latency-target-missed`: not even one request at a time kept the latency.
pub(super) fn latency_target_missed(evidence: &Evidence<'_>) -> Option<Verdict> {
    let missed = evidence.document.spans.iter().filter_map(|span| span.latency_target.as_ref());
    let missed = missed.filter(|target| target.depth.is_none()).collect::<Vec<_>>();
    let target = missed.first()?;
    let mut evidence: Vec<String> = target
        .tried
        .iter()
        .map(|tried| {
            let latency = crate::quantity::or_dash(tried.latency, duration);
            format!("depth {}: {} IOPS, {latency}", tried.depth, crate::quantity::rate(tried.iops))
        })
        .collect();
    if evidence.is_empty() {
        evidence.push("no depth was tried".to_owned());
    }
    Some(Verdict {
        id: "latency-target-missed",
        severity: Severity::Warning,
        sentence: format!(
            "No depth kept {} of 100 operations within {}.",
            three_digits(target.percentile),
            duration(target.latency)
        ),
        evidence,
        remedy: "Ask for a latency that one request at a time keeps, or for smaller operations.",
    })
}
