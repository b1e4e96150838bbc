//! Output in fio's json+ format.
//!
//! Each target is a job. fio's clat is the time of the write or read alone; the time of the fdatasync is
//! under `sync`, as in fio. Bins are named by their longest duration, in nanoseconds. Unknown values that
//! readers require as numbers (context switches, page faults) are 0. The fio dialect of plumb prints its own
//! results in the same format ([`FioJob`]).

mod job;
pub mod latency;

use plumb_block::{DeviceCounters, Nanos};
use plumb_measure::run::TimeseriesRow;
use plumb_measure::{Histogram, Latency};
use serde_json::{Map, Value, json};

pub use job::{FioDirection, FioJob, Samples};

use crate::document::{DirectionResult, FlushMethod, Part, RunDocument, RunRecording, RunTarget};
use crate::figures::bucket_seconds;

/// Default percentiles of fio.
pub const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// Length of a sector in the kernel's counters, independent of the device's block size.
pub const SECTOR: u64 = 512;
/// Number of an I/O error, for failures without a number of their own.
const EIO: i32 = 5;

/// Returns the recording in fio's format. Targets that could not be measured are left out.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn fio(recording: &RunRecording) -> Result<String, serde_json::Error> {
    let document = &recording.document;
    let jobs: Vec<Value> = document
        .labels()
        .iter()
        .zip(&document.targets)
        .enumerate()
        .filter(|(_, (_, target))| target.failed_because.is_none())
        .map(|(index, (label, _))| target_job(recording, index, label))
        .collect();
    let environment = &document.environment;
    let ended_ms = ended_ms(document);
    let root = json!({
        "fio version": format!("plumb-{}", environment.plumb),
        "timestamp": ended_ms / 1000,
        "timestamp_ms": ended_ms,
        "time": environment.started_at,
        "jobs": jobs,
        "disk_util": disk_util(document),
    });
    let mut text = serde_json::to_string_pretty(&root)?;
    text.push('\n');
    Ok(text)
}

/// Returns the end of the measurement in milliseconds since 1970, as fio reports it; 0 if unknown.
fn ended_ms(document: &RunDocument) -> u64 {
    let started = document.environment.started_at.parse::<jiff::Timestamp>();
    let started = started.ok().and_then(|at| u64::try_from(at.as_millisecond()).ok());
    started.map_or(0, |at| at.saturating_add((document.duration * 1e3).round() as u64))
}

/// Returns the counts of the devices below all targets, for all spans together, with sectors as printed by
/// fio since 3.36.
fn disk_util(document: &RunDocument) -> Vec<Value> {
    let devices = document.total.storage.iter().flat_map(|storage| &storage.devices);
    let with_sectors = devices.map(|device| {
        let mut value = disk(device, document.duration);
        value["read_sectors"] = json!(device.read_bytes.0 / SECTOR);
        value["write_sectors"] = json!(device.write_bytes.0 / SECTOR);
        value
    });
    with_sectors.collect()
}

/// Returns the counts of a device during `seconds`.
pub fn disk(device: &DeviceCounters, seconds: f64) -> Value {
    let milliseconds = |time: Nanos| time.0 / 1_000_000;
    // A recording may have been modified, so its times may be inconsistent.
    let times = [device.read_time, device.write_time, device.flush_time];
    let in_queue = times.iter().fold(0, |sum: u64, time| sum.saturating_add(time.0));
    let busy = if seconds > 0.0 { device.busy_time.as_secs_f64() * 100.0 / seconds } else { 0.0 };
    json!({
        "name": device.name,
        "read_ios": device.reads,
        "write_ios": device.writes,
        "read_merges": device.read_merges,
        "write_merges": device.write_merges,
        "read_ticks": milliseconds(device.read_time),
        "write_ticks": milliseconds(device.write_time),
        "in_queue": milliseconds(Nanos(in_queue)),
        "util": busy.min(100.0),
    })
}

fn target_job(recording: &RunRecording, index: usize, label: &str) -> Value {
    let target = &recording.document.targets[index];
    let sides = &target.sides;
    let seconds = sides.application.seconds;
    let depth = sides.depth.and_then(|depth| u32::try_from(depth).ok()).unwrap_or(1);
    // If one call writes and syncs, it counts as the write.
    let one_call = !sides.sync.is_used();
    let write = recording.histogram(index, Part::Write);
    let write = write.or_else(|| recording.histogram(index, Part::Durable).filter(|_| one_call));
    let rows = recording.series_of(index);
    let of = |result: &DirectionResult, part, histogram| {
        let latencies = recording.latencies(index, part).or(histogram);
        FioDirection {
            // Times since the intended start have their own percentiles, in addition to those of service
            // times.
            lat: times(
                latencies,
                result.operation_latency().as_ref(),
                result.latency_from_intended_start.is_some(),
            ),
            ..direction(result, seconds, histogram, rows)
        }
    };
    let percent = |used: f64| if seconds > 0.0 { used / seconds * 100.0 } else { 0.0 };
    let cpu = sides.cpu.unwrap_or_default();
    let failed = sides.used().iter().any(|(_, result)| result.errors > 0);
    let job = FioJob {
        name: label,
        group: 0,
        error: if failed { EIO } else { 0 },
        seconds,
        runtime_ms: (seconds * 1e3).round() as u64,
        options: options(recording, target, label, depth),
        user_percent: percent(cpu.user),
        system_percent: percent(cpu.system),
        depth,
        directions: [
            of(&sides.read, Part::Read, recording.histogram(index, Part::Read)),
            of(&sides.write, Part::Write, write),
            of(&sides.trim, Part::Trim, recording.histogram(index, Part::Trim)),
        ],
        syncs: sides.sync.ios,
        sync_latency: times(recording.histogram(index, Part::Sync), sides.sync.latency.as_ref(), true),
        operations: recording.histogram(index, Part::Read).or(write),
    };
    job.to_json()
}

