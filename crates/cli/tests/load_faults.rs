//! Tests of loads that end early: by a signal, a full disk, a disk that fails or shrinks, or a reader that
//! leaves. The measurements until then are kept, reported and valid, and the exit code is the documented one.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::{Command, Output, Stdio};

use crate::common::{can_mount, entries, exited, in_own_mounts, plumb, said, valid_document};
use crate::load_support::{LoopDevice, Place, start, stderr, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Runs `typed`, sends `signal` when stderr has `phase`, and returns the output without stderr.
fn interrupted(place: &Place, typed: &str, phase: &str, signal: Signal) -> Output {
    let mut child = start(&mut place.command(typed));
    let progress = wait_for(phase, &mut child);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(progress);
    output
}

#[test]
fn a_signal_ends_it_and_keeps_what_was_measured() {
    for (signal, words) in [(Signal::INT, ""), (Signal::TERM, "--warmup 100ms"), (Signal::HUP, "--verify")] {
        let place = Place::new();
        let typed = format!("load --json f --size 4M --write 50 --duration 600s {words}");
        let output = interrupted(&place, &typed, "measuring", signal);
        assert_eq!(output.status.code(), Some(3), "{words}: {}", said(&output));
        let document = valid_document("load", &output);
        assert_eq!((&document["complete"], &document["failed"]), (&false.into(), &false.into()), "{words}");
        assert_eq!(document["incomplete_because"], "interrupted by a signal", "{words}");
        let again = plumb().args(["report", "--json"]).arg(place.run_directory()).output().unwrap();
        assert_eq!(again.stdout, output.stdout, "{words}: the recording says something else");
        assert_eq!(entries(place.here.path()), ["f"], "{words}: as after a whole run");
        place.json("load f --write 100 --count 10", 0);
    }
}

/// Ensures that blocks of an earlier run are not reported as wrong data.
#[test]
fn beside_a_run_that_verifies_nobody_writes_to_its_file() {
    let place = Place::new();
    place.json("load f --size 4M --write 100 --count 10", 0);
    let beside_it = tempfile::tempdir().unwrap();
    let during = |running: &str, beside: &str, code: i32| {
        let mut child = start(&mut place.command(&format!("load f --write 50 --duration 600s {running}")));
        let progress = wait_for("measuring", &mut child);
        let (command, words) = beside.split_once(' ').unwrap();
        let mut other = plumb();
        other.args([command, "--out"]).arg(beside_it.path().join("run")).arg("--replace");
        let output = other.args(words.split(' ')).current_dir(place.here.path()).output().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.wait().unwrap();
        drop(progress);
        // A warning about a busy machine turns 0 into 1.
        let is_expected = output.status.code().is_some_and(|found| found == code || (code, found) == (0, 1));
        assert!(is_expected, "{running}, {beside}: {}", said(&output));
        said(&output)
    };
    let plain = "load f --write 100 --count 10";
    let has_it = during("--verify", plain, 4);
    assert!(has_it.contains("a run of plumb that verifies what it writes has it"), "{has_it}");
    let fio = "fio --name=j --filename=f --rw=write --bs=4k --size=64k --verify=crc32c";
    let writes = during("", fio, 4);
    assert!(writes.contains("another run of plumb writes to it"), "{writes}");
    during("", plain, 0);
    during("--verify", "load f --count 10", 0);
}

#[test]
fn what_is_not_recorded_is_not_said_to_be_kept() {
    for (record, expected) in [("", "are kept"), ("--no-record", "are shown, but not recorded")] {
        let place = Place::new();
        let mut command = plumb();
        let typed = format!("load f --size 1M --duration 600s {record}");
        command.args(typed.split_whitespace()).current_dir(place.here.path());
        let mut child = start(&mut command);
        let mut progress = wait_for("measuring", &mut child);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let mut rest = String::new();
        progress.read_to_string(&mut rest).unwrap();
        child.wait().unwrap();
        let said = format!("interrupted; the results so far {expected}\n");
        assert!(rest.contains(&said), "{rest}");
    }
}

#[test]
fn a_signal_before_anything_is_measured_leaves_nothing() {
    let place = Place::new();
    let output =
        interrupted(&place, "load f --size 1G --write 100 --duration 600s", "laying out", Signal::INT);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(output.stdout.is_empty(), "{}", said(&output));
    assert_eq!(entries(place.here.path()), Vec::<String>::new(), "a file that is not whole");
    assert!(!place.run_directory().exists(), "a recording of nothing");
}

#[test]
fn the_dialects_print_what_was_measured_until_a_signal() {
    for (typed, holds) in [
        ("diskspd -c4M -b4k -r -W0 -d600 f", "Total IO"),
        ("sqlio -kR -s600 -frandom f", "IOs/sec"),
        ("fio --name=x --filename=f --size=4m --rw=randread --time_based --runtime=600", "IOPS="),
    ] {
        let place = Place::new();
        place.json("load f --size 4M --count 1", 0);
        std::fs::remove_dir_all(place.run_directory()).unwrap();
        let child = crate::load_killed::recording(&place, typed);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{typed}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains(holds), "{typed}: {}", said(&output));
    }
}

