//! What the time was spent on: waiting for flushes, or the load generator itself.

use plumb_path::{Finding, Severity};

use super::evidence::Evidence;
use super::{Verdict, measured};
use crate::document::CheckDocument;
use crate::quantity::{duration, percent};
use crate::wording;

/// The sync is at least this share of a durable write.
const SYNC_SHARE: f64 = 0.8;
/// The processor counts as idle below this.
pub(super) const IDLE_BELOW: f64 = 0.5;
/// Durable writes that are faster than this are nobody's bottleneck.
pub(super) const MEAN_FROM: f64 = 1e-3;
/// A worker that is busier than this cannot ask for more.
const BUSY_ABOVE: f64 = 0.95;

/// What helps against waiting for flushes.
pub(super) const FEWER_FLUSHES: &str = "The price is the number of flushes times the cost of one: commit several records with one sync, or make a flush \
     cheaper (a drive with power-loss protection, or another setting of its cache).";

/// `waiting-on-flushes`: the processor idles while one sync after the other is waited for.
pub(super) fn waiting_on_flushes(document: &CheckDocument) -> Option<Finding> {
    let waiting: Vec<(&str, f64, f64, f64)> = measured(document)
        .filter_map(|result| {
            let whole = result.latency.as_ref()?.mean;
            let sync = result.sync_latency.as_ref()?.mean;
            let busy = result.quality.worker_busy?;
            let waits = whole >= MEAN_FROM && sync >= SYNC_SHARE * whole && busy < IDLE_BELOW;
            waits.then(|| (wording::method(result.method), whole, sync / whole, busy))
        })
        .collect();
    let (_, whole, share, busy) = *waiting.first()?;
    Some(
        Verdict {
            id: "waiting-on-flushes",
            severity: Severity::Info,
            sentence: format!(
                "{} of the {} that a durable write takes is waiting for the sync; the processor was {} busy.",
                percent(share.min(1.0)),
                duration(whole),
                percent(busy)
            ),
            evidence: waiting
                .iter()
                .map(|(method, whole, share, _)| {
                    format!(
                        "{method}: mean {}, of which the sync {}",
                        duration(*whole),
                        percent(share.min(1.0))
                    )
                })
                .collect(),
            remedy: FEWER_FLUSHES,
        }
        .into(),
    )
}

/// `generator-bound`: a direct load was limited by the worker, not by the storage. Cached loads always are.
pub(super) fn generator_bound(evidence: &Evidence<'_>) -> Option<Finding> {
    let bound: Vec<(&str, f64)> = evidence
        .phases
        .iter()
        .filter(|phase| phase.direct_load)
        .filter_map(|phase| Some((phase.name.as_str(), phase.quality.worker_busy?)))
        .filter(|(_, busy)| *busy > BUSY_ABOVE)
        .collect();
    let (name, busy) = *bound.first()?;
    Some(
        Verdict {
            id: "generator-bound",
            severity: Severity::Info,
            sentence: format!(
                "The worker of {name} was {} busy: the storage may be faster than this figure.",
                percent(busy)
            ),
            evidence: bound.iter().map(|(name, busy)| format!("{name}: {} busy", percent(*busy))).collect(),
            remedy: "Take the figure for a lower bound, or load the path with several workers at once.",
        }
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn slow_syncs_with_an_idle_processor_are_waiting() {
        let finding = waiting_on_flushes(&fixture::document("raid-eight-disks")).unwrap();
        assert!(
            finding.sentence.contains("21.1 ms") && finding.sentence.contains("31% busy"),
            "{}",
            finding.sentence
        );
        assert!(waiting_on_flushes(&fixture::virtual_machine()).is_none(), "57 µs is nobody's bottleneck");
    }

    #[test]
    fn busy_workers_bound_direct_loads_only() {
        let mut document = fixture::virtual_machine();
        assert!(
            generator_bound(&Evidence::of_check(&document)).is_none(),
            "a cached load is always bound by its worker"
        );
        document.io[1].quality.worker_busy = Some(0.99);
        assert!(
            generator_bound(&Evidence::of_check(&document))
                .unwrap()
                .sentence
                .contains("read-direct was 99% busy")
        );
    }
}
