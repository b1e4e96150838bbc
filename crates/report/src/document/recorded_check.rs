//! Check recorded before its document contained a run: `plumb/check/1` without `spans`. Such documents are
//! only read.
//!
//! Each phase becomes a span with one job on one target, in the order in which the phases ran, which is also
//! the order of their distributions and time series.

use plumb_block::{Caching, SyncMethod};
use plumb_measure::{ApplicationSide, IoResult, SyncResult};
use plumb_path::{Finding, WritePath};
use serde::Deserialize;

use super::run::{Account, Environment, RunDocument, RunKind, RunTarget};
use super::sides::{DirectionResult, Sides};
use super::span::{FlushMethod, RunJob, RunSpan};
use crate::{quantity, wording};

/// Bytes of each durable write that a check makes.
const SYNC_BLOCK: u64 = 4096;
/// Engine of requests to a drive in this process.
const SIMULATION: &str = "simulation";
/// Engine of durable writes and of cached requests.
const CALLS: &str = "pread/pwrite";
/// Order of the loads in a check without accounts.
const LOADS: [&str; 4] = ["read-direct", "write-direct", "read-cached", "write-cached"];

/// Result of a check in a document without `spans`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RecordedCheck {
    target: String,
    complete: bool,
    incomplete_because: Option<String>,
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    level: String,
    #[serde(default)]
    headline: String,
    path: WritePath,
    sync: Vec<SyncResult>,
    /// Loads by name; see [`RecordedCheck::loads_as_run`].
    io: Vec<IoResult>,
    #[serde(default)]
    accounting: Vec<Account>,
    #[serde(default)]
    workload: String,
    verdicts: Vec<Finding>,
    environment: Environment,
    run_directory: Option<String>,
}

impl RecordedCheck {
    /// Takes the loads in the order in which they ran, according to the accounts of the phases.
    fn loads_as_run(&mut self) -> Vec<IoResult> {
        let place = |name: &str| {
            let account = self.accounting.iter().position(|account| account.phase == name);
            account.or_else(|| LOADS.iter().position(|load| *load == name)).unwrap_or(usize::MAX)
        };
        let mut loads = std::mem::take(&mut self.io);
        loads.sort_by_key(|load| place(&load.name));
        loads
    }
}

impl From<RecordedCheck> for RunDocument {
    fn from(mut check: RecordedCheck) -> Self {
        let mut run = Self::empty(RunKind::Check);
        let loads = check.loads_as_run();
        let environment = &check.environment;
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
        for result in loads {
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
            seed: check.environment.seed.unwrap_or_default(),
            environment: check.environment,
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

/// Returns the job of a phase that measures the cost of a durable write: one writer, which waits for each.
fn job_of_method(method: SyncMethod) -> RunJob {
    let direct = method == SyncMethod::DirectDsync;
    RunJob {
        name: wording::method(method).to_owned(),
        description: format!("durable writes of {}", quantity::bytes(SYNC_BLOCK as f64)),
        method: Some(method),
        block_bytes: Some(SYNC_BLOCK),
        threads: 1,
        caching: if direct { Caching::Direct } else { Caching::Cached },
        flush: match method {
            SyncMethod::OverwriteFdatasync | SyncMethod::AppendFdatasync => Some(FlushMethod::Fdatasync),
            SyncMethod::OverwriteFsync => Some(FlushMethod::Fsync),
            SyncMethod::DirectDsync => None,
        },
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
    // If one call writes and syncs, its time is that of the write.
    let one_call = result.method == SyncMethod::DirectDsync;
    let write = DirectionResult::from_side(&application, Vec::new());
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

fn io_sides(result: &IoResult) -> Sides {
    let application = result.application.clone().unwrap_or_default();
    let direction = DirectionResult::from_side(&application, Vec::new());
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
