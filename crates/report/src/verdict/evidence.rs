//! Evidence for the rules: the targets of a run, the measured windows, and the flow of bytes through them.

use plumb_measure::{Latency, Quality, StorageSide};

use crate::balance::Balance;
use crate::document::{DirectionResult, RunDocument, RunJob, RunTarget};

/// Parts of a run that the rules use.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// Whole document.
    pub(super) document: &'a RunDocument,
    labels: Vec<String>,
    /// Measured phases, in the order of the document.
    pub(super) phases: Vec<Phase<'a>>,
    /// Flows that moved bytes while both sides were counted.
    pub(super) flows: Vec<Flow>,
}

/// One measured window.
#[derive(Debug)]
pub(super) struct Phase<'a> {
    /// Name of the phase.
    pub(super) name: String,
    /// Length of the phase, in seconds.
    pub(super) seconds: f64,
    /// Operations each second.
    pub(super) iops: f64,
    /// Influence of the surroundings during the phase.
    pub(super) quality: &'a Quality,
    /// Requests to the devices, if known.
    pub(super) storage: Option<&'a StorageSide>,
    /// True if the phase reads.
    pub(super) reads: bool,
    /// True for a load that bypasses the page cache. One through the page cache is always limited by its
    /// worker.
    pub(super) direct_load: bool,
    /// Reported latencies of the phase, each with a name.
    pub(super) timed: Vec<(String, &'a Latency)>,
}

/// Bytes in one direction, as counted on both sides.
#[derive(Debug)]
pub(super) struct Flow {
    /// Name of the flow.
    pub(super) name: String,
    /// True if the data passed through the page cache.
    pub(super) cached: bool,
    /// Operations of the application.
    pub(super) operations: u64,
    /// Rate of these operations.
    pub(super) iops: f64,
    /// Rate at the devices.
    pub(super) storage_iops: f64,
    /// Destination of the data.
    pub(super) balance: Balance,
}

impl<'a> Evidence<'a> {
    /// Collects the evidence of a run.
    pub(super) fn new(document: &'a RunDocument) -> Self {
        let labels = document.labels();
        let (mut phases, mut all_flows) = (Vec::new(), Vec::new());
        for (name, target) in labels.iter().zip(&document.targets) {
            let job = document.job_of(target);
            let cached = job.is_some_and(|job| job.caching.is_cached());
            let method = job.is_some_and(|job| job.method.is_some());
            let sides = &target.sides;
            // The cost of a durable write is a single figure, and its bytes are not a load.
            let timed = if method { durable(name, target) } else { directions(name, target) };
            if !method {
                all_flows.extend(flows(target, name, cached));
            }
            if timed.is_empty() {
                continue;
            }
            phases.push(Phase {
                name: name.clone(),
                seconds: sides.application.seconds,
                iops: sides.application.iops,
                quality: &sides.quality,
                storage: sides.storage.as_ref(),
                reads: sides.read.ios > 0,
                direct_load: !cached && !method,
                timed,
            });
        }
        Self { document, labels, phases, flows: all_flows }
    }

    /// Returns the targets, each with its label and its job.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&str, &'a RunTarget, &'a RunJob)> {
        let labelled = self.labels.iter().zip(&self.document.targets);
        labelled
            .filter_map(move |(label, target)| Some((label.as_str(), target, self.document.job_of(target)?)))
    }
}

/// Returns the latency of durable writes.
fn durable<'a>(name: &str, target: &'a RunTarget) -> Vec<(String, &'a Latency)> {
    target.sides.durable_latency.iter().map(|latency| (name.to_owned(), latency)).collect()
}

/// Returns the service times of all requested directions.
fn directions<'a>(name: &str, target: &'a RunTarget) -> Vec<(String, &'a Latency)> {
    let used = target.sides.used();
    let title = |direction: &str| match used.as_slice() {
        [_] => name.to_owned(),
        _ => format!("{name}, {direction}"),
    };
    used.iter().filter_map(|(direction, result)| Some((title(direction), result.latency.as_ref()?))).collect()
}

/// Returns the flows of reads and writes of a target whose devices were counted.
fn flows(target: &RunTarget, name: &str, cached: bool) -> Vec<Flow> {
    let Some(storage) = &target.sides.storage else { return Vec::new() };
    let seconds = target.sides.application.seconds;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let flow = |write: bool, direction: &DirectionResult, storage_iops: f64| {
        Some(Flow {
            name: name.to_owned(),
            cached,
            operations: direction.ios,
            iops: direction.iops,
            storage_iops,
            balance: Balance::from_sides(write, direction.bytes, &target.sides)?,
        })
    };
    [
        flow(false, &target.sides.read, per_second(storage.reads)),
        flow(true, &target.sides.write, per_second(storage.writes)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
