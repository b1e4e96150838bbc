//! A load as fio would have said it: each target is a job.

use serde_json::{Map, Value, json};

use super::{Moved, Times, direction, job};
use crate::document::{DirectionResult, Part, RunRecording, RunTarget};

/// The recording in fio's shape.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn load(recording: &RunRecording) -> Result<String, serde_json::Error> {
    let document = &recording.document;
    let jobs: Vec<Value> = (0..document.targets.len()).map(|index| target_job(recording, index)).collect();
    super::root(&document.environment.plumb, &document.environment.started_at, &jobs)
}

fn target_job(recording: &RunRecording, index: usize) -> Value {
    let document = &recording.document;
    let target = &document.targets[index];
    let sides = &target.sides;
    let seconds = sides.application.seconds;
    let depth = sides.depth.and_then(|depth| u32::try_from(depth).ok()).unwrap_or(1);
    let label = document.label_of(index);
    let mut job = job(&label, options(recording, target, &label, depth), seconds, depth);
    let parts = [
        ("read", &sides.read, Part::Read),
        ("write", &sides.write, Part::Write),
        ("trim", &sides.trim, Part::Trim),
    ];
    for (name, result, part) in parts {
        let moved = Moved { ios: result.ios, bytes: result.bytes, seconds };
        let times = Times::of(recording.histogram(index, part), result.latency.as_ref());
        job.insert(name.into(), direction(result.is_used().then_some(moved), &times));
    }
    let sync = Times::of(recording.histogram(index, Part::Sync), sides.sync.latency.as_ref());
    job.insert("sync".into(), json!({ "total_ios": sides.sync.ios, "lat_ns": sync.value }));
    let share = |seconds_used: f64| if seconds > 0.0 { seconds_used / seconds * 100.0 } else { 0.0 };
    if let Some(cpu) = sides.cpu {
        job.insert("usr_cpu".into(), json!(share(cpu.user)));
        job.insert("sys_cpu".into(), json!(share(cpu.system)));
    }
    let errors = [&sides.read, &sides.write, &sides.trim, &sides.sync].iter().any(|result| result.errors > 0);
    job.insert("error".into(), json!(if errors { 5 } else { 0 }));
    Value::Object(job)
}

fn options(recording: &RunRecording, target: &RunTarget, label: &str, depth: u32) -> Map<String, Value> {
    let job = recording.document.job_of(target);
    let sides = &target.sides;
    let used = |direction: &DirectionResult| direction.is_used();
    let rw = match (used(&sides.read), used(&sides.write), used(&sides.trim)) {
        (true, true, _) => "randrw",
        (false, true, _) => "randwrite",
        (false, false, true) => "randtrim",
        _ => "randread",
    };
    let direct = job.is_some_and(|job| !job.caching.is_cached());
    let block = sides.application.io_bytes_mean.unwrap_or(0.0).round() as u64;
    [
        ("name", label.to_owned()),
        ("filename", target.opened.clone()),
        ("rw", rw.to_owned()),
        ("bs", block.to_string()),
        ("iodepth", depth.to_string()),
        ("numjobs", job.map_or(1, |job| job.threads).to_string()),
        ("size", target.range_bytes.to_string()),
        ("direct", u8::from(direct).to_string()),
        ("ioengine", target.engine.clone()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::String(value)))
    .collect()
}
