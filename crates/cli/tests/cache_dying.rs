//! Tests of a cache whose log dies, or whose devices are renamed: clients see no error, no written data is
//! lost, and every remedy in the status works.

use std::process::Output;

use serde_json::Value;

use crate::cache_support::{AttachedLoop, Place, SLEEPS, Server, refused, served_mounted};
use crate::common::{document, exited, holds, said, valid_document};
use crate::drive_support::{self, Kind, MountedFileSystem, cannot_attach};

/// Serves a drive of 80 MiB for the log of `place`.
fn log_drive(place: &Place, socket: &str) -> (drive_support::Server, String) {
    let path = place.path(socket);
    let drive = ["memory", "--size", "80M", "--nbd", path.to_str().unwrap()];
    let drive = drive_support::Server::start(&drive);
    let uri = drive.document["nbd"].as_str().unwrap().to_owned();
    (drive, uri)
}

/// Creates the cache over the backing file, with logs of 64 MiB.
fn create(place: &Place, logs: &[&str]) {
    let mut words = vec!["create", "--name", &place.name, "--backing", "backing", "--size", "64M"];
    for log in logs {
        words.extend(["--log", log]);
        // An export has no mark of plumb.
        words.extend(log.contains(':').then_some(["--destroy", log]).into_iter().flatten());
    }
    place.cache(&words);
}

/// Writes blocks of 4 KiB everywhere, which must succeed, and reads them.
pub(crate) fn load(place: &Place, server: &Server) {
    let words = ["--write", "100", "--random", "--block-size", "4k", "--sync-every", "16", "--bytes", "8M"];
    let target = ["load", &server.uri(), "--overwrite", "--json", "--no-record", "--verify", "--seed", "5"];
    let output = place.plumb().args(target).args(words).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    let target = &document(&output)["targets"][0];
    assert_eq!((&target["read"]["errors"], &target["write"]["errors"]), (&0.into(), &0.into()), "{target}");
}

/// Reads the data of the last load.
fn is_whole(place: &Place, target: &str) {
    let words = ["--random", "--block-size", "4k", "--bytes", "8M", "--write", "0", "--seed", "5"];
    let output = place.plumb().args(["load", target, "--json", "--no-record"]).args(words).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
}

fn status(place: &Place) -> Output {
    place.try_cache(&["status", &place.name])
}

/// Returns the status of a cache with a problem.
fn unsound_status(place: &Place) -> Value {
    let output = exited(status(place), 1);
    valid_document("cache-status", &output)
}

