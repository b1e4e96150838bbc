//! Application and storage side of a run, on one target or on all.

use plumb_measure::{ApplicationSide, Latency, Quality, StorageSide, VerifyResult};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Requests to a target and their results: the application side by direction, and the storage side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sides {
    /// Reads, writes and trims together.
    pub application: ApplicationSide,
    /// Reads.
    pub read: DirectionResult,
    /// Writes. Each is timed until it was acknowledged, which does not imply durability.
    pub write: DirectionResult,
    /// Trims.
    pub trim: DirectionResult,
    /// Flushes requested by the load; null if their number is unknown.
    #[serde(serialize_with = "counted", deserialize_with = "counted_or_unknown")]
    pub sync: DirectionResult,
    /// Reason why percentiles of a latency are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentiles_unknown_because: Option<String>,
    /// Latency from the first write of each group, with a schedule from its intended start, to the end of the
    /// flush that made it durable; null without flushes.
    pub durable_latency: Option<Latency>,
    /// Requested number of requests in flight, of all workers together; null if it is not fixed.
    pub depth: Option<u64>,
    /// Number of threads, shared by all targets of a span; null if unknown, as for several spans or hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// Maximum number of requests in flight.
    pub in_flight_max: u64,
    /// Requests to the underlying devices in the same window. Targets on one device share them.
    pub storage: Option<StorageSide>,
    /// Reason why `storage` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_unknown_because: Option<String>,
    /// Bytes still dirty at the end, for writes through the page cache.
    pub dirty_bytes_after: Option<u64>,
    /// Adherence to the schedule; null without one.
    pub schedule: Option<ScheduleResult>,
    /// Results of reading back; null without verification.
    pub verified: Option<VerifyResult>,
    /// Processor time of the workers; null if unknown.
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
    /// Completed operations.
    pub ios: u64,
    /// Bytes of these operations.
    pub bytes: u64,
    /// Completed operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Service time; null if none completed.
    pub latency: Option<Latency>,
    /// Time since the intended start; null without a schedule.
    pub latency_from_intended_start: Option<Latency>,
    /// Failed operations.
    pub errors: u64,
    /// Failed operations by kind of failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors_by: Vec<ErrorCount>,
    /// True if operations were requested but not counted: the figures are 0 then.
    #[serde(skip)]
    pub is_uncounted: bool,
}

/// Serialises the operations of a direction, as null if they were not counted.
fn counted<S: Serializer>(result: &DirectionResult, serializer: S) -> Result<S::Ok, S::Error> {
    Some(result).filter(|result| !result.is_uncounted).serialize(serializer)
}

/// Deserialises the output of [`counted`].
fn counted_or_unknown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DirectionResult, D::Error> {
    let uncounted = DirectionResult { is_uncounted: true, ..DirectionResult::default() };
    Ok(Option::deserialize(deserializer)?.unwrap_or(uncounted))
}

/// Number of failed operations with one error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// Error: `Input/output error (5)`, `no answer`, `power lost`.
    pub error: String,
    /// Number of operations.
    pub count: u64,
}

/// Discards at the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Discards {
    /// Number of discards.
    pub(crate) count: u64,
    /// Discarded bytes.
    pub(crate) bytes: u64,
}

/// Adherence to a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScheduleResult {
    /// Operations that started more than one interval late.
    pub late_starts: u64,
    /// Maximum delay of a start after the intended time, in seconds.
    pub backlog_max: f64,
    /// Operations that should have started and did not. They have no latency, and count as the result.
    pub unstarted: u64,
}

/// Processor time in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSeconds {
    /// Time in user mode.
    pub user: f64,
    /// Time in the kernel.
    pub system: f64,
}

impl Sides {
    /// Creates sides with only the application side known.
    pub fn of_application(application: ApplicationSide) -> Self {
        Self { application, ..Self::default() }
    }

    /// Returns the requested directions that move blocks, with their names.
    pub fn moving(&self) -> Vec<(&'static str, &DirectionResult)> {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim)]
            .into_iter()
            .filter(|(_, direction)| direction.is_used())
            .collect()
    }

    /// Returns all requested directions, flushes last.
    pub fn used(&self) -> Vec<(&'static str, &DirectionResult)> {
        let mut used = self.moving();
        used.extend(Some(("sync", &self.sync)).filter(|(_, sync)| sync.is_used()));
        used
    }

    /// Returns the number of operations that made something durable: syncs; without any, writes.
    pub fn syncs(&self) -> u64 {
        if self.sync.is_used() { self.sync.ios } else { self.write.ios }
    }

