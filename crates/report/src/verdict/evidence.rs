//! Evidence for the rules: the targets of a run, the measured windows, and the flow of bytes through them.

use plumb_measure::{Latency, Quality, StorageSide};

use crate::balance::Balance;
use crate::document::{DirectionResult, RunDocument, RunJob, RunTarget};

/// All of a run that the rules look at.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// All of it.
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
    /// Requests that the devices received, if that is known.
    pub(super) storage: Option<&'a StorageSide>,
    /// True if it read.
    pub(super) reads: bool,
    /// True if it is a load past the page cache; one through it is always bound by its worker.
    pub(super) direct_load: bool,
    /// The latencies that are shown of it, each with a name.
    pub(super) timed: Vec<(String, &'a Latency)>,
}

/// Bytes in one direction, seen from both sides.
#[derive(Debug)]
pub(super) struct Flow {
    /// Name of the flow.
    pub(super) name: String,
    /// True if the page cache stood between.
    pub(super) cached: bool,
    /// Operations of the application.
    pub(super) operations: u64,
    /// Their rate.
    pub(super) iops: f64,
    /// The rate at the devices.
    pub(super) storage_iops: f64,
    /// Where the data went.
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
            // The cost of a durable write is one figure, and its bytes are not a load.
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

    /// Returns the targets, each with what to call it and its job.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&str, &'a RunTarget, &'a RunJob)> {
        let labelled = self.labels.iter().zip(&self.document.targets);
        labelled
            .filter_map(move |(label, target)| Some((label.as_str(), target, self.document.job_of(target)?)))
    }
}

/// Returns the time until a write was durable.
fn durable<'a>(name: &str, target: &'a RunTarget) -> Vec<(String, &'a Latency)> {
    target.sides.durable_latency.iter().map(|latency| (name.to_owned(), latency)).collect()
}

/// Returns the service times of all directions of which something was asked.
fn directions<'a>(name: &str, target: &'a RunTarget) -> Vec<(String, &'a Latency)> {
    let used = target.sides.used();
    let title = |direction: &str| match used.as_slice() {
        [_] => name.to_owned(),
        _ => format!("{name}, {direction}"),
    };
    used.iter().filter_map(|(direction, result)| Some((title(direction), result.latency.as_ref()?))).collect()
}

/// Returns the reads and the writes of a target, where what the devices were handed is known.
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
