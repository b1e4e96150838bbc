//! An entry of the output: a clone, or a group of jobs.

use std::collections::BTreeMap;

use plumb_block::{Bytes, DeviceCounters, Nanos};
use plumb_load::LoadOutcome;
use plumb_load::span::{CpuUse, SpanResult};

use crate::fio::{Invocation, ReportedJob};

/// An entry of a report.
pub(super) struct Entry<'a> {
    /// Report options: those of the first job of a group.
    pub(super) reported: &'a ReportedJob,
    /// Figures of the entry.
    pub(super) outcome: LoadOutcome,
    /// Processor time.
    pub(super) cpu: CpuUse,
    /// Number of clones in the entry.
    pub(super) clones: usize,
    /// Depth of each clone.
    pub(super) depth: u32,
    /// Length of an operation; the most frequent one if they differ.
    pub(super) block: Bytes,
    /// Length of the window.
    pub(super) window: Nanos,
}

impl Entry<'_> {
    /// Returns the measured time, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.outcome.length.as_secs_f64()
    }
}

/// Returns the entries of a run, in order. Those of spans that did not run are empty.
pub(super) fn entries<'a>(invocation: &'a Invocation, results: &[SpanResult]) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for reported in &invocation.reported {
        let jobs = invocation.meaning.scenario.spans.get(reported.span).map(|span| &span.jobs);
        let job = jobs.and_then(|jobs| jobs.get(reported.jobs.start));
        let depth = job.map_or(1, |job| job.workload.depth);
        let block = job.map_or(Bytes::kib(4), |job| job.workload.block_max());
        let result = results.get(reported.span);
        let clones = match result {
            Some(result) => clones_of(result, reported).collect(),
            None => {
                let jobs = jobs.into_iter().flat_map(|jobs| &jobs[reported.jobs.clone()]);
                let clones = jobs.map(|job| job.threads as usize).sum();
                vec![(LoadOutcome::empty(), CpuUse::default()); clones]
            }
        };
        for (outcome, cpu) in clones {
            let same = |entry: &&mut Entry<'_>| {
                entry.reported.grouped && reported.grouped && entry.reported.group == reported.group
            };
            match entries.iter_mut().find(same) {
                Some(group) => {
                    group.outcome.merge(&outcome);
                    group.cpu.user += cpu.user;
                    group.cpu.system += cpu.system;
                    group.clones += 1;
                }
                None => entries.push(Entry {
                    reported,
                    outcome,
                    cpu,
                    clones: 1,
                    depth,
                    block,
                    window: result.map_or(Nanos::ZERO, |result| result.window),
                }),
            }
        }
    }
    entries
}

/// Returns the figures and processor time of each clone of a job.
fn clones_of(result: &SpanResult, reported: &ReportedJob) -> impl Iterator<Item = (LoadOutcome, CpuUse)> {
    let threads = result.threads.iter().filter(|thread| reported.jobs.contains(&thread.job));
    threads.map(|thread| {
        let outcome = LoadOutcome::together(thread.parts.iter().map(|part| &part.outcome));
        (outcome, thread.cpu.unwrap_or_default())
    })
}

/// Returns the counters of the devices below over all spans, by name, and the time of observation.
pub(super) fn devices(results: &[SpanResult]) -> BTreeMap<String, (DeviceCounters, Nanos)> {
    let mut devices: BTreeMap<String, (DeviceCounters, Nanos)> = BTreeMap::new();
    for result in results {
        // Jobs on one device share its counters.
        let sides = result.targets.iter().filter_map(|target| target.storage.as_ref().ok());
        let of_span: BTreeMap<&str, &DeviceCounters> =
            sides.flat_map(|side| &side.devices).map(|device| (device.name.as_str(), device)).collect();
        for (name, device) in of_span {
            match devices.get_mut(name) {
                Some((sum, window)) => {
                    plumb_measure::storage::add(sum, device);
                    *window += result.window;
                }
                None => {
                    devices.insert(name.to_owned(), (device.clone(), result.window));
                }
            }
        }
    }
    devices
}