    /// Returns true if all operations are writes, each followed by its own sync. The last write in flight may
    /// lack one.
    pub fn is_synced_one_by_one(&self) -> bool {
        let durable = self.durable_latency.map_or(0, |latency| latency.count);
        self.is_one_for_each_write(self.sync.ios) && self.is_one_for_each_write(durable)
    }

    /// Returns true if all operations are writes, and `count` matches their number.
    fn is_one_for_each_write(&self, count: u64) -> bool {
        let is_each = count > 0 && count.saturating_add(self.in_flight_max.max(1)) >= self.write.ios;
        is_each && self.read.ios + self.trim.ios == 0
    }

    /// Returns true if writes were synced but the time of both together is unknown, as in results of other
    /// programs, which have separate times of writes and syncs.
    pub fn lacks_durable_latency(&self) -> bool {
        self.write.ios > 0 && self.sync.ios > 0 && self.durable_latency.is_none()
    }

    /// Returns true if writes were synced, and the latency of an operation does not include the syncs.
    pub fn has_separate_syncs(&self) -> bool {
        self.write.ios > 0 && self.sync.ios > 0 && !self.is_synced_one_by_one()
    }

    /// Returns true if anything was written or synced, or operations of unknown direction completed.
    pub(crate) fn may_have_written(&self) -> bool {
        let known = self.read.ios.saturating_add(self.trim.ios);
        let is_synced = self.sync.is_used() || self.durable_latency.is_some();
        self.write.ios > 0 || is_synced || self.application.operations > known
    }

    /// Returns true if the application side was observed. I/O that a program does by itself is not; only its
    /// transactions are.
    pub(crate) fn is_application_seen(&self) -> bool {
        self.application.operations > 0 || self.application.errors > 0 || self.durable_latency.is_none()
    }

    /// Returns the completed discards of the devices, with their bytes; `None` if there are none.
    pub(crate) fn discards(&self) -> Option<Discards> {
        let devices = || self.storage.iter().flat_map(|storage| &storage.devices);
        let count = devices().map(|device| device.discards).fold(0, u64::saturating_add);
        let bytes = devices().map(|device| device.discard_bytes.0).fold(0, u64::saturating_add);
        (count > 0).then_some(Discards { count, bytes })
    }

    /// Returns the name of the operations: `synced` if all are writes that are each synced.
    pub(crate) fn operations_name(&self, synced: &'static str) -> &'static str {
        let is_apart = self.lacks_durable_latency() && self.is_one_for_each_write(self.sync.ios);
        if is_apart || self.is_synced_one_by_one() { synced } else { "operations" }
    }

    /// Returns the latency of a complete operation: for writes that are each synced that of write and sync
    /// together; with a schedule since the intended start. All reports and comparisons use it.
    pub fn operation_latency(&self) -> Option<Latency> {
        let durable = self.durable_latency.filter(|_| self.is_synced_one_by_one());
        durable.or(self.application.operation_latency())
    }

    /// Returns the service time if the latency counts from the intended start; `None` without a schedule.
    pub(crate) fn service_time(&self) -> Option<Latency> {
        self.application.latency_from_intended_start.and(self.application.latency)
    }

    /// Returns the run's flushes per sync; `None` if they were not counted or cannot be distinguished from
    /// those of other programs, or nothing completed.
    pub fn flushes_per_sync(&self) -> Option<f64> {
        let flushes = self.storage.as_ref()?.own_flushes()?;
        let syncs = self.syncs();
        (syncs > 0).then(|| flushes as f64 / syncs as f64)
    }

    /// Returns the reason why the flushes of the devices are unknown.
    pub fn flushes_unknown_because(&self) -> &str {
        match (&self.storage, &self.storage_unknown_because) {
            (Some(_), _) => "this kernel does not count flushes (it does since 5.5)",
            (None, Some(why)) => why,
            (None, None) => "the devices could not be read",
        }
    }

    /// Returns the processor seconds per million operations; `None` if unknown.
    pub fn cpu_per_million(&self) -> Option<f64> {
        let cpu = self.cpu?;
        let operations = self.application.operations;
        (operations > 0).then(|| (cpu.user + cpu.system) / operations as f64 * 1e6)
    }
}

impl DirectionResult {
    /// Creates the result from the measurements of the workers in one direction.
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

    /// Returns the latency of an operation, by the rule of [`ApplicationSide::operation_latency`].
    pub fn operation_latency(&self) -> Option<Latency> {
        self.latency_from_intended_start.or(self.latency)
    }

    /// Returns the service time if the latency counts from the intended start; `None` without a schedule.
    pub(crate) fn service_time(&self) -> Option<Latency> {
        self.latency_from_intended_start.and(self.latency)
    }

    /// Returns true if any operation of this direction completed or failed.
    pub fn is_used(&self) -> bool {
        self.ios > 0 || self.errors > 0
    }
}
