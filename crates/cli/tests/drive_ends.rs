//! Tests of the ends of drives: by repeated signals, without an answer, without durable data, by a kill; and
//! that names are free afterwards.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{bounded, exited, plumb, said};
use crate::drive_support;
use crate::drive_support::{Kind, MountedFileSystem, Server, cannot_attach};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

fn write_and_sync(device: &str) -> bool {
    let to = format!("of={device}");
    let arguments = ["if=/dev/zero", "bs=4096", "count=1", "conv=fsync", &to];
    bounded("dd").args(arguments).output().unwrap().status.success()
}

#[test]
fn a_signal_that_comes_twice_at_once_ends_a_server_well() {
    for round in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nbd");
        let server = Server::start(&["memory", "--size", "1M", "--nbd", socket.to_str().unwrap()]);
        let pid = Pid::from_raw(server.pid() as i32).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        // The server may have ended.
        kill_process(pid, Signal::TERM).unwrap_or_default();
        let control = server.document["control"].as_str().unwrap().to_owned();
        assert_eq!(server.wait(), (Some(0), String::new()), "round {round}");
        assert!(!socket.exists() && !Path::new(&control).exists(), "round {round}");
    }
}

#[test]
fn once_detached_a_name_is_free() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let mut arguments = vec!["memory".to_owned(), "--size=1M".to_owned()];
    arguments.extend([format!("--nbd={}", at("nbd")), format!("--backing={}", at("medium"))]);
    if cannot_attach(&[]).is_none() {
        arguments.push("--attach".to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let name = drive_support::name();
    let mut before: Option<Server> = None;
    for _ in 0..20 {
        // The previous process may still be ending.
        let server = Server::start_named(&name, &arguments);
        server.order("detach", &[]);
        if let Some(before) = before.replace(server) {
            assert_eq!(before.wait(), (Some(0), String::new()));
        }
    }
    assert_eq!(before.unwrap().wait().0, Some(0));
}

#[test]
fn a_drive_that_never_answers_a_flush_can_be_cut_off_and_killed() {
    if let Some(reason) = cannot_attach(&[]) {
        return plumb_testkit::skip(&reason);
    }
    let arguments = ["consumer-nvme-ssd", "--size", "16M", "--attach", "--fault", "flush:timeout"];
    let server = Server::start(&arguments);
    server.order("detach", &["--cut-off"]);
    assert_eq!(server.wait(), (Some(0), String::new()));
    let server = Server::start(&arguments);
    kill_process(Pid::from_raw(server.pid() as i32).unwrap(), Signal::TERM).unwrap();
    let (code, text) = server.wait();
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("could not be flushed"), "{text}");
    a_second_signal_names_what_stays(&arguments);
    let server = Server::start(&arguments);
    let orders = server.name.clone();
    let detaching = std::thread::spawn(move || plumb().args(["drive", "detach", &orders]).output().unwrap());
    let name = server.kill();
    assert!(!detaching.join().unwrap().status.success() || !is_left(&name));
    plumb().args(["drive", "detach", &name]).output().unwrap();
    assert!(!is_left(&name));
}

/// Starts a server that waits for its drive's users, and ends it with a second signal.
fn a_second_signal_names_what_stays(arguments: &[&str]) {
    let server = Server::start(arguments);
    let (name, device) = (server.name.clone(), server.device().to_owned());
    let pid = Pid::from_raw(server.pid() as i32).unwrap();
    // Signals within a second count as the same.
    let has_ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    plumb_block::retry_until(plumb_block::Nanos::secs(600), || {
        kill_process(pid, Signal::TERM).unwrap();
        waitid(WaitId::Pid(pid), has_ended).unwrap()
    });
    let (code, text) = server.wait();
    assert_eq!(code, Some(128 + 15), "{text}");
    let stays = format!("plumb: ended at once: {device} stays until `plumb restore` removes it");
    assert_eq!(text.lines().last(), Some(&*stays), "{text}");
    plumb().args(["drive", "detach", &name]).output().unwrap();
    assert!(!is_left(&name));
}

