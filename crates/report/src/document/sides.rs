//! The two sides of a run on one target, or on all of them.

use plumb_measure::{ApplicationSide, Latency, Quality, StorageSide, VerifyResult};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Requests to a target and their results: the application's side by direction, and the storage's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sides {
    /// Reads, writes and trims together.
    pub application: ApplicationSide,
    /// Reads.
    pub read: DirectionResult,
    /// Writes; each is timed until it was acknowledged, which says nothing about durability.
    pub write: DirectionResult,
    /// Trims.
    pub trim: DirectionResult,
    /// Flushes that the load asked for; null if it is not known how many were made.
    #[serde(serialize_with = "counted", deserialize_with = "counted_or_unknown")]
    pub sync: DirectionResult,
    /// Reason why percentiles of a latency are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentiles_unknown_because: Option<String>,
    /// From the first write of each group, with a schedule from its intended start, to the end of the flush
    /// that made it durable; null without flushes.
    pub durable_latency: Option<Latency>,
    /// Requests asked to be in flight, all workers together; null if that is not fixed.
    pub depth: Option<u64>,
    /// Threads that worked on it, all targets of a span together; null if it is not known, as of several
    /// spans or hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// The most that were in flight at once.
    pub in_flight_max: u64,
    /// Requests that the underlying devices received in the same seconds; targets on one device share it.
    pub storage: Option<StorageSide>,
    /// Reason why `storage` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_unknown_because: Option<String>,
    /// For writes through the page cache: bytes still dirty at the end.
    pub dirty_bytes_after: Option<u64>,
    /// How well the schedule was kept; null without one.
    pub schedule: Option<ScheduleResult>,
    /// Results of reading back; null without verification.
    pub verified: Option<VerifyResult>,
    /// Processor time of the workers; null if it is not known.
    pub cpu: Option<CpuSeconds>,
    /// Reason why `cpu` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_unknown_because: Option<String>,
    /// Influence of the surroundings during the measurement.
    pub quality: Quality,
}

/// Operations of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionResult {
    /// Operations that completed.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Completed operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Service time; null if none completed.
    pub latency: Option<Latency>,
    /// Time since the intended start; null without a schedule.
    pub latency_from_intended_start: Option<Latency>,
    /// Operations that failed.
    pub errors: u64,
    /// Failed operations by kind of failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors_by: Vec<ErrorCount>,
    /// True if operations were asked for and nobody counted them: the figures are then 0.
    #[serde(skip)]
    pub is_uncounted: bool,
}

/// Writes the operations of a direction, and null if nobody counted them.
fn counted<S: Serializer>(result: &DirectionResult, serializer: S) -> Result<S::Ok, S::Error> {
    Some(result).filter(|result| !result.is_uncounted).serialize(serializer)
}

/// Reads what [`counted`] writes.
fn counted_or_unknown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DirectionResult, D::Error> {
    let uncounted = DirectionResult { is_uncounted: true, ..DirectionResult::default() };
    Ok(Option::deserialize(deserializer)?.unwrap_or(uncounted))
}

/// Operations that failed in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// How: `Input/output error (5)`, `no answer`, `power lost`.
    pub error: String,
    /// How many.
    pub count: u64,
}

/// Discards at the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Discards {
    /// How many.
    pub(crate) count: u64,
    /// Bytes that they discarded.
    pub(crate) bytes: u64,
}

/// How well a schedule was kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScheduleResult {
    /// Operations that started more than one interval late.
    pub late_starts: u64,
    /// The longest that an operation started after its intended time, in seconds.
    pub backlog_max: f64,
    /// Operations that were meant to start and did not: they have no latency, and that is the measurement.
    pub unstarted: u64,
}

/// Processor time in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSeconds {
    /// In the program.
    pub user: f64,
    /// In the kernel on its behalf.
    pub system: f64,
}

impl Sides {
    /// Creates sides of which only what the application saw is known.
    pub fn of_application(application: ApplicationSide) -> Self {
        Self { application, ..Self::default() }
    }

    /// Returns the directions that move blocks with their names; those of which nothing was asked are left
    /// out.
    pub fn moving(&self) -> Vec<(&'static str, &DirectionResult)> {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim)]
            .into_iter()
            .filter(|(_, direction)| direction.is_used())
            .collect()
    }

    /// Returns all directions of which something was asked, flushes last.
    pub fn used(&self) -> Vec<(&'static str, &DirectionResult)> {
        let mut used = self.moving();
        used.extend(Some(("sync", &self.sync)).filter(|(_, sync)| sync.is_used()));
        used
    }

    /// Returns the operations that made something durable: syncs; without any, writes.
    pub fn syncs(&self) -> u64 {
        if self.sync.is_used() { self.sync.ios } else { self.write.ios }
    }

