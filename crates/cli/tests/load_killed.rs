//! Tests that a killed load (SIGKILL) leaves its measurements: the document, the distributions and the time
//! series are in the run directory during the run, and a report of them says that the run is incomplete.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use serde_json::Value;

use crate::common::{document, plumb, said, valid_document};
use crate::load_support::Place;

/// Starts the command, and waits until a result that satisfies `holds` is in the directory.
pub(crate) fn start_until_result(run: &Path, holds: &dyn Fn(&str) -> bool, command: &mut Command) -> Child {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, run, inotify::WatchFlags::MOVED_TO).unwrap();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&watch, "result.json");
    while !holds(&fs::read_to_string(run.join("result.json")).unwrap()) {
        wait_for(&watch, "result.json");
    }
    child
}

/// Waits until a file with this name appears in the directory. Fails after ten minutes, which no case needs.
fn wait_for(watch: &rustix::fd::OwnedFd, name: &str) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch.as_fd(), &mut buffer);
    loop {
        let mut ready = [PollFd::new(watch, PollFlags::IN)];
        let within = Timespec { tv_sec: 600, tv_nsec: 0 };
        assert!(events.is_buffer_empty() && poll(&mut ready, Some(&within)).unwrap() == 1, "no {name} came");
        loop {
            let event = events.next().unwrap();
            if event.file_name().is_some_and(|moved| moved.to_bytes() == name.as_bytes()) {
                return;
            }
            if events.is_buffer_empty() {
                break;
            }
        }
    }
}

/// Returns a running load that has recorded measurements.
pub(crate) fn recording(place: &Place, typed: &str) -> Child {
    recording_until(place, typed, |_| true)
}

/// Returns a running load that has recorded a document that satisfies `holds`.
fn recording_until(place: &Place, typed: &str, holds: fn(&Value) -> bool) -> Child {
    fs::create_dir(place.run_directory()).unwrap();
    let holds = move |text: &str| holds(&serde_json::from_str(text).unwrap());
    start_until_result(&place.run_directory(), &holds, &mut place.command(typed))
}

fn has_transactions(found: &Value) -> bool {
    found["transactions"]["count"].as_u64() > Some(1)
}

fn has_writes_and_syncs(found: &Value) -> bool {
    let sides = &found["targets"][0];
    sides["write"]["ios"].as_u64() > Some(100) && sides["sync"]["ios"].as_u64() > Some(10)
}

fn report(run: &Path, format: &str) -> std::process::Output {
    plumb().args(["report", "--format", format]).arg(run).output().unwrap()
}

/// A profile works on files with its own calls, and SQLite with SQLite's.
#[test]
fn a_killed_profile_leaves_what_it_measured() {
    for profile in ["sqlite-wal", "dbf-update"] {
        let place = Place::new();
        fs::create_dir(place.path("d")).unwrap();
        let typed = format!("load d --profile {profile} --duration 1h");
        let mut child = recording_until(&place, &typed, has_transactions);
        child.kill().unwrap();
        child.wait().unwrap();
        let run = place.run_directory();
        let found = valid_document("load", &report(&run, "json"));
        assert_eq!(found["complete"], false, "{profile}");
        let transactions = &found["transactions"];
        assert!(has_transactions(&found), "{profile}: {found:#}");
        assert!(transactions["latency"]["p50"].as_f64() > Some(0.0), "{profile}: {transactions}");
        assert!(
            found["targets"][0]["storage"].is_object()
                || found["targets"][0]["storage_unknown_because"].is_string()
        );
        let text = String::from_utf8(report(&run, "terminal").stdout).unwrap();
        assert!(
            text.to_uppercase().contains("NOT COMPLETE") && text.contains("plumb was killed"),
            "{profile}: {text}"
        );
    }
}

#[test]
fn a_killed_load_leaves_what_it_measured() {
    for typed in [
        "load f --size 16M --write 70 --sync-every 8 --rate 2000iops --duration 1h",
        "load sim:consumer-nvme-ssd --write 100 --sync-every 1 --duration 100h",
    ] {
        let place = Place::new();
        let mut child = recording_until(&place, typed, has_writes_and_syncs);
        child.kill().unwrap();
        child.wait().unwrap();
        let run = place.run_directory();
        let output = report(&run, "json");
        let found = valid_document("load", &output);
        assert_eq!(found["complete"], false, "{typed}");
        let is_finding = matches!(found["level"].as_str(), Some("warning" | "danger"));
        assert_eq!(output.status.code(), Some(if is_finding { 1 } else { 3 }), "{typed}: {}", said(&output));
        assert!(has_writes_and_syncs(&found), "{typed}: {found:#}");
        let text = String::from_utf8(report(&run, "terminal").stdout).unwrap();
        assert!(
            text.to_uppercase().contains("NOT COMPLETE") && text.contains("plumb was killed"),
            "{typed}: {text}"
        );
        // An incomplete record at the end of the distributions is ignored; the records before it are read.
        for name in ["hist.hlog", "timeseries.csv"] {
            let whole = fs::read(run.join(name)).unwrap();
            assert!(whole.len() > 200, "{typed}: {name} is empty");
            fs::write(run.join(name), &whole[..whole.len() - 5]).unwrap();
        }
        for format in ["json", "html", "csv"] {
            let cut = report(&run, format);
            assert_eq!(cut.status.code(), output.status.code(), "{typed}, {format}: {}", said(&cut));
        }
        assert_eq!(document(&report(&run, "json")), found, "{typed}");
        let csv = String::from_utf8(report(&run, "csv").stdout).unwrap();
        assert!(csv.lines().count() > 100, "{typed}: {csv}");
    }
}