#[test]
fn faults_count_from_when_the_drive_is_ready() {
    if let Some(reason) = cannot_attach(&["dd"]) {
        return plumb_testkit::skip(&reason);
    }
    let arguments = ["plp-nvme-ssd", "--size", "16M", "--attach", "--fault", "flush:eio:nth=2"];
    let server = Server::start(&arguments);
    let status = server.order("status", &[]);
    assert_eq!((&status["latched"], &status["faults"][0]), (&false.into(), &"flush:eio:nth=2".into()));
    assert!(write_and_sync(server.device()), "the first flush of the user");
    assert!(!write_and_sync(server.device()), "the second");
    server.order("detach", &["--cut-off"]);
    assert_eq!(server.wait().0, Some(0));
}

#[test]
fn detaching_a_drive_whose_medium_is_full_fails() {
    if let Some(reason) = cannot_attach(&["dd", "mount"]) {
        return plumb_testkit::skip(&reason);
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    drive_support::run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=4M", "none"]).arg(place));
    let full = MountedFileSystem { at: place.to_owned(), device: "tmpfs".to_owned() };
    let medium = place.join("medium");
    let socket = place.join("nbd");
    let arguments = ["memory", "--size", "64M", "--backing"];
    let server = Server::start(
        &[&arguments[..], &[medium.to_str().unwrap(), "--nbd", socket.to_str().unwrap()]].concat(),
    );
    let target = format!("nbd+unix:///?socket={}", socket.display());
    let fill =
        ["load", &target, "--write", "100", "--block-size", "1M", "--count", "64", "--overwrite", "--out"];
    let run = tempfile::tempdir().unwrap();
    let filled = plumb().args(fill).arg(run.path().join("run")).output().unwrap();
    assert!(said(&filled).contains("No space left"), "{}", said(&filled));
    let detached = exited(server.try_order("detach", &[]), 5);
    assert!(said(&detached).contains("No space left"), "{}", said(&detached));
    let (code, _) = server.wait();
    assert_eq!(code, Some(5));
    drop(full);
}

#[test]
fn a_serve_that_fails_hides_no_crashed_drive() {
    if let Some(reason) = cannot_attach(&["mkfs.ext4", "mount"]) {
        return plumb_testkit::skip(&reason);
    }
    let server = Server::start(&["memory", "--size", "16M", "--attach"]);
    let device = server.device().to_owned();
    Kind::Ext4.make(&device);
    let place = tempfile::tempdir().unwrap();
    let mounted = MountedFileSystem::new(Kind::Ext4, &device, place.path()).unwrap();
    let name = server.kill();
    let again = ["drive", "serve", "memory", "--size=16M", "--attach", "--name", &name];
    let refused = exited(bounded(env!("CARGO_BIN_EXE_plumb")).args(again).output().unwrap(), 4);
    let text = said(&refused);
    assert!(text.contains("is gone") && text.contains(place.path().to_str().unwrap()), "{text}");
    // Works even without the socket.
    for _ in 0..2 {
        let status = plumb().args(["drive", "status"]).output().unwrap();
        assert!(said(&status).contains(&format!("served `{name}` is gone")), "{}", said(&status));
        let kept = exited(plumb().args(["drive", "detach", &name]).output().unwrap(), 4);
        assert!(said(&kept).contains(place.path().to_str().unwrap()), "{}", said(&kept));
        fs::remove_file(Path::new("/run/plumb").join(format!("{name}.control"))).unwrap_or_default();
    }
    drop(mounted);
    let cleared = plumb().args(["drive", "detach", &name]).output().unwrap();
    // Any device that is being attached removes unused leftovers, possibly this one's.
    assert!(matches!(cleared.status.code(), Some(0 | 2)), "{}", said(&cleared));
    assert!(!is_left(&name));
    exited(plumb().args(["drive", "detach", &name]).output().unwrap(), 2);
}

/// Returns true if anything is left of the attachment `name`.
fn is_left(name: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    // The name of another drive may have this one as its prefix.
    let directory = format!("/run/plumb/attach/{name}/");
    Path::new(&directory).exists() || mounts.contains(&directory)
}
