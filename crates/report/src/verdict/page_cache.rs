//! Loads through the page cache that never reached the devices.

use plumb_path::Severity;

use super::evidence::{Evidence, Flow};
use super::outcome::Verdict;
use crate::quantity::{self, rate};

/// Share of the application's bytes below which the devices count as not reached.
const REACHED_BELOW: f64 = 0.1;
/// Minimum number of operations to judge.
const OPERATIONS_MIN: u64 = 30;

impl Flow {
    fn words(&self) -> String {
        format!("{}: {}", self.name, self.balance.sentence())
    }

    /// Returns the subject of a sentence: "The application read at 470,889 IOPS"
    fn subject(&self) -> String {
        let verb = if self.balance.write { "wrote" } else { "read" };
        format!("The application {verb} at {} IOPS", rate(self.iops))
    }
}

/// Returns the flows through the page cache, or those past it, of which almost nothing reached the devices.
fn unseen<'a>(evidence: &'a Evidence<'_>, cached: bool) -> Vec<&'a Flow> {
    let is_unseen =
        |flow: &&Flow| flow.operations >= OPERATIONS_MIN && flow.balance.device_share() < REACHED_BELOW;
    evidence.flows.iter().filter(|flow| flow.cached == cached).filter(is_unseen).collect()
}

/// Time of an operation, in seconds, up to which it was served from memory: a hit in the page cache takes a
/// call and a copy, and the fastest drives take longer.
const MEMORY_MAX: f64 = 8e-6;

/// Returns a line for each direction through the page cache, of a target without counters, that is as fast as
/// memory and without syncs that waited for a drive.
fn as_fast_as_memory(evidence: &Evidence<'_>) -> Vec<String> {
    let cached = evidence.targets().filter(|(_, target, job)| {
        let is_waited_for = job.method.is_some() || job.flush.is_some() || job.durable_write_every.is_some();
        job.caching.is_cached() && !is_waited_for && target.sides.storage.is_none()
    });
    let lines = cached.flat_map(|(label, target, _)| {
        let moving = target.sides.moving().into_iter();
        moving.filter_map(move |(direction, result)| {
            let latency = result.latency.filter(|_| result.ios >= OPERATIONS_MIN)?;
            let is_memory = |seconds: &f64| *seconds <= MEMORY_MAX;
            Some(match latency.p50 {
                Some(half) => {
                    let half = quantity::duration(Some(half).filter(is_memory)?);
                    format!("{label}: half of its {direction}s took {half} or less")
                }
                None => {
                    let mean = quantity::duration(Some(latency.mean).filter(is_memory)?);
                    format!("{label}: its {direction}s took {mean} on average")
                }
            })
        })
    });
    lines.collect()
}

/// Judges `page-cache`: the application had a rate that the devices did not have, or that no device can have,
/// so the data came from memory.
pub(super) fn page_cache(evidence: &Evidence<'_>) -> Option<Verdict> {
    let loads = unseen(evidence, true);
    let Some(first) = loads.first() else {
        let lines = Some(as_fast_as_memory(evidence)).filter(|lines| !lines.is_empty())?;
        let sentence = "Operations through the page cache were as fast as memory: no drive was waited for.";
        return Some(Verdict::new(Severity::Info, sentence.to_owned(), lines));
    };
    Some(Verdict::new(
        Severity::Info,
        format!(
            "{} through the page cache while the devices served {}: this is the speed of memory.",
            first.subject(),
            rate(first.storage_iops)
        ),
        loads.iter().map(|flow| flow.words()).collect(),
    ))
}

/// Judges `cached-below`: even direct requests did not reach the devices, since a layer below the file system
/// has its own cache.
pub(super) fn cached_below(evidence: &Evidence<'_>) -> Option<Verdict> {
    let loads = unseen(evidence, false);
    let first = loads.first()?;
    Some(Verdict::new(
        Severity::Info,
        format!(
            "{} past the page cache, yet the devices served {}: a layer below answers from memory.",
            first.subject(),
            rate(first.storage_iops)
        ),
        loads.iter().map(|flow| flow.words()).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use plumb_measure::Latency;

    use super::*;
    use crate::fixture;

    #[test]
    fn cached_reads_that_no_device_saw_are_memory() {
        let finding = page_cache(&Evidence::new(&fixture::virtual_machine())).unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.sentence.contains("431,367 IOPS") && finding.sentence.contains("served 0"));
        assert_eq!(finding.evidence.len(), 2);
    }

    #[test]
    fn without_counts_of_the_devices_the_time_of_an_operation_tells() {
        let mut document = fixture::virtual_machine();
        document.targets.iter_mut().for_each(|target| target.sides.storage = None);
        let finding = page_cache(&Evidence::new(&document)).unwrap();
        assert!(finding.sentence.contains("as fast as memory"), "{}", finding.sentence);
        assert!(
            finding.evidence[0].starts_with("read-cached: half of its reads took"),
            "{:?}",
            finding.evidence
        );
        for target in &mut document.targets {
            let slow = |latency: &mut Latency| latency.p50 = Some(1e-4);
            target.sides.read.latency.iter_mut().chain(&mut target.sides.write.latency).for_each(slow);
        }
        assert!(page_cache(&Evidence::new(&document)).is_none());
        for target in &mut document.targets {
            let unlisted = |latency: &mut Latency| (latency.p50, latency.mean) = (None, 2e-6);
            target.sides.read.latency.iter_mut().chain(&mut target.sides.write.latency).for_each(unlisted);
        }
        let finding = page_cache(&Evidence::new(&document)).unwrap();
        assert!(finding.evidence[0].ends_with("reads took 2 µs on average"), "{:?}", finding.evidence);
    }

    #[test]
    fn direct_loads_that_no_device_saw_are_memory_below() {
        let mut document = fixture::virtual_machine();
        assert!(cached_below(&Evidence::new(&document)).is_none());
        for storage in document.targets.iter_mut().filter_map(|target| target.sides.storage.as_mut()) {
            (storage.reads, storage.read_bytes, storage.write_bytes) = (0, 0, 0);
        }
        let finding = cached_below(&Evidence::new(&document)).unwrap();
        assert!(finding.sentence.contains("past the page cache"), "{}", finding.sentence);
    }

    #[test]
    fn cached_loads_that_reach_the_devices_are_not() {
        let mut document = fixture::virtual_machine();
        for sides in document.targets.iter_mut().map(|target| &mut target.sides) {
            let bytes = sides.application.bytes;
            let storage = sides.storage.as_mut().unwrap();
            (storage.read_bytes, storage.write_bytes) = (bytes, bytes);
        }
        assert!(page_cache(&Evidence::new(&document)).is_none());
    }
}
