//! Tests of the refusals of `plumb drive`: exit codes, remedies, and nothing left behind.

use std::fs;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Output;

use crate::common;
use crate::common::{bounded, exited, plumb, said};
use crate::drive_support;
use crate::drive_support::{Kind, LoopBinding, MountedFileSystem, Server, cannot_attach};

fn drive(arguments: &[&str]) -> Output {
    // A drive that is served by mistake must not hang the test.
    bounded(env!("CARGO_BIN_EXE_plumb")).arg("drive").args(arguments).output().unwrap()
}

fn refused(arguments: &[&str], code: i32, word: &str) {
    let output = drive(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(word), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", said(&output));
}

#[test]
fn nonsense_is_a_matter_of_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let socket = socket.to_str().unwrap();
    refused(&["show", "nosuch"], 2, "plumb drive list");
    refused(&["serve", "lair", "--nbd", socket], 2, "plumb drive list");
    refused(&["serve", "nosuch"], 2, "nosuch");
    refused(&["serve", "liar"], 2, "--nbd");
    refused(&["serve", "liar", "--nbd", socket, "--name=-x"], 2, "`-x` is not a name");
    for size in ["0", "100", "1000", "1.5P", "abc", "-1"] {
        refused(&["serve", "liar", "--nbd", socket, &format!("--size={size}")], 2, "--size");
    }
    refused(&["serve", "liar", "--nbd", socket, "--fault", "bogus"], 2, "bogus");
    refused(&["serve", "liar", "--nbd", socket, "--name", "a/b"], 2, "a/b");
    refused(&["serve", "null", "--nbd", socket, "--backing", socket], 2, "--backing");
    refused(&["serve", "liar", "--nbd", socket, "--backing", "/dev/null/x"], 2, "--backing");
    refused(&["cut", "nosuch", "--between", "foo..bar"], 2, "foo..bar");
    for window in [
        "now",
        "write=3",
        "flush:2:completed..flush:2:submitted",
        "flush:2:submitted..flush:1:submitted",
        "write:2:completed..write:1:submitted",
        "write:2:submitted..any:2:submitted",
    ] {
        refused(&["cut", "nosuch", "--between", window], 2, window);
    }
    refused(&["cut", "nosuch", "--at-write", "0"], 2, "--at-write");
    refused(&["serve", "null", "--nbd", socket, "--wce", "on"], 2, "--wce");
    refused(&["serve", "liar", "--nbd", socket, "--nbd", socket], 2, "twice");
    refused(&["serve", "liar", "--nbd", &format!("{socket}{}", "x".repeat(108))], 2, "107 bytes");
    refused(
        &["serve", "liar", "--nbd", "/proc/x"],
        4,
        "--nbd /proc/x: /proc is in a file system of the kernel (proc)",
    );
    refused(&["serve", "liar", "--nbd", &format!("{socket}/x")], 2, "does not exist: make it");
    refused(&["fault", "nosuch", "bogus"], 2, "bogus");
    refused(&["fault", "nosuch", "write:eio:nth=1:nth=2"], 2, "each condition once");
    refused(&["fault", "nosuch", "flush:eio:lba=1-2"], 2, "a flush is of the whole drive");
    refused(&["cut", "nosuch", "--disarm", "--at-write", "1"], 2, "--disarm");
    let beyond = ["serve", "liar", "--nbd", socket, "--size", "1M", "--fault", "read:eio:lba=2048"];
    refused(&beyond, 2, "0 to 2047");
    refused(&["status", "no-such-drive"], 2, "no-such-drive");
    assert_eq!(common::entries(directory.path()), Vec::<String>::new());
}

#[test]
fn what_is_in_the_way_stays() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("plain"), "mine").unwrap();
    let name = drive_support::name();
    refused(&["serve", "liar", "--name", &name, "--nbd", &at("plain")], 4, "not a socket");
    assert_eq!(fs::read(at("plain")).unwrap(), b"mine");
    let _held = UnixListener::bind(at("held")).unwrap();
    refused(&["serve", "liar", "--name", &name, "--nbd", &at("held")], 4, "another server");
    refused(&["serve", "liar", "--name", &name, "--nbd", &at("none/nbd")], 2, "none/nbd");
    let _datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
    refused(&["serve", "liar", "--name", &name, "--nbd", &at("datagrams")], 4, "another kind");
    assert!(Path::new(&at("datagrams")).exists());
    // The name of a drive that failed to start is free.
    refused(&["status", &name], 2, "there is no drive");
    fs::write(at("medium"), [0; 4096]).unwrap();
    let size = ["serve", "liar", "--nbd", &at("nbd"), "--size", "1M", "--backing", &at("medium")];
    refused(&size, 4, "4096 bytes");
    refused(&["serve", "liar", "--nbd", &at("nbd"), "--size", "1048577"], 2, "1048577 bytes");
    fs::write(at("theirs"), vec![7; 1 << 20]).unwrap();
    let theirs = ["serve", "liar", "--nbd", &at("nbd"), "--size", "1M", "--backing", &at("theirs")];
    refused(&theirs, 4, "--overwrite");
    assert_eq!(fs::read(at("theirs")).unwrap(), vec![7; 1 << 20]);
    assert_eq!(fs::read(at("medium")).unwrap().len(), 4096);
}

