//! Tests of `plumb observe` on a loop device of the test: every write, flush and sync of a program is seen,
//! as many as the kernel counts. The observation can be turned into an equivalent workload, and is input for
//! `cache advise`. Without events, the counters are used.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{document, exited, holds, said, valid_document};
use crate::load_support::{LoopDevice, MountedFileSystem, Place, start, wait_for};

const SCHEMA: &str = "observation";
/// Number of writes, each with an fdatasync.
const WRITES: u64 = 60;

/// Ends an observation with SIGINT, and returns its document.
fn ended(mut child: Child) -> Value {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut printed = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "interrupted: {}", String::from_utf8_lossy(&printed));
    let document: Value = serde_json::from_slice(&printed).unwrap();
    holds(SCHEMA, &document);
    assert_eq!(
        (&document["complete"], &document["incomplete_because"]),
        (&false.into(), &"interrupted".into())
    );
    document
}

fn loop_device(place: &Place) -> Option<LoopDevice> {
    let image = place.run_image();
    File::options().write(true).open(&image).unwrap().set_len(16 << 20).unwrap();
    LoopDevice::over(&image, &[])
}

/// Writes 8 KiB to separate places of the device, each written back by its own fdatasync. The file stays
/// open, so that its name can be looked up.
fn write_to(device: &LoopDevice) -> File {
    let file = File::options().write(true).open(&device.path).unwrap();
    for number in 0..WRITES {
        file.write_all_at(&[7; 8192], number * 7 % WRITES * 65536).unwrap();
        file.sync_data().unwrap();
    }
    file
}

