//! Tests of the advice in messages of `plumb cache`: none suggests what was just done, or removing the cache
//! where something else would help; and different figures look different.

use crate::cache_support::{Place, refused, served_mounted};
use crate::common::{exited, said};

#[test]
fn a_size_that_no_file_would_have_is_told() {
    let place = Place::new(8 << 20);
    let create = ["create", "--name", "x", "--backing", "backing", "--log", "log", "--size", "12345678"];
    refused(&place, &create, 2, &["12345678", "whole blocks", "12345344 or 12349440"]);
    assert!(!place.path("log").exists());
    place.create(&[]);
    refused(&place, &["grow", &place.name, "--size", "99999999"], 2, &["whole blocks"]);
}

#[test]
fn a_log_that_was_cut_says_by_how_much_and_names_no_other_device() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    std::fs::File::options().write(true).open(place.path("log")).unwrap().set_len(60 << 20).unwrap();
    let output = exited(place.try_cache(&["serve", &place.name, "--nbd", "s"]), 4);
    for words in ["62914560 bytes", "the log needs 62939136", "the only device of the log"] {
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
    }
    assert!(!said(&output).contains("--degraded"), "{}", said(&output));
}

#[test]
fn whoever_said_degraded_is_not_told_to_say_it() {
    let place = Place::new(8 << 20);
    place.create(&["--log", "log2"]);
    std::fs::rename(place.path("log"), place.path("away")).unwrap();
    let serve = ["cache", "serve", &place.name, "--nbd", "socket", "--json", "--degraded"];
    let (_, mut child) = crate::drive_support::served(place.plumb().args(serve));
    place.cache(&["stop", &place.name]);
    child.wait().unwrap();
    // Only the stale device is present.
    std::fs::rename(place.path("log2"), place.path("away2")).unwrap();
    std::fs::rename(place.path("away"), place.path("log")).unwrap();
    let output = exited(place.try_cache(&["serve", &place.name, "--nbd", "s", "--degraded"]), 4);
    assert!(said(&output).contains("device that had failed"), "{}", said(&output));
    assert!(!said(&output).contains("with --degraded"), "{}", said(&output));
}

/// Within a version, keys may be added to a document.
#[test]
fn a_configuration_of_a_later_plumb_is_read() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let file = place.path("cache").join(format!("{}.json", place.name));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen('{', "{\"later\": 1,", 1)).unwrap();
    place.cache(&["mode", &place.name, "ordered"]);
    place.cache(&["verify", &place.name]);
}

#[test]
fn a_refusal_to_adopt_promises_nothing() {
    let place = Place::new(8 << 20);
    let adopt = ["adopt", "--name", "x", "--backing", "backing", "--log", "backing"];
    let output = exited(place.try_cache(&adopt), 4);
    assert!(!said(&output).contains("will be served"), "{}", said(&output));
}

/// Checks that the kernel, not the build of plumb, determines how a cache can be served.
#[test]
fn a_kernel_without_ublk_is_told_what_to_do() {
    if std::path::Path::new("/dev/ublk-control").exists() {
        return plumb_testkit::skip("the driver is here");
    }
    let place = Place::new(8 << 20);
    place.create(&[]);
    refused(&place, &["serve", &place.name, "--ublk"], 5, &["modprobe ublk_drv", "--attach", "NBD"]);
    place.cache(&["detach", &place.name]);
}

/// A detached cache is gone; leftovers of a killed server are removed when it is served again.
#[test]
fn what_a_killed_server_has_left_mounted_leads_to_no_detach() {
    let Some((place, server, _at, mounted)) = served_mounted() else { return };
    let output = place.try_cache(&["stop", &place.name]);
    assert!(said(&output).contains("--cut-off") && !said(&output).contains("detach"), "{}", said(&output));
    server.kill();
    let output = exited(place.try_cache(&["serve", &place.name, "--attach"]), 4);
    assert!(said(&output).contains(&format!("serve {} again", place.name)), "{}", said(&output));
    assert!(!said(&output).contains("detach"), "{}", said(&output));
    drop(mounted);
    let server = place.serve_as(&["--attach"]);
    server.terminate();
    assert_eq!(server.wait(), Some(0));
}