/// Returns the text of the status of a cache with a problem, in one line.
fn unsound_page(place: &Place) -> String {
    let page = exited(place.plumb().args(["cache", "status", &place.name]).output().unwrap(), 1);
    said(&page).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_log_that_fails_writes_is_written_back_and_replaced_while_the_cache_is_served() {
    let place = Place::new(32 << 20);
    let (drive, uri) = log_drive(&place, "first");
    create(&place, &[&uri]);
    let server = place.serve();
    load(&place, &server);
    drive.order("fault", &["write:eio"]);
    load(&place, &server);
    let sealed = unsound_status(&place);
    assert!(sealed["log_error"].as_str().unwrap().contains("device 0 of the log"), "{sealed}");
    let page = place.plumb().args(["cache", "status", &place.name]).output().unwrap();
    assert!(
        said(&page).contains("LOG NOT WRITTEN") && said(&page).contains("replace-log"),
        "{}",
        said(&page)
    );
    let replaced = place.cache(&["replace-log", &place.name, "second"]);
    holds("cache-status", &replaced);
    assert!(replaced["log_error"].is_null(), "{replaced}");
    assert!(replaced["legs"][0]["path"].as_str().unwrap().ends_with("second"), "{replaced}");
    load(&place, &server);
    server.kill();
    let server = place.serve();
    is_whole(&place, &server.uri());
    place.stop(server);
    // The old log no longer belongs to this cache.
    refused(
        &place,
        &["adopt", "--name", &place.name, "--backing", "backing", "--log", &uri],
        4,
        &["old copy"],
    );
    place.cache(&["replace-log", &place.name, "third", "--size", "32M"]);
    let place_of_log = &place.cache(&["status", &place.name])["legs"][0]["path"];
    assert!(place_of_log.as_str().unwrap().ends_with("third"), "{place_of_log}");
    place.cache(&["detach", &place.name]);
}

/// A sealed log whose flush fails accepts no bypass; the status has the only remedy.
#[test]
fn a_cache_that_has_stopped_serving_says_nothing_of_writing_back() {
    let place = Place::new(32 << 20);
    let (drive, uri) = log_drive(&place, "first");
    create(&place, &[&uri]);
    let server = place.serve();
    load(&place, &server);
    drive.order("fault", &["write:eio"]);
    drive.order("fault", &["flush:eio"]);
    let words = ["--write", "100", "--random", "--block-size", "4k", "--bytes", "1M"];
    let target = ["load", &server.uri(), "--overwrite", "--json", "--no-record"];
    place.plumb().args(target).args(words).output().unwrap();
    let stopped = unsound_status(&place);
    assert!(stopped["log_error"].is_null(), "{stopped}");
    assert!(stopped["state"].as_str().unwrap().contains("failed a flush"), "{stopped}");
    let page = place.plumb().args(["cache", "status", &place.name]).output().unwrap();
    assert!(said(&page).contains("NOT SERVING"), "{}", said(&page));
    for words in ["LOG NOT WRITTEN", "being written back", "WRITING BACK FAILS", "replace-log"] {
        assert!(!said(&page).contains(words), "{words}: {}", said(&page));
    }
}

#[test]
fn a_cache_whose_log_fails_writes_when_it_is_opened_is_detached() {
    let place = Place::new(32 << 20);
    let (drive, uri) = log_drive(&place, "first");
    create(&place, &[&uri]);
    let server = place.serve();
    load(&place, &server);
    server.kill();
    drive.order("fault", &["write:eio"]);
    let detached = exited(place.try_cache(&["detach", &place.name]), 0);
    assert!(said(&detached).contains("not erased"), "{}", said(&detached));
    is_whole(&place, "backing");
}

#[test]
fn a_mirror_with_a_dead_device_is_detached() {
    let place = Place::new(32 << 20);
    let (drive, uri) = log_drive(&place, "first");
    create(&place, &[&uri, "log2"]);
    let server = place.serve();
    load(&place, &server);
    drive.order("fault", &["write:eio"]);
    load(&place, &server);
    drop(server);
    drive.kill();
    exited(place.try_cache(&["detach", &place.name]), 0);
    is_whole(&place, "backing");
}

/// Unreadable places prevent draining the log, which is reported with a remedy.
#[test]
fn a_log_that_cannot_be_read_is_not_moved() {
    let place = Place::new(32 << 20);
    let (drive, uri) = log_drive(&place, "first");
    create(&place, &[&uri]);
    place.put_to_sleep();
    let server = place.serve();
    load(&place, &server);
    drive.order("fault", &["read:eio"]);
    let moved = ["replace-log", &place.name, "second"];
    refused(&place, &moved, 4, &["cannot be read", "--give-up-unreadable"]);
    // All data is there once the log is readable again.
    server.kill();
    drive.order("fault", &["--clear"]);
    place.cache(&["detach", &place.name]);
    is_whole(&place, "backing");
}

#[test]
fn a_log_whose_file_was_deleted_is_told_and_replaced() {
    let place = Place::new(32 << 20);
    place.create(&[]);
    let server = place.serve();
    load(&place, &server);
    std::fs::remove_file(place.path("log")).unwrap();
    let deleted = unsound_status(&place);
    assert_eq!(deleted["legs"][0]["state"], "deleted");
    place.cache(&["replace-log", &place.name, "second"]);
    assert_eq!(status(&place).status.code(), Some(0));
    server.kill();
    let server = place.serve();
    is_whole(&place, &server.uri());
    place.stop(server);
    place.cache(&["detach", &place.name]);
}

/// Nobody is told of a device that went away while its cache was stopped, unless `status` looks for it.
#[test]
fn the_status_of_a_stopped_cache_names_devices_that_are_not_there() {
    let place = Place::new(32 << 20);
    place.create(&SLEEPS);
    place.stop(place.serve());
    let unserved = place.cache(&["status", &place.name]);
    assert_eq!((&unserved["flushes"], &unserved["legs"][0]["state"]), (&Value::Null, &"unknown".into()));
    for (name, words) in [("log", "LOG MISSING"), ("backing", "BACKING MISSING")] {
        std::fs::rename(place.path(name), place.path("away")).unwrap();
        let shown = unsound_page(&place);
        assert!(shown.contains(words) && shown.contains("bring it back"), "{shown}");
        let missing = unsound_status(&place);
        let of_leg = missing["legs"][0]["state"] == "missing";
        assert_eq!((of_leg, missing["backing"]["is_missing"] == true), (name == "log", name == "backing"));
        std::fs::rename(place.path("away"), place.path(name)).unwrap();
    }
    place.cache(&["detach", &place.name]);
}

/// A deleted log lasts as long as its server, which drains it before it ends.
#[test]
fn a_deleted_log_is_written_back_before_its_server_ends() {
    for way in ["stop", "detach", "discard", "signal"] {
        let place = Place::new(32 << 20);
        let uuid = place.create(&SLEEPS)["uuid"].as_str().unwrap().to_owned();
        let server = place.serve();
        load(&place, &server);
        std::fs::remove_file(place.path("log")).unwrap();
        assert_ne!(unsound_status(&place)["dirty_bytes"], 0);
        match way {
            "signal" => server.terminate(),
            "discard" => {
                let detached = place.cache(&["detach", &place.name, "--cut-off", "--discard-dirty", &uuid]);
                assert_eq!(detached["discarded"], false, "everything was written back");
            }
            _ => drop(place.cache(&[way, &place.name])),
        }
        assert_eq!(server.wait(), Some(0), "{way}");
        if matches!(way, "stop" | "signal") {
            place.cache(&["detach", &place.name, "--discard-dirty", &uuid]);
        }
        is_whole(&place, "backing");
    }
}

/// The loss of what only the log holds is accepted, so a server that cannot prevent it is no failure.
#[test]
fn a_deleted_log_that_cannot_be_written_back_is_discarded_by_one_command() {
    let place = Place::new(32 << 20);
    let (drive, uri) = log_drive(&place, "drive");
    let words = ["create", "--name", &place.name, "--backing", &uri, "--destroy", &uri, "--log", "log"];
    let created = place.cache(&[&words[..], &["--size", "64M"], &SLEEPS[..]].concat());
    let uuid = created["uuid"].as_str().unwrap();
    let server = place.serve();
    load(&place, &server);
    std::fs::remove_file(place.path("log")).unwrap();
    // The mark is at the end of the drive.
    drive.order("fault", &["write:eio:lba=0-10000"]);
    let detached = place.try_cache(&["detach", &place.name, "--cut-off", "--discard-dirty", uuid]);
    assert_eq!(detached.status.code(), Some(0), "{}", said(&detached));
    assert_eq!(document(&detached)["discarded"], true);
    assert!(said(&detached).contains("that only the log held are lost"), "{}", said(&detached));
    assert_eq!(server.wait(), Some(5));
    refused(&place, &["status", &place.name], 2, &["no cache of this name"]);
}

/// The other leg of the mirror has all data, so the server ends at once.
#[test]
fn a_mirror_of_which_one_file_was_deleted_is_stopped_without_writing_back() {
    let place = Place::new(32 << 20);
    place.create(&[&SLEEPS[..], &["--log", "log2"]].concat());
    let server = place.serve();
    load(&place, &server);
    std::fs::remove_file(place.path("log")).unwrap();
    let deleted = unsound_status(&place);
    assert_eq!((&deleted["legs"][0]["state"], &deleted["layout"]), (&"deleted".into(), &"mirror".into()));
    let page = unsound_page(&place);
    assert!(page.contains("Nothing is lost when the server ends, because another device"), "{page}");
    assert_ne!(place.cache(&["stop", &place.name])["dirty_bytes"], 0);
    assert_eq!(server.wait(), Some(0));
    let server = place.serve_as(&["--nbd", "socket", "--degraded"]);
    is_whole(&place, &server.uri());
    place.stop(server);
    place.cache(&["detach", &place.name]);
    is_whole(&place, "backing");
}

/// A deleted backing file is lost when the server ends, which therefore requires consent.
#[test]
fn a_backing_file_that_lost_its_name_is_told_and_keeps_the_server() {
    let place = Place::new(32 << 20);
    place.create(&SLEEPS);
    let server = place.serve();
    load(&place, &server);
    let [backing, away] = ["backing", "away"].map(|name| place.path(name));
    std::fs::rename(&backing, &away).unwrap();
    assert_eq!(unsound_status(&place)["backing"]["is_deleted"], true);
    for order in ["drain", "stop", "detach"] {
        refused(&place, &[order, &place.name], 4, &["was deleted or renamed", "copy the data"]);
    }
    std::fs::rename(&away, &backing).unwrap();
    assert_eq!(status(&place).status.code(), Some(0));
    place.stop(server);
    place.cache(&["detach", &place.name]);
    is_whole(&place, "backing");
}

/// A log on the cache itself would deadlock.
#[test]
fn a_log_does_not_move_onto_its_own_cache() {
    let place = Place::new(32 << 20);
    place.create(&[]);
    let server = place.serve();
    let uri = server.uri();
    for order in ["replace-log", "replace-leg"] {
        let lost: &[&str] = if order == "replace-leg" { &["--lost", "0", "--log"] } else { &[] };
        let words = [&[order, &*place.name], lost, &[&uri, "--overwrite"]].concat();
        refused(&place, &words, 4, &["it lies on this cache"]);
    }
    place.cache(&["stop", &place.name]);
    let Some((place, server, at, mounted)) = served_mounted() else { return };
    let log = at.path().join("log");
    refused(&place, &["replace-log", &place.name, log.to_str().unwrap()], 4, &["it lies on this cache"]);
    assert!(!log.exists());
    std::fs::write(at.path().join("file"), "written").unwrap();
    drop(mounted);
    place.stop(server);
}

/// The kernel numbers the devices in another order, and other devices have their names.
#[test]
fn devices_are_found_whatever_they_are_called() {
    if let Some(why) = cannot_attach(&["mkfs.ext4", "losetup"]) {
        return plumb_testkit::skip(&why);
    }
    let place = Place::new(32 << 20);
    let (backing, log) = (place.path("backing"), place.path("log"));
    std::fs::File::create(&log).unwrap().set_len(64 << 20).unwrap();
    let (Some(first), Some(second)) = (AttachedLoop::over(&backing), AttachedLoop::over(&log)) else {
        return;
    };
    let words = ["create", "--name", &place.name, "--backing", &first.0, "--log", &second.0, "--size", "48M"];
    place.cache(&[&words[..], &["--overwrite"]].concat());
    let server = place.serve();
    load(&place, &server);
    place.stop(server);
    let names = [first.0.clone(), second.0.clone()];
    drop((first, second));
    let Some(_first) = AttachedLoop::at(&names[0], &log) else { return };
    let Some(second) = AttachedLoop::at(&names[1], &backing) else { return };
    let mut server = place.serve();
    is_whole(&place, &server.uri());
    let found = place.cache(&["status", &place.name]);
    assert_eq!(
        (&found["backing"]["path"], &found["legs"][0]["path"]),
        (&names[1].as_str().into(), &names[0].as_str().into())
    );
    server.terminate_until(&format!("was found at {} in place of {}", names[1], names[0]));
    assert_eq!(server.wait(), Some(0));
    // Another device in use has the name of the backing device, which is gone.
    drop(second);
    let stranger = place.path("stranger");
    std::fs::File::create(&stranger).unwrap().set_len(32 << 20).unwrap();
    let Some(_stranger) = AttachedLoop::at(&names[1], &stranger) else { return };
    Kind::Ext4.make(&names[1]);
    let at = tempfile::tempdir().unwrap();
    let mounted = MountedFileSystem::new(Kind::Ext4, &names[1], at.path()).unwrap();
    let uuid = found["uuid"].as_str().unwrap();
    exited(place.try_cache(&["detach", &place.name, "--discard-dirty", uuid]), 0);
    drop(mounted);
}
