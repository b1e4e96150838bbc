//! Tests of devices that leave requests unanswered: waiting programs get an error in time, and the process
//! never hangs, not even when it is killed during a flush.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::attach_support::disk::{Disk, SharedDisk};
use crate::attach_support::{Place, run, wait_until};
use plumb_block::Bytes;
use plumb_serve::ExportError;
use plumb_serve::attach::{AttachOptions, Attachment, sweep};

/// Environment variable that gives the child the directory in which to attach.
const DIRECTORY: &str = "PLUMB_TEST_UNANSWERED_DIRECTORY";

fn attach(place: &Place, disk: &Arc<Disk>, options: &AttachOptions) -> Attachment {
    let options = AttachOptions { directory: Some(place.directory()), ..options.clone() };
    Attachment::new(Arc::new(SharedDisk(Arc::clone(disk))), "silent", &options).unwrap()
}

/// Writes in a separate process, so that this one cannot hang.
fn write(path: &Path, options: &[&str]) -> Result<String, String> {
    let to = format!("of={}", path.display());
    run("timeout", &[&["600", "dd", "if=/dev/zero", "bs=4096", "status=none", &to], options].concat())
}

#[test]
fn a_flush_that_is_never_answered_fails_and_keeps_nobody() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let request_timeout = Duration::from_millis(50);
    let mut attachment =
        attach(&place, &disk, &AttachOptions { request_timeout, ..AttachOptions::default() });
    disk.hold_flushes();
    let error = write(attachment.path(), &["count=1", "conv=fsync"]).unwrap_err();
    assert!(error.contains("Input/output error"), "{error}");
    assert!(attachment.has_failed_flush(), "an unanswered flush latches");
    assert!(matches!(attachment.detach(), Err(ExportError::Flush { .. })));
    assert_eq!(place.loop_devices().len(), 1, "it is still attached");
    drop(attachment);
    assert!(place.loop_devices().is_empty() && !place.has_mounts() && place.left().is_empty());
}

#[test]
fn a_forced_detach_waits_for_nothing_that_does_not_come() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let mut attachment =
        attach(&place, &disk, &AttachOptions { request_timeout: Duration::MAX, ..AttachOptions::default() });
    disk.hold_flushes();
    let mut asked = 0;
    let ended = attachment.detach_forced_if(&mut || {
        asked += 1;
        // The detach is forced while the flush is in flight.
        disk.wait_for_held(1);
        asked > 1
    });
    assert!(matches!(ended, Err(ExportError::Flush { .. })), "{ended:?}");
    assert_eq!(asked, 2, "it is asked while the flush is waited for, and not again once it is forced");
}

#[test]
fn a_device_that_holds_all_there_is_room_for_is_off_line_until_it_answers() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(16));
    let request_timeout = Duration::from_millis(50);
    let options = AttachOptions { queues: 1, depth: 2, request_timeout, ..AttachOptions::default() };
    let attachment = attach(&place, &disk, &options);
    disk.close_gate();
    // More requests than there is room for, so that some never begin.
    for _ in 0..4 {
        write(attachment.path(), &["count=16", "oflag=direct"]).unwrap_err();
    }
    write(attachment.path(), &["count=0", "conv=fsync"]).unwrap_err();
    disk.open_gate();
    wait_until("it answers again", || write(attachment.path(), &["count=16", "oflag=direct"]).is_ok());
    assert!(attachment.has_failed_flush());
}

#[test]
#[ignore = "the child of another test"]
fn detaches_for_ever() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let disk = Disk::new(Bytes::mib(16));
    let options = AttachOptions {
        directory: Some(directory.into()),
        request_timeout: Duration::MAX,
        ..AttachOptions::default()
    };
    let mut attachment =
        Attachment::new(Arc::new(SharedDisk(Arc::clone(&disk))), "silent", &options).unwrap();
    write(attachment.path(), &["count=64"]).unwrap();
    disk.hold_flushes();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            disk.wait_for_held(1);
            println!("\nheld");
        });
        drop(attachment.detach());
    });
}

#[test]
fn a_server_that_is_killed_while_it_flushes_is_gone() {
    let Some(place) = Place::new() else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "attach_unanswered::detaches_for_ever", "--nocapture"])
        .env(DIRECTORY, place.directory())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "held"));
    wait_until("a thread waits in the kernel", || has_uninterruptible_thread(child.id()));
    child.kill().unwrap();
    wait_until("a killed server is gone", || child.try_wait().unwrap().is_some());
    wait_until("its loop device is gone", || place.loop_devices().is_empty());
    assert_eq!(sweep(Some(&place.directory())).unwrap().removed, ["silent"]);
    assert!(!place.has_mounts() && place.left().is_empty());
}

fn has_uninterruptible_thread(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut stats = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
    stats.any(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D')))
}