#[test]
fn no_room_for_the_file_is_said_and_nothing_stays() {
    let place = Place::new();
    if !can_mount() {
        return;
    }
    let script = "mount -t tmpfs -o size=2M none $place; cd $place; code=0; $plumb load f --size 8M --write 100 \
                  --cached --count 10 --out $place/run || code=$?; ls -A $place; exit $code";
    let output = exited(in_own_mounts(script, place.here.path()), 5);
    assert!(stderr(&output).contains("No space left"), "{}", said(&output));
    assert!(output.stdout.is_empty(), "left behind: {}", said(&output));
}

/// Runs plumb with these words on a sparse file of 8 MiB in a file system of 2 MiB.
fn on_a_full_disk(words: &str) -> Option<Output> {
    if !can_mount() {
        return None;
    }
    let place = Place::new();
    let script = format!(
        "out=$(mktemp -d); mount -t tmpfs -o size=2M none $place; cd $place; truncate -s 8M f; code=0; $plumb load \
         --json f --overwrite --write 100 --sequential --block-size 64k --cached --count 128 --out $out/run {words} \
         || code=$?; rm -r $out; exit $code"
    );
    Some(in_own_mounts(&script, place.here.path()))
}

#[test]
fn a_disk_that_fills_up_ends_the_load() {
    let Some(output) = on_a_full_disk("") else { return };
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(stderr(&output).contains("No space left on device"), "{}", said(&output));
    let document = valid_document("load", &output);
    assert_eq!((&document["complete"], &document["failed"]), (&false.into(), &true.into()));
    let write = &document["targets"][0]["write"];
    assert_eq!(write["errors"], 1, "{write:#}");
    assert!((1..=32).contains(&write["ios"].as_u64().unwrap()), "{write:#}");
}

#[test]
fn a_disk_that_fills_up_is_counted_if_that_is_wanted() {
    let Some(output) = on_a_full_disk("--continue-on-error") else { return };
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let document = valid_document("load", &output);
    let write = &document["targets"][0]["write"];
    let (done, errors) = (write["ios"].as_u64().unwrap(), write["errors"].as_u64().unwrap());
    assert!(done + errors == 128 && done <= 32 && errors >= 96, "{write:#}");
    assert_eq!(write["errors_by"][0]["count"], errors, "{write:#}");
    assert_eq!(verdicts(&document), [true], "it is shown");
}

/// Returns true if the failed operations are among the verdicts.
fn verdicts(document: &Value) -> [bool; 1] {
    let verdicts = document["verdicts"].as_array().unwrap();
    [verdicts.iter().any(|verdict| verdict["id"] == "operations-failed")]
}

/// Returns a disk of 8 MiB of which only the first 2 MiB can be read.
fn shrunken(place: &Place) -> Option<LoopDevice> {
    let image = place.path("image");
    std::fs::write(&image, vec![1; 8 << 20]).unwrap();
    let device = LoopDevice::over(&image, &[])?;
    OpenOptions::new().write(true).open(&image).unwrap().set_len(2 << 20).unwrap();
    Some(device)
}

#[test]
fn a_read_that_fails_ends_the_load_and_says_where() {
    let place = Place::new();
    let Some(device) = shrunken(&place) else { return };
    let document = place.json(&format!("load {} --sequential --block-size 64k --count 128", device.path), 5);
    assert_eq!((&document["complete"], &document["failed"]), (&false.into(), &true.into()));
    let because = document["incomplete_because"].as_str().unwrap();
    assert!(because.contains("read of 64 KiB at byte 2097152 of "), "{because}");
    assert!(because.contains("Input/output error"), "{because}");
    let read = &document["targets"][0]["read"];
    assert_eq!((&read["ios"], &read["errors"]), (&32.into(), &1.into()), "{read:#}");
}

