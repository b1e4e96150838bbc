//! The document behind `plumb check --json`: a view of a run whose spans are the phases of a check.
//!
//! Run directories of checks hold this view, so it is read as well as written. Each phase becomes a span with one job on
//! one target; a job with a [`SyncMethod`] stands in `sync`, any other in `io`.

use plumb_block::Caching;
use plumb_measure::{ApplicationSide, IoResult, SyncMethod, SyncResult};
use plumb_path::{Finding, WritePath};
use serde::{Deserialize, Serialize};

use super::run::{Account, Environment, RunDocument, RunTarget};
use super::sides::{DirectionResult, Sides};
use super::span::{FlushMethod, RunJob, RunSpan};
use crate::{quantity, wording};

/// Bytes of each durable write that a check makes.
const SYNC_BLOCK: u64 = 4096;
/// What stands for the engine where requests go to a drive in this process.
const SIMULATION: &str = "simulation";
/// How durable writes and cached requests are made.
const CALLS: &str = "pread/pwrite";

/// All that a check learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckDocument {
    /// Always [`CheckDocument::SCHEMA`].
    pub schema: String,
    /// The directory that was checked, as given.
    pub target: String,
    /// Whether every phase ran; false in what an interrupted run left.
    pub complete: bool,
    /// Why it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_because: Option<String>,
    /// Whether it ended because something failed that should not: a flush, a device.
    #[serde(default)]
    pub failed: bool,
    /// The severity of the worst verdict: `none`, `info`, `warning` or `danger`.
    #[serde(default)]
    pub level: String,
    /// The check in one sentence: its worst finding, or what an fsync reaches.
    #[serde(default)]
    pub headline: String,
    /// The write path beneath the target.
    pub path: WritePath,
    /// The cost of a durable write, by method.
    pub sync: Vec<SyncResult>,
    /// Application beside storage, by load.
    pub io: Vec<IoResult>,
    /// As [`RunDocument::accounting`].
    #[serde(default)]
    pub accounting: Vec<Account>,
    /// Workload that was run, in plumb's own language (TOML): it can be run again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// What is wrong or worth knowing: the findings of the survey and the verdicts of the measurement.
    pub verdicts: Vec<Finding>,
    /// Where all this was measured.
    pub environment: CheckEnvironment,
    /// Where the recording is; null if it could not be kept.
    pub run_directory: Option<String>,
}

/// Where and how a check was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckEnvironment {
    /// The seed of all random choices.
    pub seed: u64,
    /// The rest, as it stands in every run.
    #[serde(flatten)]
    pub run: Environment,
}

impl CheckDocument {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/check/1";
}

impl From<CheckDocument> for RunDocument {
    fn from(check: CheckDocument) -> Self {
        let mut run = Self::empty(CheckDocument::SCHEMA);
        let environment = &check.environment.run;
        let base = RunTarget {
            name: check.target.clone(),
            opened: check.target.clone(),
            size: environment.file_bytes.unwrap_or(0),
            range_bytes: environment.file_bytes.unwrap_or(0),
            engine: environment.engine.clone().unwrap_or_default(),
            engine_because: environment.engine_because.clone(),
            ..RunTarget::default()
        };
        for result in check.sync {
            run.add_phase(
                job_of_method(result.method),
                RunTarget {
                    sides: sync_sides(&result),
                    failed_because: result.failed_because,
                    ..base.clone()
                },
            );
        }
        for result in check.io {
            let target = RunTarget {
                range_bytes: result.range_bytes,
                failed_because: match (&result.application, &result.failed_because) {
                    (None, None) => Some("no figures were kept".to_owned()),
                    (_, why) => why.clone(),
                },
                sides: io_sides(&result),
                ..base.clone()
            };
            run.add_phase(job_of_io(&result), target);
        }
        Self {
            target: check.target,
            seed: check.environment.seed,
            environment: check.environment.run,
            complete: check.complete,
            incomplete_because: check.incomplete_because,
            failed: check.failed,
            level: check.level,
            headline: check.headline,
            path: Some(check.path),
            accounting: check.accounting,
            workload: check.workload,
            verdicts: check.verdicts,
            run_directory: check.run_directory,
            ..run
        }
    }
}

impl RunDocument {
    /// Adds a span of one job on one target.
    fn add_phase(&mut self, job: RunJob, target: RunTarget) {
        let is_call = target.engine != SIMULATION && (job.method.is_some() || job.caching == Caching::Cached);
        let (engine, engine_because) = match is_call {
            true => (CALLS.to_owned(), None),
            false => (target.engine, target.engine_because),
        };
        let seconds = target.sides.application.seconds;
        self.duration += seconds;
        let total = &mut self.total.application;
        total.operations = total.operations.saturating_add(target.sides.application.operations);
        total.bytes = total.bytes.saturating_add(target.sides.application.bytes);
        total.seconds += seconds;
        let span = self.spans.len();
        self.spans.push(RunSpan {
            duration: seconds,
            jobs: vec![job],
            total: target.sides.clone(),
            ..RunSpan::default()
        });
        self.targets.push(RunTarget { span, engine, engine_because, ..target });
    }
}

