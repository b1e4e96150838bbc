//! The metrics of a check.

use super::Metrics;
use crate::recording::CheckRecording;
use crate::wording;

/// The metrics of a recording. The caller writes them to a temporary file and renames it.
pub fn check(recording: &CheckRecording) -> String {
    let document = &recording.document;
    let target = document.target.as_str();
    let mut out = Metrics::default();
    let environment = &document.environment;
    out.family("plumb_check_info", "gauge", "What was checked and by which version.");
    out.sample(
        "plumb_check_info",
        &[
            ("target", target),
            ("version", &environment.plumb),
            ("kernel", environment.kernel.as_deref().unwrap_or("")),
            ("engine", &environment.engine),
        ],
        1.0,
    );
    out.family("plumb_check_complete", "gauge", "Whether every phase of the check ran.");
    out.sample("plumb_check_complete", &[("target", target)], f64::from(u8::from(document.complete)));
    out.findings("plumb_check", &[("target", target)], &document.verdicts);
    durable_writes(&mut out, recording);
    loads(&mut out, recording);
    out.text
}

fn durable_writes(out: &mut Metrics, recording: &CheckRecording) {
    let document = &recording.document;
    let target = document.target.as_str();
    let measured: Vec<_> = document.sync.iter().filter(|result| result.operations > 0).collect();
    let labels = |method| [("target", target), ("method", wording::method(method))];
    if measured.is_empty() {
        return;
    }
    out.family("plumb_durable_write_operations", "gauge", "Durable writes in the window of the method.");
    for result in &measured {
        out.sample("plumb_durable_write_operations", &labels(result.method), result.operations as f64);
    }
    let known: Vec<_> =
        measured.iter().filter_map(|result| Some((result.method, result.device_flushes?))).collect();
    if !known.is_empty() {
        out.family(
            "plumb_durable_write_device_flushes",
            "gauge",
            "Flushes at the devices in the window of the method.",
        );
    }
    for (method, flushes) in known {
        out.sample("plumb_durable_write_device_flushes", &labels(method), flushes as f64);
    }
    let distributions: Vec<_> = measured
        .iter()
        .filter_map(|result| Some((result.method, recording.histograms.get(wording::method(result.method))?)))
        .collect();
    if !distributions.is_empty() {
        let help = "Time until a write was durable: write and sync together.";
        out.family("plumb_durable_write_duration_seconds", "histogram", help);
    }
    for (method, histogram) in distributions {
        out.histogram("plumb_durable_write_duration_seconds", &labels(method), histogram);
    }
}

fn loads(out: &mut Metrics, recording: &CheckRecording) {
    let document = &recording.document;
    let target = document.target.as_str();
    let sides: Vec<_> = document
        .io
        .iter()
        .flat_map(|io| {
            let application =
                io.application.as_ref().map(|side| ("application", side.iops, side.bytes_per_second));
            let storage = io.storage.as_ref().map(|side| ("storage", side.iops, side.bytes_per_second));
            [application, storage].into_iter().flatten().map(|side| (io.name.as_str(), side))
        })
        .collect();
    if !sides.is_empty() {
        out.family(
            "plumb_load_operations_per_second",
            "gauge",
            "Operations per second of a load, seen from each side.",
        );
    }
    for (load, (side, iops, _)) in &sides {
        out.sample(
            "plumb_load_operations_per_second",
            &[("target", target), ("load", load), ("side", side)],
            *iops,
        );
    }
    if !sides.is_empty() {
        out.family(
            "plumb_load_bytes_per_second",
            "gauge",
            "Bytes per second of a load, seen from each side.",
        );
    }
    for (load, (side, _, bytes)) in &sides {
        out.sample(
            "plumb_load_bytes_per_second",
            &[("target", target), ("load", load), ("side", side)],
            *bytes,
        );
    }
    let distributions: Vec<_> = document
        .io
        .iter()
        .filter_map(|io| Some((io.name.as_str(), recording.histograms.get(&io.name)?)))
        .collect();
    if !distributions.is_empty() {
        out.family("plumb_load_duration_seconds", "histogram", "Service time of the operations of a load.");
    }
    for (load, histogram) in distributions {
        out.histogram("plumb_load_duration_seconds", &[("target", target), ("load", load)], histogram);
    }
}
