//! Tests of `plumb prove app` on a log of dm-log-writes, written by another plumb or by a kernel.

use std::fs::{self, File};

use crate::common::{document, said, scratch, valid_document};
use crate::prove_app::prove;
use crate::prove_posix::classes;
use plumb_testkit::loop_device::can_attach;

/// Program that saves a file a second time, and syncs it too late.
const RUN: &str = "echo old > a; sync -f .; echo 1 > $PLUMB_ACK; echo new > b; mv b a; echo 2 > $PLUMB_ACK; \
                   sync -f .";
const CHECK: &str = "test \"${PLUMB_REQUIRED:-0}\" -lt 1 || test -s a && { test \"${PLUMB_REQUIRED:-0}\" -lt 2 || grep -q new a; }";

#[test]
fn a_recording_that_was_written_as_a_log_fails_in_the_same_way() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let app = |arguments: &[&str], code: i32| {
        let all = ["app", "--json", "--no-record", "--no-change", "--budget", "20m", "--recovery-depth", "1"];
        let output = prove(&place, &[&all[..], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        output
    };
    let recorded = ["--size", "64M", "--recordings", "1", "--run", RUN, "--check", CHECK];
    let first = document(&app(&[&recorded[..], &["--keep-log-writes", "log"]].concat(), 1));
    let logged = valid_document("prove", &app(&["--log-writes", "log", "--check", CHECK], 1));
    assert_eq!(classes(&logged), classes(&first), "{logged:#}");
    assert_eq!(logged["recording"]["attached_by"], "dm-log-writes");
    // The file system itself is sound in each state.
    let sound = document(&app(&["--log-writes", "log"], 0));
    assert_eq!((&sound["subject"], &sound["proved"]), (&"fsck".into(), &false.into()), "{sound:#}");
    let why = sound["not_proved_because"][0].as_str().unwrap();
    assert!(why.contains("does not say what was in flight together"), "{why}");

    let log = place.path().join("log");
    File::options().write(true).open(&log).unwrap().set_len(fs::metadata(&log).unwrap().len() - 1).unwrap();
    let damaged = app(&["--log-writes", "log"], 2);
    assert!(
        said(&damaged).contains("log: it is not a log of dm-log-writes, or it is damaged"),
        "{}",
        said(&damaged)
    );
}
