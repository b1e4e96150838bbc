//! Tests that no other command uses a device of a cache in any role, unless `--destroy` names it: the log may
//! have the only copy of data, and a backing device alone is in no consistent state. They guard against a log
//! used as a backing device, against a simulated drive that uses either as its medium, and against two caches
//! of one name.

use std::fs::File;
use std::process::Stdio;

use crate::cache_support::{Place, refused};
use crate::common::{exited, said};
use crate::drive_support::Server;

/// Returns the absolute path of a file in the place.
fn path(place: &Place, name: &str) -> String {
    place.here.path().canonicalize().unwrap().join(name).display().to_string()
}

#[test]
fn the_log_of_a_cache_is_cached_by_no_other_unless_it_is_named() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let log = path(&place, "log");
    let second = ["create", "--name", "second", "--backing", "log", "--log", "other", "--size", "16M"];
    let needed = ["log of a plumb cache", "plumb cache detach", "--destroy", &log];
    refused(&place, &second, 4, &needed);
    refused(&place, &[&second[..], &["--overwrite"]].concat(), 4, &needed);
    refused(&place, &[&second[..], &["--destroy", "/elsewhere"]].concat(), 4, &needed);
    assert!(!place.path("other").exists(), "a refusal has left a log");
    place.cache(&["verify", &place.name]);
    place.cache(&[&second[..], &["--destroy", &log]].concat());
    // The former log is a cached device now, and no longer looks like a log.
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["superblock", "--discard-dirty"]);
    place.cache(&["detach", "second"]);
}

#[test]
fn no_device_of_a_cache_becomes_a_device_of_the_log_of_another() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    File::create(place.path("slow")).unwrap().set_len(8 << 20).unwrap();
    let mirror =
        ["create", "--name", "second", "--backing", "slow", "--log", "one", "--size", "16M", "--log"];
    for (device, what) in [("backing", "backing device of a plumb cache"), ("log", "log of a plumb cache")] {
        refused(&place, &[&mirror[..], &[device, "--overwrite"]].concat(), 4, &[what, "--destroy"]);
        assert!(!place.path("one").exists(), "a refusal has left a log");
    }
    place.cache(&[&mirror[..], &["two"]].concat());
    for device in ["backing", "log", "slow"] {
        let replace = ["replace-leg", "second", "--lost", "1", "--log", device, "--overwrite"];
        refused(&place, &replace, 4, &[]);
    }
    place.cache(&["verify", &place.name]);
    place.cache(&["verify", "second"]);
}

#[test]
fn a_drive_takes_what_a_cache_needs_only_as_named() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    // The backing file is still sparse.
    for (device, size) in [("backing", "8M"), ("log", "64M")] {
        let path = path(&place, device);
        let serve =
            ["drive", "serve", "memory", "--size", size, "--nbd", "drive", "--backing", device, "--json"];
        for more in [&[][..], &["--overwrite"], &["--destroy", "/elsewhere"]] {
            let output = place.plumb().args(serve).args(more).output().unwrap();
            assert_eq!(output.status.code(), Some(4), "{device} {more:?}: {}", said(&output));
            assert!(said(&output).contains(&path), "{device} {more:?}: {}", said(&output));
            let is_named = more.contains(&"--destroy") || said(&output).contains("of a plumb cache");
            assert!(is_named && said(&output).contains("--destroy"), "{device} {more:?}: {}", said(&output));
        }
    }
    place.cache(&["verify", &place.name]);
    let (backing, socket) = (path(&place, "backing"), path(&place, "drive"));
    let named = ["memory", "--size", "8M", "--nbd", &socket, "--backing", &backing, "--destroy", &backing];
    Server::start(&named).detach();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["does not say that it needs"]);
}

/// Otherwise the second configuration would replace the first, whose backing device would need an unknown
/// cache.
#[test]
fn of_creates_of_one_name_at_once_one_is_done() {
    let place = Place::new(8 << 20);
    let create = |number: usize| {
        let (backing, log) = (format!("backing{number}"), format!("log{number}"));
        File::create(place.path(&backing)).unwrap().set_len(8 << 20).unwrap();
        let fixed = ["cache", "create", "--name", &place.name, "--size", "16M", "--backing", &backing];
        place
            .plumb()
            .args(fixed)
            .args(["--log", &log])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let started: Vec<_> = (0..4).map(create).collect();
    let ended: Vec<_> = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let codes: Vec<_> = ended.iter().map(|output| output.status.code()).collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    for (number, output) in ended.iter().enumerate().filter(|(_, output)| !output.status.success()) {
        assert_eq!(output.status.code(), Some(4), "{}", said(output));
        let reasons = ["there is a cache of this name", "another process is making the files of its log"];
        assert!(reasons.iter().any(|reason| said(output).contains(reason)), "{}", said(output));
        assert!(!place.path(&format!("log{number}")).exists(), "{number} has left a log");
    }
    place.cache(&["verify", &place.name]);
}

/// Checks that the medium of a drive that holds a log can be reused by that drive like any other: data on a
/// drive needs that drive.
#[test]
fn the_medium_of_a_drive_that_holds_a_log_is_taken_again() {
    let place = Place::new(8 << 20);
    let (medium, socket) = (path(&place, "medium"), path(&place, "drive"));
    let drive = ["memory", "--size", "80M", "--nbd", &socket, "--backing", &medium];
    let server = Server::start(&drive);
    let uri = server.document["nbd"].as_str().unwrap().to_owned();
    let create = ["create", "--name", &place.name, "--backing", "backing", "--log", &uri, "--size", "64M"];
    place.cache(&[&create[..], &["--destroy", &uri]].concat());
    server.detach();
    let server = Server::start(&drive);
    place.cache(&["verify", &place.name]);
    server.detach();
    // The medium, used directly as a file, is a cache's log like any other.
    File::create(place.path("slow")).unwrap().set_len(8 << 20).unwrap();
    let direct = ["create", "--name", "second", "--backing", "slow", "--log", "medium", "--size", "64M"];
    refused(&place, &[&direct[..], &["--overwrite"]].concat(), 4, &["log of a plumb cache"]);
    place.cache(&[&direct[..], &["--destroy", &medium]].concat());
    let output = exited(place.plumb().args(["drive", "serve"]).args(drive).output().unwrap(), 4);
    assert!(said(&output).contains("--destroy"), "{}", said(&output));
    place.cache(&["verify", "second"]);
}