#[test]
fn reads_that_fail_are_counted_if_that_is_wanted() {
    let place = Place::new();
    let Some(device) = shrunken(&place) else { return };
    let typed = "--sequential --block-size 64k --count 128 --depth 4 --continue-on-error";
    let document = place.json(&format!("load {} {typed}", device.path), 1);
    let read = &document["targets"][0]["read"];
    assert_eq!((&read["ios"], &read["errors"]), (&32.into(), &96.into()), "{read:#}");
    assert_eq!(document["targets"][0]["application"]["errors"], 96);
    assert_eq!(read["errors_by"][0]["error"], "Input/output error (os error 5)");
    assert_eq!(verdicts(&document), [true], "it is shown");
}

#[test]
fn a_disk_that_vanishes_ends_the_load() {
    let place = Place::new();
    let image = place.path("image");
    std::fs::write(&image, vec![1; 8 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    let mut child =
        start(&mut place.command(&format!("load --json {} --duration 600s --depth 4", device.path)));
    let progress = wait_for("measuring", &mut child);
    OpenOptions::new().write(true).open(&image).unwrap().set_len(0).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(progress);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let document = valid_document("load", &output);
    assert!(document["incomplete_because"].as_str().unwrap().contains("Input/output error"), "{document:#}");
}

#[test]
fn a_flush_that_fails_always_ends_the_load() {
    let place = Place::new();
    if !can_mount() {
        return;
    }
    if LoopDevice::over(&place.run_image(), &[]).is_none() {
        return;
    }
    // A disk that claims 8 MiB on a file system of 2 MiB: written data stays in memory until the flush.
    let script = "out=$(mktemp -d); mount -t tmpfs -o size=2M none $place; cd $place; truncate -s 8M f; \
                  device=$(losetup --find --show f); code=0; $plumb load --json $device --overwrite --write 100 \
                  --sequential --block-size 64k --cached --count 128 --sync-at-end --continue-on-error \
                  --out $out/run || code=$?; losetup --detach $device; rm -r $out; exit $code";
    let output = exited(in_own_mounts(script, place.here.path()), 5);
    assert!(stderr(&output).contains("flush"), "{}", said(&output));
    let document = valid_document("load", &output);
    assert_eq!(document["failed"], true);
    assert_eq!(document["targets"][0]["sync"]["errors"], 1, "{:#}", document["targets"][0]["sync"]);
}

#[test]
fn a_reader_who_leaves_is_no_failure_and_a_full_stdout_is() {
    let place = Place::new();
    for typed in ["load f --size 4M --count 10", "load --json f --count 10", "diskspd -d1 -W0 -b4k f"] {
        let mut command = place.command(typed);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        assert!(matches!(child.wait().unwrap().code(), Some(0 | 1)), "{typed}");
        assert!(place.run_directory().join("report.html").is_file(), "{typed}: the recording was not kept");
    }
    for typed in ["load f --count 10", "load --help", "--version"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = place.command(typed).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{typed}: {}", said(&output));
        assert!(stderr(&output).contains("cannot write to stdout"), "{typed}: {}", said(&output));
    }
    for typed in [
        "load f --count 10 --no-record",
        "survey .",
        "survey . --json",
        "explain",
        "drive list",
        "load --help",
        "--version",
    ] {
        let mut closed = Command::new("sh");
        closed.args(["-c", &format!("exec \"$0\" {typed} >&-")]).arg(plumb().get_program());
        let output = closed.current_dir(place.here.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{typed}: {}", said(&output));
        assert!(
            stderr(&output).contains("cannot write to stdout: it is closed"),
            "{typed}: {}",
            said(&output)
        );
    }
    // Another name of stdout is no way around that.
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let mut closed = Command::new("sh");
        closed.args(["-c", &format!("exec \"$0\" report \"$1\" --output {name} >&-")]);
        closed.arg(plumb().get_program()).arg(place.run_directory());
        let output = closed.current_dir(place.here.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{name}: {}", said(&output));
        let closed = format!("cannot write to {name}: it is closed");
        assert!(stderr(&output).contains(&closed), "{name}: {}", said(&output));
    }
}
