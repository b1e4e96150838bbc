//! Workers that spend their time waiting for flushes.

use plumb_path::{Finding, Severity};

use super::super::Verdict;
use super::super::waiting::{FEWER_FLUSHES, IDLE_BELOW, MEAN_FROM};
use super::targets;
use crate::document::RunDocument;
use crate::quantity::{count, duration, percent};

/// The share of the workers' time from which flushes are what they wait for.
const SHARE_FROM: f64 = 0.5;

/// `waiting-on-flushes`: the processor idles while one flush after the other is waited for.
pub(in super::super) fn waiting_on_flushes(document: &RunDocument) -> Option<Finding> {
    let mut waiting = Vec::new();
    for (label, target, job) in targets(document) {
        let sides = &target.sides;
        let (Some(flush), Some(busy)) = (&sides.sync.latency, sides.quality.worker_busy) else { continue };
        let time = sides.application.seconds * f64::from(job.threads.max(1));
        let share = if time > 0.0 { flush.mean * flush.count as f64 / time } else { 0.0 };
        if flush.mean >= MEAN_FROM && share >= SHARE_FROM && busy < IDLE_BELOW {
            waiting.push((label, share.min(1.0), flush, busy));
        }
    }
    let (label, share, flush, busy) = waiting.first()?;
    Some(
        Verdict {
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
                    format!("{label}: {} flushes, mean {}, {} of the time", count(flush.count), duration(flush.mean), percent(*share))
                })
                .collect(),
            remedy: FEWER_FLUSHES,
        }
        .into(),
    )
}
