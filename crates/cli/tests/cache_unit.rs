//! Tests of the udev rule and the systemd unit of a cache. The rule hides the backing device and nothing
//! else. systemd accepts the unit; its command serves, stops at SIGTERM with dirty data, and serves again
//! after that and after SIGKILL. The test runs the command itself, because process 1 may not be systemd.

use std::io::{Read as _, Write as _};
use std::process::Command;

use rustix::process::{Signal, kill_process};

use crate::cache_support::Place;
use crate::common::said;
use crate::drive_support::{cannot_attach, name, served};
use crate::load_support::LoopDevice;

const UNIT: &str = include_str!("../../../integrations/systemd/plumb-cache@.service");
const PROGRAM: &str = "/usr/bin/plumb";
const RULE: &str = include_str!("../../../integrations/udev/61-plumb-cache.rules");
const NAMES: &str = include_str!("../../../integrations/udev/62-plumb-names.rules");

/// Returns the properties that udev would assign to this block device with `rule` installed; `None` where
/// that cannot be tried, which is reported.
fn as_udev_sees(device: &str, rule: &str) -> Option<String> {
    let rules = std::path::Path::new("/run/udev/rules.d");
    let installed = rules.join(format!("61-plumb-cache-{}.rules", name()));
    if let Err(why) = std::fs::create_dir_all(rules).and_then(|()| std::fs::write(&installed, rule)) {
        plumb_testkit::skip(&format!("{}: {why}", rules.display()));
        return None;
    }
    let sysfs = format!("/sys/class/block/{}", device.trim_start_matches("/dev/"));
    let output = Command::new("udevadm").args(["test", "--action=add", &sysfs]).output();
    std::fs::remove_file(&installed).unwrap();
    match output {
        Ok(output) => Some(said(&output)),
        Err(why) => {
            plumb_testkit::skip(&format!("udevadm: {why}"));
            None
        }
    }
}

#[test]
fn udev_hides_the_backing_device_of_a_cache_and_no_other() {
    let place = Place::new(16 << 20);
    let Some(device) = LoopDevice::over(&place.path("backing"), &[]) else { return };
    let Some(before) = as_udev_sees(&device.path, RULE) else { return };
    assert!(!before.contains("SYSTEMD_READY=0") && !before.contains("Invalid"), "{before}");
    place.cache(&[
        "create",
        "--name",
        &place.name,
        "--backing",
        &device.path,
        "--log",
        "log",
        "--size",
        "64M",
    ]);
    let Some(after) = as_udev_sees(&device.path, RULE) else { return };
    for property in ["SYSTEMD_READY=0", "UDISKS_IGNORE=1", "ID_FS_TYPE=plumb_cache_backing"] {
        assert!(after.contains(property), "{property}: {after}");
    }
    place.cache(&["detach", &place.name]);
}

#[test]
fn udev_names_the_block_device_of_a_cache() {
    if let Some(reason) = cannot_attach(&[]) {
        return plumb_testkit::skip(&reason);
    }
    let place = Place::new(16 << 20);
    place.create(&[]);
    let server = place.serve_as(&["--attach"]);
    let Some(seen) = as_udev_sees(server.device(), NAMES) else { return };
    assert!(seen.contains(&format!("plumb/{}", place.name)) && !seen.contains("Invalid"), "{seen}");
    place.stop(server);
    place.cache(&["detach", &place.name]);
}

/// Runs the command of the rule over the records of ublk servers.
#[test]
fn udev_finds_the_name_of_a_cache_in_the_record_of_its_block_device() {
    let place = Place::new(1 << 20);
    let program = NAMES.split("PROGRAM==\"").nth(1).unwrap().split(" /run/").next().unwrap();
    for (served, name) in [("cache 01234567-89ab-cdef-0123-456789abcdef", "db\n"), ("null on file 1:2", "")] {
        let record = place.path("record");
        std::fs::write(&record, format!("c\nplumb-ublk 1\ndb\n{served}\n")).unwrap();
        let output =
            Command::new("sh").arg("-c").arg(format!("{program} {}", record.display())).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), name, "{program}");
    }
}

#[test]
fn systemd_takes_the_unit_of_a_cache() {
    let place = Place::new(1 << 20);
    let file = place.path("plumb-cache@.service");
    std::fs::write(&file, UNIT.replace(PROGRAM, env!("CARGO_BIN_EXE_plumb"))).unwrap();
    let instance = place.path("plumb-cache@x.service");
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&instance).output() {
        Ok(output) => assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output)),
        Err(error) => plumb_testkit::skip(&format!("systemd-analyze: {error}")),
    }
}

#[test]
fn what_the_unit_runs_keeps_what_is_dirty_over_stops_and_kills() {
    if let Some(reason) = cannot_attach(&[]) {
        return plumb_testkit::skip(&reason);
    }
    assert!(!UNIT.contains("ExecStop") && !UNIT.contains("KillSignal"), "it is stopped by SIGTERM");
    let start = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words = start.strip_prefix(PROGRAM).unwrap();
    let place = Place::new(8 << 20);
    place.create(&[]);
    let words: Vec<String> = words.split_whitespace().map(|word| word.replace("%i", &place.name)).collect();
    for (life, signal) in [Signal::TERM, Signal::KILL, Signal::TERM].into_iter().enumerate() {
        let (document, mut child) = served(place.plumb().args(&words).arg("--json"));
        let mut device = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(document["device"].as_str().unwrap())
            .unwrap();
        let mut bytes = [0; 4096];
        device.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [life as u8; 4096], "life {life}");
        std::io::Seek::rewind(&mut device).unwrap();
        device.write_all(&[life as u8 + 1; 4096]).unwrap();
        device.sync_all().unwrap();
        drop(device);
        kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, (signal == Signal::TERM).then_some(0), "life {life}");
    }
    place.cache(&["detach", &place.name]);
    assert_eq!(std::fs::read(place.path("backing")).unwrap()[..4096], [3; 4096]);
}
