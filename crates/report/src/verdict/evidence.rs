//! What the rules that judge checks and loads alike look at: measured windows, and the flow of bytes through them.

use plumb_measure::{ApplicationSide, Latency, Quality, StorageSide};

use crate::balance::Balance;
use crate::document::CheckDocument;
use crate::document::{DirectionResult, RunDocument, RunTarget};
use crate::wording;

/// All of a document that these rules look at.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// What was measured, in the order of the document.
    pub(super) phases: Vec<Phase<'a>>,
    /// What moved bytes while both sides were counted.
    pub(super) flows: Vec<Flow>,
}

/// One measured window: a phase of a check, a target of a load.
#[derive(Debug)]
pub(super) struct Phase<'a> {
    /// What to call it.
    pub(super) name: String,
    /// Its length.
    pub(super) seconds: f64,
    /// What the surroundings did meanwhile.
    pub(super) quality: &'a Quality,
    /// What the devices were handed, if that is known.
    pub(super) storage: Option<&'a StorageSide>,
    /// Whether it read.
    pub(super) reads: bool,
    /// Whether it is a load past the page cache; one through it is always bound by its worker.
    pub(super) direct_load: bool,
    /// The latencies that are shown of it, each with a name.
    pub(super) timed: Vec<(String, &'a Latency)>,
}

/// Bytes in one direction, seen from both sides.
#[derive(Debug)]
pub(super) struct Flow {
    /// What to call it.
    pub(super) name: String,
    /// Whether the page cache stood between.
    pub(super) cached: bool,
    /// Operations of the application.
    pub(super) operations: u64,
    /// Their rate.
    pub(super) iops: f64,
    /// The rate at the devices.
    pub(super) storage_iops: f64,
    /// Where the bytes were.
    pub(super) balance: Balance,
}

impl<'a> Evidence<'a> {
    /// Of a check: its methods, then its loads.
    pub(super) fn of_check(document: &'a CheckDocument) -> Self {
        let sync = document.sync.iter().filter(|result| result.operations > 0).map(|result| {
            let name = wording::method(result.method).to_owned();
            Phase {
                seconds: result.seconds,
                quality: &result.quality,
                storage: result.storage.as_ref(),
                reads: false,
                direct_load: false,
                timed: result.latency.iter().map(|latency| (name.clone(), latency)).collect(),
                name,
            }
        });
        let io = document.io.iter().filter_map(|io| {
            let side = io.application.as_ref().filter(|side| side.operations > 0)?;
            Some(Phase {
                name: io.name.clone(),
                seconds: side.seconds,
                quality: &io.quality,
                storage: io.storage.as_ref(),
                reads: !wording::is_write(io),
                direct_load: !wording::is_cached(io),
                timed: side.latency.iter().map(|latency| (io.name.clone(), latency)).collect(),
            })
        });
        let flow = |io: &plumb_measure::IoResult| {
            let (side, storage) = (io.application.as_ref()?, io.storage.as_ref()?);
            Some(Flow {
                name: io.name.clone(),
                cached: wording::is_cached(io),
                operations: side.operations,
                iops: side.iops,
                storage_iops: storage.iops,
                balance: Balance::of(io)?,
            })
        };
        Self { phases: sync.chain(io).collect(), flows: document.io.iter().filter_map(flow).collect() }
    }

    /// Of a load: its targets, each with its directions.
    pub(super) fn of_load(document: &'a RunDocument) -> Self {
        let mut evidence = Self { phases: Vec::new(), flows: Vec::new() };
        for (name, target) in document.labels().into_iter().zip(&document.targets) {
            let cached = document.job_of(target).is_some_and(|job| job.caching.is_cached());
            evidence.flows.extend(flows(target, &name, cached));
            let sides = &target.sides;
            let used = sides.used();
            let title = |direction: &str| match used.as_slice() {
                [_] => name.clone(),
                _ => format!("{name}, {direction}"),
            };
            let timed: Vec<(String, &Latency)> = used
                .iter()
                .filter_map(|(direction, result)| Some((title(direction), result.latency.as_ref()?)))
                .collect();
            if timed.is_empty() {
                continue;
            }
            evidence.phases.push(Phase {
                seconds: sides.application.seconds,
                quality: &sides.quality,
                storage: sides.storage.as_ref(),
                reads: sides.read.ios > 0,
                direct_load: !cached,
                timed,
                name,
            });
        }
        evidence
    }
}

/// The reads and the writes of a target, where what the devices were handed is known.
fn flows(target: &RunTarget, name: &str, cached: bool) -> Vec<Flow> {
    let Some(storage) = &target.sides.storage else { return Vec::new() };
    let per_second = |count: u64| rate(count, &target.sides.application);
    let flow = |write: bool, direction: &DirectionResult, storage_iops: f64| {
        Some(Flow {
            name: name.to_owned(),
            cached,
            operations: direction.ios,
            iops: direction.iops,
            storage_iops,
            balance: Balance::of_direction(write, direction.bytes, &target.sides)?,
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

fn rate(count: u64, window: &ApplicationSide) -> f64 {
    if window.seconds > 0.0 { count as f64 / window.seconds } else { 0.0 }
}
