//! Loads through the page cache that never reached the devices.

use plumb_measure::{ApplicationSide, IoResult, StorageSide};
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

/// A load that the devices hardly saw.
struct Unseen<'a> {
    io: &'a IoResult,
    application: &'a ApplicationSide,
    storage: &'a StorageSide,
    balance: Balance,
}

impl Unseen<'_> {
    fn evidence(&self) -> String {
        format!("{}: {}", self.io.name, self.balance.sentence())
    }

    /// "The application read at 470,889 IOPS"
    fn subject(&self) -> String {
        let verb = if wording::is_write(self.io) { "wrote" } else { "read" };
        format!("The application {verb} at {} IOPS", rate(self.application.iops))
    }
}

/// The loads through the page cache, or those past it, of which the devices saw next to nothing.
fn unseen(document: &CheckDocument, cached: bool) -> Vec<Unseen<'_>> {
    document
        .io
        .iter()
        .filter(|io| wording::is_cached(io) == cached)
        .filter_map(|io| {
            let (application, storage) = (io.application.as_ref()?, io.storage.as_ref()?);
            Some(Unseen { io, application, storage, balance: Balance::of(io)? })
        })
        .filter(|load| {
            load.application.operations >= OPERATIONS_MIN && load.balance.device_share() < REACHED_BELOW
        })
        .collect()
}

/// `page-cache`: the application saw a rate that the devices did not: this is memory.
pub(super) fn page_cache(document: &CheckDocument) -> Option<Finding> {
    let loads = unseen(document, true);
    let first = loads.first()?;
    Some(
        Verdict {
            id: "page-cache",
            severity: Severity::Info,
            sentence: format!(
                "{} through the page cache while the devices served {}: this is the speed of memory.",
                first.subject(),
                rate(first.storage.iops)
            ),
            evidence: loads.iter().map(Unseen::evidence).collect(),
            remedy: "Take the direct rows for what the storage does. Cached figures hold for data that fits into memory, \
                     and say nothing about durable writes.",
        }
        .into(),
    )
}

/// `cached-below`: even direct requests never reached the devices: a layer below the file system has a cache of its own.
pub(super) fn cached_below(document: &CheckDocument) -> Option<Finding> {
    let loads = unseen(document, false);
    let first = loads.first()?;
    Some(
        Verdict {
            id: "cached-below",
            severity: Severity::Info,
            sentence: format!(
                "{} past the page cache, yet the devices served {}: a layer below answers from memory.",
                first.subject(),
                rate(first.storage.iops)
            ),
            evidence: loads.iter().map(Unseen::evidence).collect(),
            remedy: "The direct rows are the speed of memory here, too. A loop device does this unless it was made with \
                     losetup --direct-io=on; so does a cache in front of a slow disk.",
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
    fn direct_loads_that_no_device_saw_are_memory_below() {
        let mut document = fixture::virtual_machine();
        assert!(cached_below(&document).is_none());
        for io in &mut document.io {
            if let Some(storage) = &mut io.storage {
                (storage.iops, storage.read_bytes, storage.write_bytes) = (0.0, 0, 0);
            }
        }
        let finding = cached_below(&document).unwrap();
        assert!(finding.sentence.contains("past the page cache"), "{}", finding.sentence);
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
