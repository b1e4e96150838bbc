//! Requests in flight: requested, reached, and searched for.

use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::document::DepthTried;
use crate::quantity::{count, duration, or_dash, rate, three_digits};
use crate::sentences;

/// Share of the requested depth below which the depth counts as not reached.
const REACHED_FROM: f64 = 0.7;
/// Minimum number of operations for each request in flight; with fewer, start and end dominate.
const ROUNDS_MIN: u64 = 10;

/// Judges `depth-not-reached`: fewer requests were in flight than requested. An engine that makes one call at
/// a time has at most one for each thread.
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
            // A caller that waits for a flush has nothing else in flight meanwhile, as the job requests. With
            // a flush after each write there is never more than one, whatever the engine can do. A thread may
            // leave out the flush after its last write.
            let flushes = sides.sync.ios.saturating_add(u64::from(job.threads));
            let flushes_each = sides.sync.ios > 0 && flushes >= sides.write.ios;
            if (one_each && !flushes_each) || sides.sync.ios == 0 {
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
    Some(Verdict::new(
        if capped { Severity::Warning } else { Severity::Info },
        format!(
            "{} requests should have been in flight on {label}, but {} were on average{why}.",
            count(*asked),
            three_digits(*mean)
        ),
        shallow
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
    ))
}

/// Judges `latency-target-missed`: no depth met the latency, or the chosen one did not meet it during the
/// measurement.
pub(super) fn latency_target_missed(evidence: &Evidence<'_>) -> Option<Verdict> {
    for span in &evidence.document.spans {
        let Some(target) = &span.latency_target else { continue };
        let sentence = match (target.depth, sentences::measured_beyond(span)) {
            (None, _) => format!("No depth kept {}.", sentences::kept(target)),
            (Some(depth), Some(measured)) => format!(
                "Depth {depth} was chosen to keep {}, but took {} for so many of them while it was measured.",
                sentences::kept(target),
                duration(measured)
            ),
            (Some(_), None) => continue,
        };
        let line = |tried: &DepthTried| {
            format!("depth {}: {} IOPS, {}", tried.depth, rate(tried.iops), or_dash(tried.latency, duration))
        };
        let mut lines: Vec<String> = target.tried.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("no depth was tried".to_owned());
        }
        return Some(Verdict::new(Severity::Warning, sentence, lines));
    }
    None
}