#[test]
fn what_can_be_no_medium_is_refused_and_a_new_one_does_not_stay() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let serve = |medium: &str| {
        ["serve", "memory", "--size", "1M", "--nbd", &at("nbd"), "--backing", medium].map(str::to_owned)
    };
    let refused_medium = |medium: &str, code, word| {
        refused(&serve(medium).each_ref().map(String::as_str), code, word);
    };
    refused_medium("/dev/zero", 2, "not a regular file");
    refused_medium(directory.path().to_str().unwrap(), 2, "not a regular file");
    refused_medium(&at("none/medium"), 2, "no such directory");
    let _held = UnixListener::bind(at("nbd")).unwrap();
    refused_medium(&at("new"), 4, "another server");
    assert!(!Path::new(&at("new")).exists(), "a medium stays of a drive that came to nothing");
    fs::write(at("old"), "").unwrap();
    refused_medium(&at("old"), 4, "another server");
    assert_eq!(fs::read(at("old")).unwrap(), Vec::<u8>::new());
}

#[test]
fn an_order_that_makes_no_sense_is_told_from_one_that_does_not_fit_now_and_from_one_that_fails() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let server = Server::start(&["null", "--size", "1M", "--nbd", &at("null")]);
    refused(&["set", &server.name, "--wce", "on"], 2, "none that can be switched");
    server.detach();
    let server = Server::start(&["sas-15k", "--size", "1M", "--nbd", &at("disk")]);
    assert_eq!(server.order("set", &["--wce", "on"])["wce"], true);
    server.order("cut", &[]);
    refused(&["set", &server.name, "--wce", "off"], 4, "no power");
    assert_eq!(server.order("power-on", &[])["wce"], false, "a switch lasts as long as the power");
    assert_eq!(server.order("set", &["--wce", "on"])["wce"], true);
    assert_eq!(server.order("set", &["--wce", "off"])["wce"], false);
    refused(&["fault", &server.name, "read:eio:lba=2000-2048"], 2, "0 to 2047");
    server.detach();
    // A drive whose firmware accepts the command and changes nothing.
    let stubborn = include_str!("../../sim/models/sas-15k.toml");
    let stubborn = stubborn
        .replace("[behaviour]", "[behaviour]\nignores_set_wce = { value = true, source = \"a test\" }");
    fs::write(at("stubborn.toml"), stubborn).unwrap();
    let server = Server::start(&[&at("stubborn.toml"), "--size", "1M", "--nbd", &at("third")]);
    refused(&["set", &server.name, "--wce", "on"], 5, "reading back");
    server.detach();
}

#[test]
fn who_connects_and_says_nothing_keeps_nobody_waiting_for_long() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let server = Server::start(&["memory", "--size", "1M", "--nbd", socket.to_str().unwrap()]);
    let control = server.document["control"].as_str().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(control).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&socket).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let silent = std::os::unix::net::UnixStream::connect(control).unwrap();
    assert_eq!(server.order("status", &[])["power"], true);
    drop(silent);
    server.order("detach", &[]);
    assert_eq!(server.wait().0, Some(0));
}

#[test]
fn who_may_not_attach_is_told_and_nothing_stays() {
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", env!("CARGO_BIN_EXE_plumb")];
    let as_nobody = || {
        let mut command = std::process::Command::new("setpriv");
        command.args(nobody);
        command
    };
    if !as_nobody().arg("--version").output().is_ok_and(|output| output.status.success()) {
        return plumb_testkit::skip("plumb cannot be run as another user");
    }
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(directory.path(), everybody).unwrap();
    let output = as_nobody()
        .args(["drive", "serve", "memory", "--size", "1M", "--attach", "--nbd"])
        .arg(directory.path().join("nbd"))
        .env("XDG_RUNTIME_DIR", directory.path())
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(said(&output).contains("--attach takes root"), "{}", said(&output));
    assert_eq!(common::entries(directory.path()), ["plumb"]);
    assert_eq!(common::entries(&directory.path().join("plumb")), Vec::<String>::new());
    // A file without permission is a failure, not a usage error.
    fs::write(directory.path().join("locked"), "").unwrap();
    fs::set_permissions(directory.path().join("locked"), std::os::unix::fs::PermissionsExt::from_mode(0o000))
        .unwrap();
    let output = as_nobody()
        .args(["drive", "serve", "memory", "--size", "1M", "--nbd", "nbd", "--backing", "locked"])
        .current_dir(directory.path())
        .env("XDG_RUNTIME_DIR", "plumb/relative")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    // A relative directory is ignored.
    assert_eq!(common::entries(&directory.path().join("plumb")), Vec::<String>::new());
}

