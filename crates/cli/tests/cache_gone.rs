//! Tests of caches whose devices or servers are gone: removing them, and the messages about lost data. They
//! guard against a cache that cannot be removed because its backing device does not come back, and against a
//! status that waits for a server that does not answer.

use std::fs;

use rustix::process::Signal;

use crate::cache_support::{Place, refused};
use crate::common::{document, exited, said};

#[test]
fn a_cache_whose_backing_device_is_gone_is_given_up() {
    let place = Place::new(8 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    let name = &place.name;
    fs::rename(place.path("backing"), place.path("away")).unwrap();
    let log = place.path("log").display().to_string();
    let moved = format!("`plumb cache adopt --name {name} --backing NEW --log {log}`");
    for command in [&["serve", name, "--nbd", "s"][..], &["verify", name], &["detach", name]] {
        refused(
            &place,
            command,
            4,
            &["backing device is missing", "bring it back", &moved, "--discard-dirty", &uuid],
        );
    }
    let other = "00000000-0000-0000-0000-000000000000";
    refused(&place, &["detach", name, "--discard-dirty", other], 4, &[&uuid]);
    let gone = exited(place.try_cache(&["detach", name, "--discard-dirty", &uuid]), 0);
    assert_eq!(document(&gone)["discarded"], true);
    for words in ["is missing", "lacks the data that only the log held", &uuid] {
        assert!(said(&gone).contains(words), "{words}: {}", said(&gone));
    }
    refused(&place, &["status", name], 2, &["no cache of this name"]);
    // The log is free, and the backing device still reports the missing cache.
    fs::rename(place.path("away"), place.path("backing")).unwrap();
    let again = ["create", "--name", name, "--backing", "backing", "--log", "log", "--size", "64M"];
    refused(&place, &again, 4, &[&uuid, "--discard-dirty"]);
    place.cache(&[&again[..], &["--discard-dirty", &uuid]].concat());
}

/// The remedies in the refusals work as described.
#[test]
fn a_cache_whose_log_was_moved_is_adopted_as_the_refusal_says() {
    let place = Place::new(8 << 20);
    place.create(&["--log", "log2"]);
    let name = &place.name;
    let path = |file| place.path(file).display().to_string();
    fs::rename(place.path("log2"), place.path("moved")).unwrap();
    let anew = |log2: &str| {
        let (backing, log) = (path("backing"), path("log"));
        format!("`plumb cache adopt --name {name} --backing {backing} --log {log} --log {log2}`")
    };
    refused(&place, &["serve", name, "--nbd", "s"], 4, &["log2 is not there", &anew("NEW")]);
    let command = anew(&path("moved"));
    let words: Vec<&str> = command.trim_matches('`').split(' ').skip(2).collect();
    place.cache(&words);
    let page = place.plumb().args(["cache", "status", name]).output().unwrap();
    let serving = format!("plumb cache serve {name} --attach");
    assert!(said(&page).contains(&serving), "{}", said(&page));
    drop(place.serve());
}

#[test]
fn two_orders_at_once_are_told_from_a_stranger_that_has_a_device() {
    let place = Place::new(8 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    let name = &place.name;
    place.cache(&["verify", name]);
    // Hold the lock of a running order.
    let held = fs::File::open(place.path("cache").join(format!("{name}.lock"))).unwrap();
    held.lock().unwrap();
    for command in [
        &["verify", name][..],
        &["recover", name],
        &["detach", name],
        &["detach", name, "--discard-dirty", &uuid],
    ] {
        refused(&place, command, 4, &["another order on this cache is running"]);
    }
    drop(held);
    place.cache(&["detach", name]);
    assert!(!place.path("cache").join(format!("{name}.lock")).exists());
}

/// A missing log is not reported as not erased.
#[test]
fn a_log_that_is_gone_is_not_said_to_look_like_one() {
    let place = Place::new(8 << 20);
    let uuid = place.create(&["--log", "log2"])["uuid"].as_str().unwrap().to_owned();
    fs::remove_file(place.path("log")).unwrap();
    fs::File::create(place.path("log2")).unwrap();
    let gone = exited(place.try_cache(&["detach", &place.name, "--discard-dirty", &uuid]), 0);
    assert!(!said(&gone).contains("not erased"), "{}", said(&gone));
}

/// Interrupted after the backing device had all data and its marker was removed.
#[test]
fn a_detach_that_ended_before_the_configuration_went_is_resumed_without_a_loss() {
    let place = Place::new(8 << 20);
    let name = &place.name;
    let configuration = place.path("cache").join(format!("{name}.json"));
    for more in [&[][..], &["--discard-dirty"]] {
        let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
        let mut noted: serde_json::Value =
            serde_json::from_slice(&fs::read(&configuration).unwrap()).unwrap();
        noted["detaching"] = 0.into();
        fs::write(&configuration, noted.to_string()).unwrap();
        if noted["marker"] != "attribute" {
            return plumb_testkit::skip("the file system keeps no extended attributes");
        }
        // A cache whose marker is there is not affected.
        let server = place.serve();
        place.stop(server);
        rustix::fs::removexattr(place.path("backing"), "user.plumb.cache").unwrap();
        refused(&place, &["detach", name], 4, &["does not say that it needs the cache"]);
        fs::write(&configuration, noted.to_string()).unwrap();
        refused(&place, &["serve", name, "--nbd", "s"], 4, &["was being detached", "plumb cache detach"]);
        let typed = [&*uuid];
        let words = [&["detach", name][..], more, &typed[..more.len()]].concat();
        assert_eq!(place.cache(&words)["discarded"], false);
        refused(&place, &["status", name], 2, &["no cache of this name"]);
    }
}

/// An empty file counts as a missing device.
#[test]
fn a_cache_of_which_a_device_is_empty_is_refused_and_given_up() {
    let place = Place::new(8 << 20);
    let uuid = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    let name = &place.name;
    let empty = |file| fs::File::options().write(true).open(place.path(file)).unwrap().set_len(0).unwrap();
    empty("log");
    for command in [&["verify", name][..], &["serve", name, "--nbd", "s"]] {
        refused(&place, command, 4, &["smaller than one", "--discard-dirty", &uuid]);
    }
    empty("backing");
    place.cache(&["detach", name, "--discard-dirty", &uuid]);
    refused(&place, &["status", name], 2, &["no cache of this name"]);
}

/// Servers are found by name; the server of another state directory is not mistaken for this cache's.
#[test]
fn a_server_of_a_cache_of_the_same_name_gets_no_order() {
    let place = Place::new(8 << 20);
    let theirs = place.create(&[])["uuid"].as_str().unwrap().to_owned();
    let name = &place.name;
    let other = Place { name: name.clone(), ..Place::new(8 << 20) };
    other.create(&[]);
    let _server = place.serve();
    for command in [
        &["status", name][..],
        &["mode", name, "ordered"],
        &["drain", name],
        &["stop", name],
        &["stop", name, "--cut-off"],
        &["detach", name],
        &["detach", name, "--cut-off"],
    ] {
        refused(&other, command, 4, &[&theirs]);
    }
    let status = place.cache(&["status", name]);
    assert_eq!((&status["mode"], &status["state"]), (&"write-back".into(), &"serving".into()));
}

#[test]
fn a_server_that_does_not_answer_is_named_with_what_to_do() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let server = place.serve();
    server.signal(Signal::STOP);
    let output = place.try_cache(&["status", &place.name]);
    server.signal(Signal::CONT);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("gave no answer") && text.contains("kill -CONT"), "{text}");
    // A busy client notices late.
    let silent = text.split_once("it was silent for ").and_then(|(_, rest)| rest.split(' ').next());
    let seconds: f64 = silent.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    assert!(seconds >= 5.0, "{text}");
    assert_eq!(place.cache(&["status", &place.name])["state"], "serving");
}