/// Returns one direction. Samples cover all directions together, so they are included only if there was just
/// one.
fn direction(
    result: &DirectionResult,
    seconds: f64,
    histogram: Option<&Histogram>,
    rows: &[TimeseriesRow],
) -> FioDirection {
    let operations: u64 = rows.iter().map(|row| row.operations).fold(0, u64::saturating_add);
    let alone = if operations <= result.ios { rows } else { &[] };
    let width = bucket_seconds(alone);
    let per_second = |of: fn(&TimeseriesRow) -> u64| -> Vec<f64> {
        alone.iter().map(|row| of(row) as f64 / width).collect()
    };
    let bandwidths: Vec<f64> = per_second(|row| row.bytes).iter().map(|bytes| bytes / 1024.0).collect();
    FioDirection {
        operations: result.ios,
        bytes: result.bytes,
        runtime_ms: if result.is_used() { (seconds * 1e3).round() as u64 } else { 0 },
        iops: result.iops,
        bytes_per_second: result.bytes_per_second,
        clat: times(histogram, result.latency.as_ref(), true),
        lat: times(histogram, result.latency.as_ref(), false),
        bandwidth: Samples::from_values(&bandwidths),
        share: 100.0,
        rate: Samples::from_values(&per_second(|row| row.operations)),
    }
}

/// Returns the times from a distribution and the figures of the document, or from the figures alone.
fn times(histogram: Option<&Histogram>, latency: Option<&Latency>, all: bool) -> Value {
    match (histogram, latency) {
        (Some(histogram), Some(kept)) => latency::recorded(histogram, kept, all.then_some(&PERCENTILES)),
        (None, Some(latency)) => {
            let mut value = latency::of_figures(latency);
            if !all && let Value::Object(fields) = &mut value {
                fields.remove("percentile");
            }
            value
        }
        (histogram, _) => latency::object(histogram, all.then_some(&PERCENTILES), true),
    }
}

fn options(recording: &RunRecording, target: &RunTarget, label: &str, depth: u32) -> Map<String, Value> {
    let document = &recording.document;
    let job = document.job_of(target);
    let sides = &target.sides;
    let used = |direction: &DirectionResult| direction.is_used();
    let in_order = job.is_some_and(|job| job.method.is_some());
    let rw = match (used(&sides.read), used(&sides.write), used(&sides.trim)) {
        (true, true, _) => "randrw",
        (false, true, _) if in_order => "write",
        (false, true, _) => "randwrite",
        (false, false, true) => "randtrim",
        _ => "randread",
    };
    let block = job.and_then(|job| job.block_bytes).map(|block| block as f64);
    let block = block.or(sides.application.io_bytes_mean).unwrap_or(0.0).round() as u64;
    let place = if document.is_check() { "directory" } else { "filename" };
    let mut options: Map<String, Value> = Map::new();
    let mut set = |key: &str, value: String| options.insert(key.to_owned(), Value::String(value));
    set("name", label.to_owned());
    set(place, target.opened.clone());
    set("rw", rw.to_owned());
    set("bs", block.to_string());
    set("iodepth", depth.to_string());
    set("numjobs", job.map_or(1, |job| job.threads).to_string());
    set("size", target.range_bytes.to_string());
    set("direct", u8::from(job.is_some_and(|job| !job.caching.is_cached())).to_string());
    set("ioengine", target.engine.clone());
    if let Some(job) = job.filter(|job| job.method.is_some()) {
        match job.flush {
            Some(FlushMethod::Fdatasync) => set("fdatasync", "1".to_owned()),
            _ => set("sync", "dsync".to_owned()),
        };
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_shape_is_that_of_fio() {
        let recording = RunRecording::without_distributions(fixture::virtual_machine());
        let value: Value = serde_json::from_str(&fio(&recording).unwrap()).unwrap();
        let jobs = value["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 7);
        let overwrite = &jobs[0];
        assert_eq!(overwrite["job options"]["fdatasync"], "1");
        assert_eq!(overwrite["write"]["clat_ns"]["percentile"]["50.000000"], 2400);
        assert_eq!(overwrite["sync"]["lat_ns"]["percentile"]["50.000000"], 49_800);
        let read = jobs.iter().find(|job| job["jobname"] == "read-direct").unwrap();
        assert_eq!(read["read"]["total_ios"], 205_600);
        assert_eq!(read["iodepth_level"]["32"], 100.0);
        assert_eq!(read["write"]["clat_ns"]["N"], 0);
    }
}
