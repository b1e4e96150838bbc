//! Tests that a log file is laid out before use, because in the mode `protected` nothing else makes durable
//! which of its blocks were written. They guard against a log that is only reserved, against leftovers of an
//! interruption, and against a server that does not answer meanwhile.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use plumb_block::{Device as _, ExtentState, Lba, LbaRange, RealClock};
use plumb_linux::{FileDevice, FileOptions};
use rustix::process::{Pid, Signal, kill_process};

use crate::cache_support::{Place, refused};
use crate::common::{exited, said};
use crate::drive_support::{Kind, MountedFileSystem, cannot_attach};
use crate::load_support::LoopDevice;

/// Returns true if no block of the file is an unwritten extent.
fn is_written(path: &Path) -> bool {
    let device = FileDevice::open(path, FileOptions::read_buffered(), Arc::new(RealClock::start())).unwrap();
    let extents = device.extents(LbaRange::new(Lba(0), device.info().blocks())).unwrap();
    extents.iter().all(|extent| matches!(extent.state, ExtentState::Written | ExtentState::Unknown))
}

fn spawn(place: &Place, arguments: &[&str]) -> Child {
    let mut command = place.plumb();
    command.arg("cache").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn what_a_log_takes_of_a_file_is_written_and_not_only_reserved() {
    let place = Place::new(8 << 20);
    // A longer file keeps its rest, except the last two blocks, which are superblocks.
    std::fs::write(place.path("log2"), vec![7; 96 << 20]).unwrap();
    place.create(&["--log", "log2", "--overwrite"]);
    assert!(is_written(&place.path("log")));
    let long = std::fs::read(place.path("log2")).unwrap();
    assert!(long[..64 << 20].iter().filter(|byte| **byte == 7).count() < 8192, "it was not written out");
    assert!(long[64 << 20..(96 << 20) - 8192].iter().all(|byte| *byte == 7), "what is beyond was touched");
    let server = place.serve();
    place.cache(&["grow", &place.name, "--size", "128M"]);
    place.cache(&["replace-leg", &place.name, "--lost", "log", "--log", "log3"]);
    place.stop(server);
    for log in ["log", "log2", "log3"] {
        assert_eq!(std::fs::metadata(place.path(log)).unwrap().len(), 128 << 20, "{log}");
        assert!(is_written(&place.path(log)), "{log}");
    }
    place.cache(&["grow", &place.name, "--size", "132M"]);
    assert!(is_written(&place.path("log3")));
    place.cache(&["verify", &place.name]);
}

#[test]
fn an_interrupted_create_leaves_files_as_long_as_before_and_no_cache() {
    let place = Place::new(8 << 20);
    std::fs::write(place.path("theirs"), vec![7; 4096]).unwrap();
    let fixed = ["create", "--name", &place.name, "--backing", "backing", "--size", "1G", "--overwrite"];
    let mut create = spawn(&place, &[&fixed[..], &["--log", "log", "--log", "theirs"]].concat());
    while !std::fs::metadata(place.path("log")).is_ok_and(|log| log.blocks() > 0) {
        assert!(create.try_wait().unwrap().is_none(), "{}", said(&create.wait_with_output().unwrap()));
    }
    kill_process(Pid::from_child(&create), Signal::TERM).unwrap();
    let output = exited(create.wait_with_output().unwrap(), 3);
    assert!(said(&output).contains("interrupted"), "{}", said(&output));
    assert!(!place.path("log").exists(), "what was made is left behind");
    assert_eq!(std::fs::metadata(place.path("theirs")).unwrap().len(), 4096);
    assert_eq!(place.cache(&["status"])["caches"].as_array().unwrap().len(), 0);
    // No marker refers to a cache that was not created.
    place.create(&[]);
}

/// Length for a growth that takes a disk a second or more, so that it can be observed.
const LONG: u64 = 2 << 30;

#[test]
fn a_cache_is_served_while_its_log_is_laid_out_and_is_as_before_if_it_ends_meanwhile() {
    const TOO_FAST: &str = "the disk has written 2 GiB before it could be looked at";
    let place = Place::new(8 << 20);
    place.create(&[]);
    if plumb_linux::space::space_at(&place.path("log")).unwrap().free.0 < 3 * LONG {
        return plumb_testkit::skip("other programs here may need the room that a long log takes");
    }
    let server = place.serve();
    let name = &place.name;
    let mut grow = spawn(&place, &["grow", name, "--size", "2G"]);
    let laid_out = loop {
        let status = place.cache(&["status", name]);
        if status["laying_out"].is_object() {
            break status;
        }
        if grow.try_wait().unwrap().is_some() {
            return plumb_testkit::skip(TOO_FAST);
        }
    };
    crate::common::holds("cache-status", &laid_out);
    assert_eq!(laid_out["laying_out"]["size_bytes"], LONG - (64 << 20), "{laid_out}");
    let again = place.try_cache(&["grow", name, "--size", "96M"]);
    if !place.cache(&["status", name])["laying_out"].is_object() {
        return plumb_testkit::skip(TOO_FAST);
    }
    assert_eq!(again.status.code(), Some(4), "{}", said(&again));
    assert!(["is being changed", "wait"].iter().all(|word| said(&again).contains(word)), "{}", said(&again));
    let load = ["load", &server.uri(), "--overwrite", "--no-record", "--write", "100", "--bytes", "1M"];
    let output = place.plumb().args(load).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    place.stop(server);
    let output = grow.wait_with_output().unwrap();
    let verified = place.cache(&["verify", name]);
    if verified["size"] == LONG {
        return plumb_testkit::skip(TOO_FAST);
    }
    assert!(matches!(output.status.code(), Some(4 | 5)), "{}", said(&output));
    assert_eq!(std::fs::metadata(place.path("log")).unwrap().len(), 64 << 20);
    assert_eq!(verified["size"], 64 << 20);
}

#[test]
fn a_log_on_a_file_system_that_writes_elsewhere_is_of_no_protected_cache() {
    if let Some(why) = cannot_attach(&["mkfs.btrfs"]) {
        return plumb_testkit::skip(&why);
    }
    let place = Place::new(8 << 20);
    std::fs::File::create(place.path("disk")).unwrap().set_len(256 << 20).unwrap();
    let Some(device) = LoopDevice::over(&place.path("disk"), &[]) else { return };
    Kind::Btrfs.make(&device.path);
    let at = tempfile::tempdir().unwrap();
    let mounted = match MountedFileSystem::new(Kind::Btrfs, &device.path, at.path()) {
        Ok(mounted) => mounted,
        Err(why) => return plumb_testkit::skip(&why),
    };
    let (log, name) = (at.path().join("log").display().to_string(), &place.name);
    let create = ["create", "--name", name, "--backing", "backing", "--log", &log, "--size", "32M"];
    let why = ["btrfs", "only with a flush", "write-back"];
    refused(&place, &[&create[..], &["--mode", "protected"]].concat(), 4, &why);
    assert!(!Path::new(&log).exists(), "what was made is left behind");
    place.cache(&create);
    let to_protected = ["mode", name, "protected"];
    refused(&place, &to_protected, 4, &why);
    let server = place.serve();
    refused(&place, &to_protected, 4, &why);
    assert_eq!(place.cache(&["status", name])["mode"], "write-back");
    place.stop(server);
    drop(mounted);
}
