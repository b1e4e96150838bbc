//! A check as fio would have said it.

use plumb_measure::{ApplicationSide, IoResult, SyncMethod, SyncResult};
use serde_json::{Map, Value, json};

use super::{Moved, Times, direction, job};
use crate::recording::CheckRecording;
use crate::wording;

/// The block of the durable writes.
const SYNC_BLOCK: u64 = 4096;

/// The recording in fio's shape.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn check(recording: &CheckRecording) -> Result<String, serde_json::Error> {
    let document = &recording.document;
    let sync =
        document.sync.iter().filter(|result| result.operations > 0).map(|result| sync_job(recording, result));
    let io = document.io.iter().filter_map(|io| {
        Some(io_job(recording, io, io.application.as_ref().filter(|side| side.operations > 0)?))
    });
    let jobs: Vec<Value> = sync.chain(io).collect();
    super::root(&document.environment.plumb, &document.environment.started_at, &jobs)
}

fn sync_job(recording: &CheckRecording, result: &SyncResult) -> Value {
    let name = wording::method(result.method);
    let one_call = result.sync_latency.is_none();
    let part = |part: &str| recording.histograms.get(&format!("{name}/{part}"));
    let whole = recording.histograms.get(name);
    let write = if one_call {
        Times::of(whole, result.latency.as_ref())
    } else {
        Times::of(part("write"), result.write_latency.as_ref())
    };
    let sync = Times::of(part("sync"), result.sync_latency.as_ref());
    let mut options = options(recording, name, "write", SYNC_BLOCK, 1);
    match result.method {
        SyncMethod::OverwriteFdatasync | SyncMethod::AppendFdatasync => {
            options.insert("fdatasync".into(), json!("1"))
        }
        SyncMethod::DirectDsync => {
            options.insert("direct".into(), json!("1"));
            options.insert("sync".into(), json!("dsync"))
        }
    };
    let bytes = result.operations.saturating_mul(SYNC_BLOCK);
    let moved = Moved { ios: result.operations, bytes, seconds: result.seconds };
    let mut job = job(name, options, result.seconds, 1);
    job.insert("read".into(), direction(None, &Times::none()));
    job.insert("write".into(), direction(Some(moved), &write));
    job.insert("trim".into(), direction(None, &Times::none()));
    job.insert(
        "sync".into(),
        json!({ "total_ios": if one_call { 0 } else { result.operations }, "lat_ns": sync.value }),
    );
    Value::Object(job)
}

fn io_job(recording: &CheckRecording, io: &IoResult, side: &ApplicationSide) -> Value {
    let write = wording::is_write(io);
    let times = Times::of(recording.histograms.get(&io.name), side.latency.as_ref());
    let moved = Moved { ios: side.operations, bytes: side.bytes, seconds: side.seconds };
    let rw = if write { "randwrite" } else { "randread" };
    let mut options = options(recording, &io.name, rw, io.block_bytes, io.depth);
    options.insert("direct".into(), json!(if wording::is_cached(io) { "0" } else { "1" }));
    let mut job = job(&io.name, options, side.seconds, io.depth);
    let (mut reads, mut writes) = (direction(None, &Times::none()), direction(None, &Times::none()));
    *(if write { &mut writes } else { &mut reads }) = direction(Some(moved), &times);
    job.insert("read".into(), reads);
    job.insert("write".into(), writes);
    job.insert("trim".into(), direction(None, &Times::none()));
    job.insert("sync".into(), json!({ "total_ios": 0, "lat_ns": Times::none().value }));
    Value::Object(job)
}

fn options(recording: &CheckRecording, name: &str, rw: &str, block: u64, depth: u32) -> Map<String, Value> {
    let mut options = Map::new();
    for (key, value) in [
        ("name", name.to_owned()),
        ("directory", recording.document.target.clone()),
        ("rw", rw.to_owned()),
        ("bs", block.to_string()),
        ("iodepth", depth.to_string()),
        ("numjobs", "1".to_owned()),
        ("size", recording.document.environment.file_bytes.to_string()),
    ] {
        options.insert(key.to_owned(), Value::String(value));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_shape_is_that_of_fio() {
        let recording = CheckRecording::without_distributions(fixture::virtual_machine());
        let value: Value = serde_json::from_str(&check(&recording).unwrap()).unwrap();
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