    /// Returns whether all that was done are writes that were each followed by a sync of their own. The last
    /// write in flight may be without.
    pub fn is_synced_one_by_one(&self) -> bool {
        let durable = self.durable_latency.map_or(0, |latency| latency.count);
        self.is_one_for_each_write(self.sync.ios) && self.is_one_for_each_write(durable)
    }

    /// Returns whether all that was done are writes, and `count` is one for each of them.
    fn is_one_for_each_write(&self, count: u64) -> bool {
        let is_each = count > 0 && count.saturating_add(self.in_flight_max.max(1)) >= self.write.ios;
        is_each && self.read.ios + self.trim.ios == 0
    }

    /// Returns whether writes were synced, and the time of both together is not known: a result of another
    /// program has the times of writes and of syncs, each apart.
    pub fn lacks_durable_latency(&self) -> bool {
        self.write.ios > 0 && self.sync.ios > 0 && self.durable_latency.is_none()
    }

    /// Returns whether anything was written, synced, or done of which it is not known whether it was a write.
    pub(crate) fn may_have_written(&self) -> bool {
        let known = self.read.ios.saturating_add(self.trim.ios);
        let is_synced = self.sync.is_used() || self.durable_latency.is_some();
        self.write.ios > 0 || is_synced || self.application.operations > known
    }

    /// Returns whether the application's side was seen. The I/O that a program does by itself is not: only
    /// its transactions are.
    pub(crate) fn is_application_seen(&self) -> bool {
        self.application.operations > 0 || self.application.errors > 0 || self.durable_latency.is_none()
    }

    /// Returns the discards that the devices completed, with their bytes; `None` if there are none.
    pub(crate) fn discards(&self) -> Option<Discards> {
        let devices = || self.storage.iter().flat_map(|storage| &storage.devices);
        let count = devices().map(|device| device.discards).fold(0, u64::saturating_add);
        let bytes = devices().map(|device| device.discard_bytes.0).fold(0, u64::saturating_add);
        (count > 0).then_some(Discards { count, bytes })
    }

    /// Returns the name of the operations: what are all writes, and synced each, are `synced`.
    pub(crate) fn operations_name(&self, synced: &'static str) -> &'static str {
        let is_apart = self.lacks_durable_latency() && self.is_one_for_each_write(self.sync.ios);
        if is_apart || self.is_synced_one_by_one() { synced } else { "operations" }
    }

    /// Returns the latency of an operation until it is done: of writes that are each synced, write and sync
    /// together; with a schedule since the intended start. Every report and comparison goes by it.
    pub fn operation_latency(&self) -> Option<Latency> {
        let durable = self.durable_latency.filter(|_| self.is_synced_one_by_one());
        durable.or(self.application.operation_latency())
    }

    /// Returns the service time beside a latency since the intended start; `None` without a schedule.
    pub(crate) fn service_time(&self) -> Option<Latency> {
        self.application.latency_from_intended_start.and(self.application.latency)
    }

    /// Returns the flushes of the run for each sync; `None` if they were not counted or cannot be told from
    /// those of other programs, or nothing completed.
    pub fn flushes_per_sync(&self) -> Option<f64> {
        let flushes = self.storage.as_ref()?.own_flushes()?;
        let syncs = self.syncs();
        (syncs > 0).then(|| flushes as f64 / syncs as f64)
    }

    /// Returns why the flushes of the devices are not known, where they are not.
    pub fn flushes_unknown_because(&self) -> &str {
        match (&self.storage, &self.storage_unknown_because) {
            (Some(_), _) => "this kernel does not count flushes (it does since 5.5)",
            (None, Some(why)) => why,
            (None, None) => "the devices could not be read",
        }
    }

    /// Returns the processor seconds for each million operations; `None` if not known.
    pub fn cpu_per_million(&self) -> Option<f64> {
        let cpu = self.cpu?;
        let operations = self.application.operations;
        (operations > 0).then(|| (cpu.user + cpu.system) / operations as f64 * 1e6)
    }
}

impl DirectionResult {
    /// Creates the side from what the workers saw of one direction.
    pub fn from_side(side: &ApplicationSide, errors_by: Vec<ErrorCount>) -> Self {
        Self {
            ios: side.operations,
            bytes: side.bytes,
            iops: side.iops,
            bytes_per_second: side.bytes_per_second,
            latency: side.latency,
            latency_from_intended_start: side.latency_from_intended_start,
            errors: side.errors,
            errors_by,
            is_uncounted: false,
        }
    }

    /// Returns the latency of an operation, as [`ApplicationSide::operation_latency`].
    pub fn operation_latency(&self) -> Option<Latency> {
        self.latency_from_intended_start.or(self.latency)
    }

    /// Returns the service time beside a latency since the intended start; `None` without a schedule.
    pub(crate) fn service_time(&self) -> Option<Latency> {
        self.latency_from_intended_start.and(self.latency)
    }

    /// Returns true if anything of this direction completed or failed.
    pub fn is_used(&self) -> bool {
        self.ios > 0 || self.errors > 0
    }
}
