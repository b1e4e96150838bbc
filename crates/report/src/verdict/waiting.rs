//! What the time was spent on: waiting for flushes, or the load generator itself.

use plumb_path::Severity;

use super::Verdict;
use super::evidence::Evidence;
use crate::quantity::{count, duration, percent};

/// The share of the workers' time from which flushes are what they wait for.
const SHARE_FROM: f64 = 0.5;
/// The processor counts as idle below this.
const IDLE_BELOW: f64 = 0.5;
/// Flushes that are faster than this are nobody's bottleneck.
const MEAN_FROM: f64 = 1e-3;
/// A worker that is busier than this cannot ask for more.
const BUSY_ABOVE: f64 = 0.95;

/// `waiting-on-flushes`: the processor idles while one flush after the other is waited for.
pub(super) fn waiting_on_flushes(evidence: &Evidence<'_>) -> Option<Verdict> {
    let mut waiting = Vec::new();
    for (label, target, job) in evidence.targets() {
        let sides = &target.sides;
        let (Some(flush), Some(busy)) = (&sides.sync.latency, sides.quality.worker_busy) else { continue };
        let time = sides.application.seconds * f64::from(job.threads.max(1));
        let share = if time > 0.0 { flush.mean * flush.count as f64 / time } else { 0.0 };
        if flush.mean >= MEAN_FROM && share >= SHARE_FROM && busy < IDLE_BELOW {
            waiting.push((label, share.min(1.0), flush, busy));
        }
    }
    let (label, share, flush, busy) = waiting.first()?;
    Some(Verdict {
        id: "waiting-on-flushes",
        severity: Severity::Info,
        sentence: format!(
            "{} of the time on {label} was spent waiting for {} flushes of {} each; the processor was {} busy.",
            percent(*share),
            count(flush.count),
            duration(flush.mean),
            percent(*busy)
        ),
        evidence: waiting
            .iter()
            .map(|(label, share, flush, _)| {
                format!(
                    "{label}: {} flushes, mean {}, {} of the time",
                    count(flush.count),
                    duration(flush.mean),
                    percent(*share)
                )
            })
            .collect(),
        remedy: "The price is the number of flushes times the cost of one: commit several records with one sync, or make a \
 flush cheaper (a drive with power-loss protection, or another setting of its cache).",
    })
}

/// `generator-bound`: a direct load was limited by the worker, not by the storage. Cached loads always are.
pub(super) fn generator_bound(evidence: &Evidence<'_>) -> Option<Verdict> {
    let bound: Vec<(&str, f64)> = evidence
        .phases
        .iter()
        .filter(|phase| phase.direct_load)
        .filter_map(|phase| Some((phase.name.as_str(), phase.quality.worker_busy?)))
        .filter(|(_, busy)| *busy > BUSY_ABOVE)
        .collect();
    let (name, busy) = *bound.first()?;
    Some(Verdict {
        id: "generator-bound",
        severity: Severity::Info,
        sentence: format!(
            "The worker of {name} was {} busy: the storage may be faster than this figure.",
            percent(busy)
        ),
        evidence: bound.iter().map(|(name, busy)| format!("{name}: {} busy", percent(*busy))).collect(),
        remedy: "Take the figure for a lower bound, or load the path with several workers at once.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn slow_syncs_with_an_idle_processor_are_waiting() {
        let finding = waiting_on_flushes(&Evidence::of(&fixture::document("raid-eight-disks"))).unwrap();
        assert!(
            finding.sentence.contains("21.1 ms") && finding.sentence.contains("31% busy"),
            "{}",
            finding.sentence
        );
        assert!(
            waiting_on_flushes(&Evidence::of(&fixture::virtual_machine())).is_none(),
            "57 µs is nobody's bottleneck"
        );
    }

    #[test]
    fn busy_workers_bound_direct_loads_only() {
        let mut document = fixture::virtual_machine();
        assert!(
            generator_bound(&Evidence::of(&document)).is_none(),
            "a cached load is always bound by its worker"
        );
        document.targets[4].sides.quality.worker_busy = Some(0.99);
        assert!(
            generator_bound(&Evidence::of(&document)).unwrap().sentence.contains("read-direct was 99% busy")
        );
    }
}
