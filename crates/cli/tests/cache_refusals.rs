//! What `plumb cache` refuses, with what code and in what words: nothing is half done.

use crate::cache_support::Place;
use crate::common::{document, said};

/// Runs `plumb cache ARGUMENTS`, which must end with `code` and say all of `words`.
fn refused(place: &Place, arguments: &[&str], code: i32, words: &[&str]) {
    let output = place.try_cache(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    for word in words {
        assert!(text.contains(word), "{arguments:?} does not say `{word}`: {text}");
    }
}

#[test]
fn a_cache_is_made_only_of_what_may_be_used() {
    let place = Place::new(8 << 20);
    std::fs::write(place.path("theirs"), vec![7; 128 << 20]).unwrap();
    let with = |more: &[&'static str]| [&["create", "--name", "x"][..], more].concat();
    refused(
        &place,
        &with(&["--backing", "backing", "--log", "theirs", "--size", "64M"]),
        4,
        &["plumb did not make", "--overwrite"],
    );
    refused(
        &place,
        &with(&["--backing", "none", "--log", "log", "--size", "64M"]),
        2,
        &["none", "no such file"],
    );
    refused(&place, &with(&["--backing", "backing", "--log", "log", "--size", "1M"]), 2, &["segment"]);
    assert!(!place.path("log").exists(), "what was made is left behind");
    refused(
        &place,
        &with(&["--backing", "backing", "--log", "backing", "--size", "1M", "--overwrite"]),
        4,
        &["another cache or drive has it"],
    );
    refused(
        &place,
        &with(&["--backing", "sim:memory", "--log", "log", "--size", "64M"]),
        2,
        &["cache:backing=sim:"],
    );
    refused(
        &place,
        &["create", "--name", "../x", "--backing", "backing", "--log", "log", "--size", "64M"],
        2,
        &["no name"],
    );
    refused(&place, &["serve", "x", "--nbd", "s"], 2, &["no cache of this name"]);
    refused(&place, &["serve", "x"], 2, &["--nbd"]);
    assert_eq!(std::fs::read(place.path("theirs")).unwrap(), vec![7; 128 << 20]);
}

#[test]
fn a_backing_device_keeps_to_its_cache() {
    let place = Place::new(8 << 20);
    let made = place.create(&[]);
    let uuid = made["uuid"].as_str().unwrap();
    let second = ["create", "--name", "second", "--backing", "backing", "--log", "other", "--size", "64M"];
    refused(&place, &second, 4, &[uuid, "--discard-dirty"]);
    // Its log is missing, or another one.
    std::fs::rename(place.path("log"), place.path("away")).unwrap();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["missing", "--discard-dirty"]);
    std::fs::write(place.path("log"), vec![0; 64 << 20]).unwrap();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["superblock"]);
    std::fs::rename(place.path("away"), place.path("log")).unwrap();
    // An old copy of the log.
    std::fs::copy(place.path("log"), place.path("old")).unwrap();
    drop(place.serve());
    std::fs::rename(place.path("log"), place.path("new")).unwrap();
    std::fs::rename(place.path("old"), place.path("log")).unwrap();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["old copy"]);
    std::fs::rename(place.path("new"), place.path("log")).unwrap();
    // A backing file that was made smaller.
    std::fs::File::options().write(true).open(place.path("backing")).unwrap().set_len(4 << 20).unwrap();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["smaller"]);
    std::fs::File::options().write(true).open(place.path("backing")).unwrap().set_len(8 << 20).unwrap();
    // Two servers.
    let server = place.serve();
    refused(&place, &["serve", &place.name, "--nbd", "s"], 4, &["served already"]);
    let offline = ["detach", &place.name, "--discard-dirty", "00000000-0000-0000-0000-000000000000"];
    refused(&place, &offline, 4, &[]);
    drop(server);
    refused(&place, &offline, 4, &[uuid]);
    let gone = place.cache(&["detach", &place.name, "--discard-dirty", uuid]);
    assert_eq!(gone["discarded"], true);
    place.cache(&second);
}

#[test]
fn a_cache_is_checked_only_if_what_is_on_it_may_go() {
    let place = Place::new(32 << 20);
    place.create(&[]);
    let name = format!("cache:{}", place.name);
    let check = |more: &[&str]| {
        let fixed = ["check", &name, "--json", "--seconds", "2", "--size", "16M", "--no-record"];
        place.plumb().args(fixed).args(more).output().unwrap()
    };
    let refused = check(&[]);
    assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
    assert!(said(&refused).contains("--overwrite"), "{}", said(&refused));
    let done = check(&["--overwrite"]);
    assert!(matches!(done.status.code(), Some(0 | 1)), "{}", said(&done));
    let found = document(&done);
    assert_eq!(found["path"]["layers"][1]["kind"], "write-back-cache", "{found:#}");
    assert!(found["sync"][0]["operations"].as_u64() > Some(0), "{found:#}");
    let server = place.serve();
    let served = check(&["--overwrite"]);
    assert_eq!(served.status.code(), Some(4), "{}", said(&served));
    drop(server);
}

#[test]
fn a_full_file_system_is_found_when_the_cache_is_made() {
    let place = Place::new(8 << 20);
    let huge = ["create", "--name", "x", "--backing", "backing", "--log", "log", "--size", "900T"];
    let output = place.try_cache(&huge);
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!place.path("log").exists(), "{}", said(&output));
}
