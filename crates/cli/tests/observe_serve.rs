//! Tests of `plumb observe --serve` on a loop device of the test: syncs of a program are in the metrics with
//! device, process and cgroup, and among the slowest events. SIGTERM ends it and leaves nothing behind.

use std::fs::File;
use std::io::{BufRead as _, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use plumb_linux::tracing::{Instance, LeftInstance, Tracefs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{holds, plumb};
use crate::load_support::{LoopDevice, Place, start, wait_for};

/// Number of writes, each with an fdatasync.
const WRITES: usize = 25;

/// Returns the body of a page.
fn page(socket: &Path, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: plumb\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Returns the value of the first sample that begins with `name` and has these labels.
fn sample(metrics: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let is_it = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
    metrics.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}

#[test]
fn syncs_are_served_as_metrics_until_sigterm() {
    if let Err(why) = Tracefs::open().and_then(|tracefs| Instance::make(&tracefs, "probe")) {
        return plumb_testkit::skip(&format!("no tracing: {why}"));
    }
    let place = Place::new();
    let image = place.run_image();
    File::options().write(true).open(&image).unwrap().set_len(16 << 20).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    let socket = place.path("metrics");
    let mut command = plumb();
    command.args(["observe", &device.path, "--exposure", "--slow", "1ns", "--serve"]).arg(&socket);
    let mut serving = start(&mut command);
    let mut said = wait_for("metrics at", &mut serving);
    let file = File::options().write(true).open(&device.path).unwrap();
    for number in 0..WRITES {
        file.write_all_at(&[7; 8192], number as u64 * 65536).unwrap();
        file.sync_data().unwrap();
    }
    // The first line about a slow event comes with the events of the same reading.
    let mut line = String::new();
    while !line.contains("fdatasync") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    assert!(line.contains(" meanwhile: ") && line.contains(&device.path), "{line}");
    let name = device.path.trim_start_matches("/dev/");
    let (device_label, sync) = (format!("device=\"{name}\""), "time=\"sync\"");
    let count = "plumb_observe_device_duration_seconds_count";
    let metrics = loop {
        let metrics = page(&socket, "/metrics");
        if sample(&metrics, count, &[&device_label, sync]) >= Some(WRITES as f64) {
            break metrics;
        }
    };
    for time in ["write", "flush"] {
        let label = format!("time=\"{time}\"");
        let seen = sample(&metrics, count, &[&device_label, &label]);
        assert!(seen >= Some(WRITES as f64), "{time}: {seen:?} in {metrics}");
    }
    for name in ["process", "cgroup"] {
        let count = format!("plumb_observe_{name}_duration_seconds_count");
        assert!(sample(&metrics, &count, &[sync]) >= Some(WRITES as f64), "{name}: {metrics}");
    }
    assert_eq!(sample(&metrics, "plumb_observe_events_lost_total", &[]), Some(0.0));
    assert!(sample(&metrics, "plumb_exposure_complete", &[]).is_some(), "{metrics}");
    let slow: Value = serde_json::from_str(&page(&socket, "/slow")).unwrap();
    holds("slow", &slow);
    let events = slow["events"].as_array().unwrap();
    let of_this = |event: &&Value| event["operation"] == "fdatasync" && event["pid"] == std::process::id();
    let event = events.iter().find(of_this).unwrap_or_else(|| panic!("{slow:#}"));
    assert_eq!((&event["file"], &event["device"]), (&device.path.as_str().into(), &name.into()));
    assert!(event["device_then"]["flushes"].as_u64() > Some(0), "{event:#}");
    let process = serving.id();
    kill_process(Pid::from_child(&serving), Signal::TERM).unwrap();
    // Read all messages, so that the program never blocks.
    said.read_to_string(&mut line).unwrap();
    assert_eq!(serving.wait().unwrap().code(), Some(0), "{line}");
    assert!(!socket.exists());
    let left = LeftInstance::all().into_iter().map(|left| left.name());
    assert_eq!(left.filter(|name| name.contains(&format!("-{process}-"))).count(), 0);
}
