//! Document of `plumb check --json`: a run document with two tables of its figures.
//!
//! `sync` holds a row for each job that measures a method to make a write durable, `io` one for each other
//! job. The tables are only written: readers use the run document.

use plumb_block::SyncMethod;
use plumb_measure::{IoResult, SyncResult};
use serde::Serialize;

use super::run::{RunDocument, RunTarget};
use super::span::RunJob;

/// Run document, and the tables of a check.
#[derive(Debug, Clone, Serialize)]
pub struct CheckDocument {
    #[serde(flatten)]
    run: RunDocument,
    /// Cost of a durable write, by method.
    sync: Vec<SyncResult>,
    /// Application and storage side of each load, ordered by name.
    io: Vec<IoResult>,
}

impl CheckDocument {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/check/1";
}

impl From<&RunDocument> for CheckDocument {
    fn from(run: &RunDocument) -> Self {
        let phases = || run.targets.iter().filter_map(|target| Some((target, run.job_of(target)?)));
        let mut run_of_check = run.clone();
        run_of_check.target = run.names().join(", ");
        // The schema promises these fields, and a path that is not null.
        run_of_check.path.get_or_insert_default();
        let environment = &mut run_of_check.environment;
        environment.seed = Some(run.seed);
        environment.file_bytes.get_or_insert(0);
        environment.engine.get_or_insert_default();
        let loads = phases().filter(|(_, job)| job.method.is_none());
        let mut io: Vec<IoResult> = loads.map(|(target, job)| io_result(target, job)).collect();
        io.sort_by(|one, other| one.name.cmp(&other.name));
        let sync = phases().filter_map(|(target, job)| Some(sync_result(job.method?, target)));
        Self { sync: sync.collect(), io, run: run_of_check }
    }
}

fn sync_result(method: SyncMethod, target: &RunTarget) -> SyncResult {
    let sides = &target.sides;
    // A write whose flush completed after the end was not observed to become durable.
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