/// The disk of this file system is a sparse file on a smaller tmpfs: data that does not fit fails in
/// writeback, long after write(2) has succeeded.
#[test]
fn a_write_that_is_lost_is_told_with_its_file_and_with_who_heard_of_it() {
    let place = Place::new();
    let Some(small) = MountedFileSystem::tmpfs(place.path("small"), "24M") else { return };
    let image = small.at.join("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(disk) = MountedFileSystem::ext4(&image, place.path("disk"), &["-O", "^has_journal"], "rw")
    else {
        return;
    };
    let mut observing =
        start(&mut place.command(&format!("observe --json --duration 5m {}", disk.at.display())));
    let said_more = wait_for("observing", &mut observing);
    // Closed before writeback, so no call can report the error.
    std::fs::write(disk.at.join("lost"), vec![7; 40 << 20]).unwrap();
    let directory = File::open(&disk.at).unwrap();
    let synced = rustix::fs::syncfs(&directory);
    let mut heard = File::create(disk.at.join("heard")).unwrap();
    heard.write_all(&[7; 1 << 20]).unwrap();
    let failed = heard.sync_all();
    kill_process(Pid::from_child(&observing), Signal::INT).unwrap();
    let mut printed = Vec::new();
    observing.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
    let code = observing.wait().unwrap().code();
    drop((said_more, heard, directory));
    let document: Value = serde_json::from_slice(&printed).unwrap();
    holds(SCHEMA, &document);
    if document["writeback_errors"].is_null() {
        return plumb_testkit::skip("no events of writeback errors");
    }
    assert!(failed.is_err(), "the disk took more than it has room for; syncfs: {synced:?}");
    assert_eq!((code, &document["level"]), (Some(1), &"danger".into()), "{document:#}");
    let errors = document["writeback_errors"].as_array().unwrap();
    let of = |name: &str| {
        let path = disk.at.join(name);
        let error = errors.iter().find(|error| error["path"] == path.to_str().unwrap());
        error.unwrap_or_else(|| panic!("{name}: {document:#}"))
    };
    let (lost, told) = (of("lost"), of("heard"));
    assert_eq!((&lost["reported"], &lost["reported_to"]), (&false.into(), &Value::Array(Vec::new())));
    assert_eq!(
        (&lost["file_system"], &lost["mount_point"]),
        (&"ext4".into(), &disk.at.to_str().unwrap().into())
    );
    assert_eq!(
        (&told["reported"], &told["reported_to"][0]["process"]),
        (&true.into(), &std::process::id().into())
    );
    let headline = document["headline"].as_str().unwrap();
    assert!(
        headline.contains("did not reach the device") && headline.contains("no sync of it has failed since"),
        "{headline}"
    );
}

#[test]
fn what_a_program_asks_for_is_seen_and_can_be_done_again() {
    let place = Place::new();
    let Some(device) = loop_device(&place) else { return };
    let mut observing =
        start(&mut place.command(&format!("observe --json --requests --duration 5m {}", device.path)));
    let said_more = wait_for("observing", &mut observing);
    let written = write_to(&device);
    let document = ended(observing);
    drop((said_more, written));
    if document["source"] != "events" {
        plumb_testkit::skip(&format!("no events: {}", document["source_because"]));
        return;
    }
    let seen = &document["devices"][0];
    let counts = ["ios", "bytes"].map(|key| seen["write"][key].as_u64().unwrap());
    assert_eq!(counts, [WRITES, WRITES * 8192], "{document:#}");
    assert_eq!(seen["write"]["sizes"], serde_json::json!([{ "bytes": 8192, "ios": WRITES }]));
    assert_eq!(seen["flushes"], WRITES);
    assert_eq!(seen["counters_agree"], true, "{seen:#}");
    assert_eq!(seen["write"]["latency"]["count"], WRITES);
    assert_eq!(document["cost"]["events_lost"], 0);
    // Another test of this process may have closed its synced file.
    let own = |sync: &&Value| sync["process"] == std::process::id() && !sync["file"].is_null();
    let sync =
        document["syncs"].as_array().unwrap().iter().find(own).unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!((&sync["call"], &sync["count"]), (&"fdatasync".into(), &WRITES.into()));
    assert_eq!(sync["file"], device.path.as_str());
    does_it_again(&place);
}

/// Checks that the observation can be turned into a workload, and is input for `cache advise`.
fn does_it_again(place: &Place) {
    let run = place.run_directory();
    let kept = place.path("seen");
    std::fs::rename(&run, &kept).unwrap();
    let said_words = exited(place.run("observe --from seen --workload"), 0);
    File::create(place.path("same.toml")).unwrap().write_all(&said_words.stdout).unwrap();
    // The printed workload runs on a simulated drive, and never on the observed disk.
    let printed = String::from_utf8(said_words.stdout).unwrap();
    assert!(printed.contains("targets = [\"sim:nearline-4tb\"]"), "{printed}");
    let again = document(&place.run("load --json same.toml"));
    assert!(again["total"]["write"]["ios"].as_u64() > Some(0), "{again:#}");
    // Offsets for a named target are within that target.
    let small = place.run("observe --from seen --workload=sim:consumer-nvme-ssd?size=2M");
    assert!(String::from_utf8_lossy(&small.stderr).contains("Offsets are scaled from"), "{}", said(&small));
    File::create(place.path("small.toml")).unwrap().write_all(&small.stdout).unwrap();
    assert_eq!(place.run("load --json small.toml").status.code(), Some(0));
    let again = document(&place.run("load --json same.toml sim:consumer-nvme-ssd?size=16M"));
    let total =
        |part: &str, key: &str| again["total"][part][key].as_f64().unwrap_or_else(|| panic!("{again:#}"));
    let near = |value: f64, expected: u64| (value / expected as f64 - 1.0).abs() <= 0.1;
    assert!(near(total("write", "ios"), WRITES), "{}", again["total"]["write"]);
    assert!(near(total("write", "bytes"), WRITES * 8192), "{}", again["total"]["write"]);
    assert!(near(total("sync", "ios"), WRITES), "{}", again["total"]["sync"]);
    let mut advise = crate::common::plumb();
    advise.args(["cache", "--json", "advise", "--backing-rate", "10M"]).arg(&kept);
    let advice = advise.output().unwrap();
    let advice = document(&advice);
    assert_eq!((&advice["writes"], &advice["flushes"]), (&WRITES.into(), &WRITES.into()));
    let mut compare = crate::common::plumb();
    compare.args(["observe", "compare", "--json", "seen", "seen"]).current_dir(place.here.path());
    let compared = valid_document("observation-pair", &compare.output().unwrap());
    let rows = compared["rows"].as_array().unwrap();
    let flushes =
        rows.iter().find(|row| row["figure"] == "flushes").unwrap_or_else(|| panic!("{compared:#}"));
    assert_eq!((&flushes["ratio"], &compared["interleaved"]), (&1.0.into(), &false.into()));
    assert!(rows.iter().any(|row| row["figure"] == "99 of 100 within" && row["after"].is_number()));
}

#[test]
fn the_syncs_of_processes_that_end_at_once_are_counted() {
    const PROCESSES: u64 = 20;
    let place = Place::new();
    let Some(device) = loop_device(&place) else { return };
    let mut observing = start(&mut place.command(&format!("observe --json --duration 5m {}", device.path)));
    let said_more = wait_for("observing", &mut observing);
    for number in 0..PROCESSES {
        let words = ["if=/dev/zero", "bs=4k", "count=1", "conv=fsync,notrunc"].map(str::to_owned);
        let place = [format!("of={}", device.path), format!("seek={number}")];
        exited(Command::new("dd").args(words).args(place).output().unwrap(), 0);
    }
    let document = ended(observing);
    drop(said_more);
    if document["source"] != "events" {
        plumb_testkit::skip(&format!("no events: {}", document["source_because"]));
        return;
    }
    let syncs = document["syncs"].as_array().unwrap();
    let of_dd = syncs.iter().filter(|sync| sync["name"] == "dd" && sync["counted"] == true);
    assert_eq!(of_dd.map(|sync| sync["count"].as_u64().unwrap()).sum::<u64>(), PROCESSES, "{document:#}");
    let headline = document["headline"].as_str().unwrap();
    // Like all figures of the sentence, a rate.
    let rate = PROCESSES as f64 / document["seconds"].as_f64().unwrap();
    let said = plumb_report::quantity::rate(rate);
    assert!(headline.contains(&format!("; {said} syncs/s")), "{said}: {headline}");
}

#[test]
fn counters_are_left_without_events() {
    let place = Place::new();
    let Some(device) = loop_device(&place) else { return };
    let mut observing =
        start(&mut place.command(&format!("observe --json --counters --duration 5m {}", device.path)));
    let said_more = wait_for("observing", &mut observing);
    let written = write_to(&device);
    let document = ended(observing);
    drop((said_more, written));
    assert_eq!((&document["source"], &document["syncs"]), (&"counters".into(), &Value::Null));
    let seen = &document["devices"][0];
    assert_eq!(
        (&seen["write"]["bytes"], &seen["flushes"]),
        (&(WRITES * 8192).into(), &WRITES.into()),
        "{seen:#}"
    );
    let shown = place.run_directory();
    let shown = crate::common::plumb().arg("report").arg(shown).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Only counters were read"), "{}", said(&shown));
}

#[test]
fn what_cannot_be_observed_is_refused_with_a_remedy() {
    let place = Place::new();
    for (typed, remedy) in [
        ("observe /proc/self", "--all"),
        ("observe /no/such/place", "name a"),
        ("observe --from . --workload", "manifest"),
        ("observe", "PATH|DEV|PID"),
        ("observe . --workload --counters", "--counters"),
        // Refused at once; an observation of a day would outlast this test.
        ("observe . --duration 24h --workload=/no/such/place", "/no/such/place"),
        ("observe . --duration 24h --workload=sim:no-such-model", "no-such-model"),
        ("observe . --requests --counters", "--counters"),
    ] {
        let mut command = crate::common::plumb();
        let output = command.args(typed.split(' ')).current_dir(place.here.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(remedy), "{typed}: {}", said(&output));
    }
}

#[test]
fn a_file_of_a_process_that_cannot_be_reached_hides_no_other_one() {
    let place = Place::new();
    let observed = |typed: &str| {
        let typed = format!("observe --counters --json --no-record --duration 1s {typed}");
        let mut command = crate::common::plumb();
        command.args(typed.split(' ')).current_dir(place.here.path()).output().unwrap()
    };
    let there = observed(".");
    if there.status.code() != Some(0) {
        plumb_testkit::skip(&format!("no disk is beneath the tests: {}", said(&there)));
        return;
    }
    // A deleted file has a path that does not exist.
    let gone = place.path("gone");
    let file = File::create(&gone).unwrap();
    std::fs::remove_file(&gone).unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("600").stdin(file).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = sleep.current_dir(place.here.path()).spawn().unwrap();
    let seen = observed(&child.id().to_string());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen.status.code(), Some(0), "{}", said(&seen));
    assert_eq!(document(&seen)["devices"][0]["name"], document(&there)["devices"][0]["name"]);
}