#[test]
fn a_name_and_a_backing_file_are_one_drives() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let arguments = ["memory", "--size", "1M", "--nbd", &at("nbd"), "--backing", &at("medium")];
    let server = Server::start(&arguments);
    let second = ["serve", "memory", "--size", "1M", "--nbd", &at("nbd2"), "--backing", &at("medium")];
    refused(&second, 4, "another drive or run of plumb has it");
    refused(&["serve", "memory", "--name", &server.name, "--nbd", &at("nbd2")], 4, "already");
    refused(&["cut", &server.name, "--between", "foo..bar"], 2, "foo..bar");
    refused(&["fault", &server.name, "bogus"], 2, "bogus");
    server.order("cut", &[]);
    exited(server.try_order("cut", &[]), 4);
    assert_eq!(server.order("power-on", &[])["power"], true);
    assert_eq!(server.order("fault", &["write:eio:nth=3"])["faults"][0], "write:eio:nth=3");
    server.detach();
}

#[test]
fn a_signal_ends_a_server_well_and_its_sockets_go() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nbd");
        let server = Server::start(&["memory", "--size", "1M", "--nbd", socket.to_str().unwrap()]);
        let name = server.name.clone();
        let pid = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(server.wait(), (Some(0), String::new()), "{signal:?}");
        assert!(!socket.exists());
        refused(&["status", &name], 2, "there is no drive");
    }
}

#[test]
fn a_drive_that_does_not_answer_hinders_no_other_target() {
    if let Some(reason) = cannot_attach(&[]) {
        return plumb_testkit::skip(&reason);
    }
    let server = Server::start(&["memory", "--size", "1M", "--attach"]);
    let pid = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let load = ["load", "f", "--size", "1M", "--write", "100", "--count", "1", "--no-record"];
    signal(rustix::process::Signal::STOP);
    let mut load_beside = bounded(env!("CARGO_BIN_EXE_plumb"));
    let output = load_beside.args(load).current_dir(directory.path()).output().unwrap();
    signal(rustix::process::Signal::CONT);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    server.detach();
}

#[test]
fn a_mounted_drive_is_not_detached_and_the_mount_is_named() {
    if let Some(reason) = cannot_attach(&["mkfs.ext4", "mount"]) {
        return plumb_testkit::skip(&reason);
    }
    let server = Server::start(&["plp-nvme-ssd", "--size", "32M", "--attach"]);
    Kind::Ext4.make(server.device());
    let place = tempfile::tempdir().unwrap();
    let mounted = MountedFileSystem::new(Kind::Ext4, server.device(), place.path()).unwrap();
    let refused = exited(server.try_order("detach", &[]), 4);
    assert!(said(&refused).contains(place.path().to_str().unwrap()), "{}", said(&refused));
    fs::write(place.path().join("still"), "here").unwrap();
    drop(mounted);
    let binding = LoopBinding::read(server.device()).unwrap();
    server.detach();
    assert!(!binding.is_there(), "{binding:?} stayed");
}

#[test]
fn however_a_server_of_a_mounted_drive_ends_the_next_clears_up() {
    use rustix::process::{Signal, kill_process};
    if let Some(reason) = cannot_attach(&["mkfs.ext4", "mount"]) {
        return plumb_testkit::skip(&reason);
    }
    for (signal, code) in [(Signal::TERM, Some(5)), (Signal::KILL, None)] {
        let server = Server::start(&["plp-nvme-ssd", "--size", "32M", "--attach"]);
        let (name, binding) = (server.name.clone(), LoopBinding::read(server.device()).unwrap());
        Kind::Ext4.make(server.device());
        let place = tempfile::tempdir().unwrap();
        let mounted = MountedFileSystem::new(Kind::Ext4, server.device(), place.path()).unwrap();
        let pid = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
        kill_process(pid, signal).unwrap();
        let (ended, text) = server.wait();
        assert_eq!(ended, code, "{signal:?}: {text}");
        if code.is_some() {
            assert!(text.contains(place.path().to_str().unwrap()), "{signal:?}: {text}");
        }
        let output = std::fs::File::create(place.path().join("new")).and_then(|file| file.sync_all());
        assert!(output.is_err(), "{signal:?}: a sync on a drive that is gone succeeded");
        drop(mounted);
        let cleared = plumb().args(["drive", "detach", &name]).output().unwrap();
        // Any drive attached at this moment may remove leftovers of a killed server first.
        let is_expected = matches!((cleared.status.code(), code), (Some(2), _) | (Some(0), None));
        assert!(is_expected, "{signal:?}: {}", said(&cleared));
        assert!(!binding.is_there(), "{signal:?}: {binding:?} stayed");
        assert!(!Path::new("/run/plumb/attach").join(&name).exists(), "{signal:?}");
    }
}
