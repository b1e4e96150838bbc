//! Tests that a check, however it ends, leaves no file in the checked place, and a readable recording.

use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use crate::common;
use crate::common::{entries, plumb, said, scratch};
use crate::load_support::{start, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a check that takes a while.
fn long_check(place: &Path, run: &Path) -> Child {
    start(plumb().args(["check", "--seconds", "20", "--size", "16M", "--json", "--out"]).args([run, place]))
}

/// Sends `signal` when `phase` begins, and returns the exit status and stdout.
fn interrupted(phase: &str, signal: Signal, place: &Path, run: &Path) -> (ExitStatus, String) {
    let mut child = long_check(place, run);
    let progress = wait_for(phase, &mut child);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(progress);
    (output.status, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_signal_stops_it_and_keeps_what_was_measured() {
    for (phase, signal) in
        [("prepare", Signal::INT), ("append-fdatasync", Signal::TERM), ("direct-dsync", Signal::INT)]
    {
        let (place, run) = (scratch(), scratch());
        let (status, stdout) = interrupted(phase, signal, place.path(), run.path());
        assert_eq!(status.code(), Some(3), "{phase}: {stdout}");
        assert_eq!(entries(place.path()), Vec::<String>::new(), "{phase}: the test file stayed");
        let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(document["complete"], false, "{phase}");
        assert_eq!(document["incomplete_because"], "interrupted by a signal", "{phase}");
        let again = plumb().args(["report", "--json"]).arg(run.path()).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&again.stdout),
            stdout,
            "{phase}: the recording says something else"
        );
        assert_eq!(again.status.code(), Some(3), "{phase}: the report ends otherwise than the run");
    }
}

#[test]
fn kill_9_leaves_no_file_and_a_readable_recording() {
    let (place, run) = (scratch(), scratch());
    let mut child = long_check(place.path(), run.path());
    let progress = wait_for("direct-dsync", &mut child);
    let Some(kind) = unnamed_files_work(place.path()) else {
        child.kill().unwrap();
        child.wait().unwrap();
        return plumb_testkit::skip("this file system has no unnamed files that sync like others");
    };
    child.kill().unwrap();
    child.wait().unwrap();
    drop(progress);
    assert_eq!(entries(place.path()), Vec::<String>::new(), "on {kind}");
    let report = plumb().args(["report", "--json"]).arg(run.path()).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(document["complete"], false);
    assert_eq!(document["sync"][0]["method"], "overwrite-fdatasync", "{}", said(&report));
}

/// Returns the magic number of the file system, if test files there have no name.
fn unnamed_files_work(place: &Path) -> Option<String> {
    let kind = rustix::fs::statfs(place).unwrap().f_type;
    [0xef53, 0x5846_5342, 0x0102_1994].contains(&kind).then(|| format!("{kind:#x}"))
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let (place, run) = (scratch(), scratch());
    let mut child =
        common::check(place.path(), run.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    assert_eq!(entries(place.path()), Vec::<String>::new());
    assert!(run.path().join("report.html").is_file(), "the recording was not kept");
}