/// Returns the tracing instances of the kernel that are named after a process of plumb; `None` if they cannot
/// be listed.
fn instances_of(process: u32) -> Option<Vec<String>> {
    let script = "mount -t tracefs none /sys/kernel/tracing 2>/dev/null; ls /sys/kernel/tracing/instances";
    let listed = Command::new("unshare")
        .args(["--mount", "--propagation", "slave", "sh", "-c", script])
        .output()
        .unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let of_process = |name: &&str| name.contains(&format!("-{process}-"));
    listed.status.success().then(|| text.lines().filter(of_process).map(str::to_owned).collect())
}

#[test]
fn what_a_killed_observation_leaves_is_removed_by_the_next_command_that_acts() {
    let place = Place::new();
    let Some(device) = loop_device(&place) else { return };
    let mut observing = start(&mut place.command(&format!("observe --json --duration 5m {}", device.path)));
    let said_more = wait_for("observing", &mut observing);
    let process = observing.id();
    let Some(before) = instances_of(process) else { return plumb_testkit::skip("no tracefs can be mounted") };
    observing.kill().unwrap();
    observing.wait().unwrap();
    drop(said_more);
    if before.is_empty() {
        return plumb_testkit::skip("there are no events here");
    }
    // The kernel closes the files of a killed process a moment after its end, and keeps an instance with open
    // files.
    let is_removed = |words: &[&str]| {
        crate::common::plumb().args(words).output().unwrap();
        instances_of(process).unwrap().is_empty()
    };
    let next: &[&str] = &["load", "--no-record", "--count", "1", "sim:consumer-nvme-ssd"];
    assert!((0..100).any(|_| is_removed(next)), "{before:?} is left");
}

#[test]
fn with_strict_what_was_not_seen_is_an_unknown() {
    let place = Place::new();
    let observed = |option: &str| {
        let typed = format!("observe --counters --json --no-record --duration 1s {option} .");
        let mut command = crate::common::plumb();
        command.args(typed.split_whitespace()).current_dir(place.here.path()).output().unwrap()
    };
    let there = observed("");
    if there.status.code() != Some(0) {
        return plumb_testkit::skip(&format!("no disk is beneath the tests: {}", said(&there)));
    }
    let strict = exited(observed("--strict"), 3);
    assert_eq!(document(&strict)["source"], "counters");
}
