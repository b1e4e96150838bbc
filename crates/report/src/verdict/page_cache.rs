//! Loads through the page cache that never reached the devices.

use plumb_path::{Finding, Severity};

use super::Verdict;
use crate::balance::Balance;
use crate::document::CheckDocument;
use crate::quantity::rate;
use crate::wording;

/// The devices moved less than this share of what the application moved.
const REACHED_BELOW: f64 = 0.1;
/// Fewer operations than this are not judged.
const OPERATIONS_MIN: u64 = 30;

/// `page-cache`: the application saw a rate that the devices did not: this is memory.
pub(super) fn page_cache(document: &CheckDocument) -> Option<Finding> {
    let cached: Vec<_> = document
        .io
        .iter()
        .filter(|io| wording::is_cached(io))
        .filter_map(|io| Some((io, io.application.as_ref()?, io.storage.as_ref()?, Balance::of(io)?)))
        .filter(|(_, side, _, balance)| {
            side.operations >= OPERATIONS_MIN && balance.device_share() < REACHED_BELOW
        })
        .collect();
    let (io, application, storage, _) = cached.first()?;
    let verb = if wording::is_write(io) { "wrote" } else { "read" };
    Some(
        Verdict {
            id: "page-cache",
            severity: Severity::Info,
            sentence: format!(
                "The application {verb} at {} IOPS through the page cache while the devices served {}: this is the \
                 speed of memory.",
                rate(application.iops),
                rate(storage.iops)
            ),
            evidence: cached
                .iter()
                .map(|(io, _, _, balance)| format!("{}: {}", io.name, balance.sentence()))
                .collect(),
            remedy: "Take the direct rows for what the storage does. Cached figures hold for data that fits into memory, \
                     and say nothing about durable writes.",
        }
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn cached_reads_that_no_device_saw_are_memory() {
        let finding = page_cache(&fixture::virtual_machine()).unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.sentence.contains("431,367 IOPS") && finding.sentence.contains("served 0"));
        assert_eq!(finding.evidence.len(), 2);
    }

    #[test]
    fn cached_loads_that_reach_the_devices_are_not() {
        let mut document = fixture::virtual_machine();
        for io in &mut document.io {
            let bytes = io.application.as_ref().unwrap().bytes;
            let storage = io.storage.as_mut().unwrap();
            (storage.read_bytes, storage.write_bytes) = (bytes, bytes);
        }
        assert!(page_cache(&document).is_none());
    }
}
