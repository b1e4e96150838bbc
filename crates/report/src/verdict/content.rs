//! Rules about the written content, and whether it was ever made durable.

use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::document::{FlushMethod, Sides};
use crate::quantity::count;

/// Judges `compressible`: the test data compresses or repeats, and the storage received it. Data that mostly
/// stayed in the page cache does not involve the storage.
pub(super) fn reducible(evidence: &Evidence<'_>) -> Option<Verdict> {
    let lines: Vec<String> = evidence
        .targets()
        .filter(|(_, target, job)| job.reducible && target.sides.write.ios > 0 && was_stored(&target.sides))
        .map(|(label, _, job)| format!("{label}: {}", job.content))
        .collect();
    (!lines.is_empty()).then(|| {
        Verdict::new(
            Severity::Info,
            "The written data compresses or repeats: a path that reduces data had less to write.".to_owned(),
            lines,
        )
    })
}

/// Returns true if the storage received at least half of the written data, or that is unknown.
fn was_stored(sides: &Sides) -> bool {
    sides.storage.as_ref().is_none_or(|storage| storage.write_bytes >= sides.write.bytes / 2)
}

/// Judges `range-is-not-durable`: the requested flush is sync_file_range, which makes nothing durable.
pub(super) fn not_durable(evidence: &Evidence<'_>) -> Option<Verdict> {
    let lines: Vec<String> = evidence
        .targets()
        .filter(|(_, target, job)| job.flush == Some(FlushMethod::Range) && target.sides.sync.ios > 0)
        .map(|(label, target, _)| {
            format!("{label}: {} calls of sync_file_range", count(target.sides.sync.ios))
        })
        .collect();
    (!lines.is_empty()).then(|| {
        Verdict::new(
            Severity::Info,
            "sync_file_range hands dirty pages to the device and empties no cache: it makes nothing durable."
                .to_owned(),
            lines,
        )
    })
}