impl From<&RunDocument> for CheckDocument {
    fn from(run: &RunDocument) -> Self {
        let phases = || run.targets.iter().filter_map(|target| Some((target, run.job_of(target)?)));
        let mut environment = run.environment.clone();
        // These are promised of a check.
        environment.file_bytes.get_or_insert(0);
        environment.engine.get_or_insert_default();
        let loads = phases().filter(|(_, job)| job.method.is_none());
        let mut io: Vec<IoResult> = loads.map(|(target, job)| io_result(target, job)).collect();
        // Phases run in another order than that in which they are compared.
        io.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            schema: Self::SCHEMA.to_owned(),
            target: run.names().join(", "),
            complete: run.complete,
            incomplete_because: run.incomplete_because.clone(),
            failed: run.failed,
            level: run.level.clone(),
            headline: run.headline.clone(),
            path: run.path.clone().unwrap_or_default(),
            sync: phases().filter_map(|(target, job)| Some(sync_result(job.method?, target))).collect(),
            io,
            accounting: run.accounting.clone(),
            workload: run.workload.clone(),
            verdicts: run.verdicts.clone(),
            environment: CheckEnvironment { seed: run.seed, run: environment },
            run_directory: run.run_directory.clone(),
        }
    }
}

/// The job of a phase that measures what a durable write costs: one writer, who waits for each.
fn job_of_method(method: SyncMethod) -> RunJob {
    let direct = method == SyncMethod::DirectDsync;
    RunJob {
        name: wording::method(method).to_owned(),
        description: format!("durable writes of {}", quantity::bytes(SYNC_BLOCK as f64)),
        method: Some(method),
        block_bytes: Some(SYNC_BLOCK),
        threads: 1,
        caching: if direct { Caching::Direct } else { Caching::Cached },
        flush: (!direct).then_some(FlushMethod::Fdatasync),
        durable_write_every: direct.then_some(1),
        ..RunJob::default()
    }
}

fn job_of_io(io: &IoResult) -> RunJob {
    let what = if io.name.starts_with("write-") { "writes" } else { "reads" };
    RunJob {
        name: io.name.clone(),
        description: format!("random {what} of {}", quantity::bytes(io.block_bytes as f64)),
        block_bytes: Some(io.block_bytes),
        threads: 1,
        caching: if io.name.ends_with("-cached") { Caching::Cached } else { Caching::Direct },
        ..RunJob::default()
    }
}

fn sync_sides(result: &SyncResult) -> Sides {
    let rate = |amount: u64| if result.seconds > 0.0 { amount as f64 / result.seconds } else { 0.0 };
    let bytes = result.operations.saturating_mul(SYNC_BLOCK);
    let application = ApplicationSide {
        operations: result.operations,
        bytes,
        seconds: result.seconds,
        iops: rate(result.operations),
        bytes_per_second: rate(bytes),
        io_bytes_mean: (result.operations > 0).then_some(SYNC_BLOCK as f64),
        latency: result.latency,
        ..ApplicationSide::default()
    };
    // Where write and sync are one call, the write is what took the time.
    let one_call = result.method == SyncMethod::DirectDsync;
    let write = DirectionResult::of(&application, Vec::new());
    let sync = DirectionResult {
        ios: result.operations,
        iops: rate(result.operations),
        latency: result.sync_latency,
        ..DirectionResult::default()
    };
    Sides {
        application,
        write: if one_call { write } else { DirectionResult { latency: result.write_latency, ..write } },
        sync: if one_call { DirectionResult::default() } else { sync },
        durable_latency: result.latency,
        depth: Some(1),
        in_flight_max: 1,
        storage: result.storage.clone(),
        storage_unknown_because: result.device_flushes_unknown_because.clone(),
        quality: result.quality.clone(),
        ..Sides::default()
    }
}

fn sync_result(method: SyncMethod, target: &RunTarget) -> SyncResult {
    let sides = &target.sides;
    // A write whose flush came after the end was not seen to become durable.
    let operations = sides.durable_latency.as_ref().map_or(0, |latency| latency.count);
    let device_flushes = sides.storage.as_ref().and_then(|storage| storage.flushes);
    let two_calls = method != SyncMethod::DirectDsync;
    SyncResult {
        method,
        operations,
        latency: sides.durable_latency,
        write_latency: sides.write.latency.filter(|_| two_calls),
        sync_latency: sides.sync.latency,
        seconds: sides.application.seconds,
        device_flushes,
        device_flushes_unknown_because: device_flushes
            .is_none()
            .then(|| sides.flushes_unknown_because().to_owned()),
        flushes_per_sync: sides.flushes_per_sync(),
        storage: sides.storage.clone(),
        quality: sides.quality.clone(),
        failed_because: target.failed_because.clone(),
    }
}

fn io_sides(result: &IoResult) -> Sides {
    let application = result.application.clone().unwrap_or_default();
    let direction = DirectionResult::of(&application, Vec::new());
    let (read, write) = match result.name.starts_with("write-") {
        true => (DirectionResult::default(), direction),
        false => (direction, DirectionResult::default()),
    };
    Sides {
        application,
        read,
        write,
        depth: Some(u64::from(result.depth)),
        storage: result.storage.clone(),
        storage_unknown_because: result.storage_unknown_because.clone(),
        dirty_bytes_after: result.dirty_bytes_after,
        quality: result.quality.clone(),
        ..Sides::default()
    }
}

fn io_result(target: &RunTarget, job: &RunJob) -> IoResult {
    let sides = &target.sides;
    let unmeasured = target.failed_because.is_some() && sides.application.operations == 0;
    IoResult {
        name: job.name.clone(),
        block_bytes: job.block_bytes.unwrap_or(0),
        depth: sides.depth.and_then(|depth| u32::try_from(depth).ok()).unwrap_or(1),
        range_bytes: target.range_bytes,
        application: (!unmeasured).then(|| sides.application.clone()),
        storage: sides.storage.clone(),
        storage_unknown_because: sides.storage_unknown_because.clone(),
        dirty_bytes_after: sides.dirty_bytes_after,
        quality: sides.quality.clone(),
        failed_because: target.failed_because.clone(),
    }
}
