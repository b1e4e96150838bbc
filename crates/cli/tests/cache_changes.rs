//! Tests of changes to the log of a cache, served or not: replacing a leg, and growing. All data that was
//! written is there afterwards.

use serde_json::Value;

use crate::cache_documents;
use crate::cache_support::{Place, SLEEPS, Server, refused};
use crate::common::{document, exited, holds, said, valid_document};

fn load(place: &Place, uri: &str, arguments: &[&str]) {
    let document = cache_documents::load(place, uri, &[&["--bytes", "8M"], arguments].concat());
    let verified = &document["targets"][0];
    assert_eq!(verified["read"]["errors"], 0, "{verified}");
}

/// Writes until the log has more than a thousand records, and kills the server. The cache [`SLEEPS`].
fn crash_with_records(place: &Place, server: Server) {
    load(place, &server.uri(), &["--write", "100", "--block-size", "4K", "--sync-every", "64"]);
    assert!(place.cache(&["status", &place.name])["counts"]["records"].as_f64() > Some(1000.0));
    server.kill();
}

fn states(status: &Value) -> Vec<&str> {
    status["legs"].as_array().unwrap().iter().map(|leg| leg["state"].as_str().unwrap()).collect()
}

#[test]
fn a_leg_is_replaced_and_the_log_grows_and_nothing_is_lost() {
    let place = Place::new(32 << 20);
    place.create(&[&["--log", "log2"], &SLEEPS[..]].concat());
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "100", "--random", "--verify"]);
    let name = &place.name;
    let replaced = place.cache(&["replace-leg", name, "--lost", "log2", "--log", "log3"]);
    holds("cache-status", &replaced);
    assert_eq!(states(&replaced), ["live", "live"]);
    assert!(replaced["legs"][1]["path"].as_str().unwrap().ends_with("log3"), "{replaced}");
    let copied = replaced["counts"]["resilvered"].as_f64().unwrap();
    let logged = replaced["counts"]["leg_written"].as_f64().unwrap() / 2.0;
    assert!(copied > 0.0, "{replaced}");
    assert_eq!(replaced["wear"]["written_bytes"], (copied + logged) as u64, "{replaced}");
    let before = replaced["log_size"].as_u64().unwrap();
    let grown = place.cache(&["grow", name, "--size", "96M"]);
    holds("cache-status", &grown);
    assert!(grown["log_size"].as_u64() >= Some(before + (24 << 20)), "{grown}");
    assert_eq!(grown["size"], 96 << 20);
    // Repeating an order that was interrupted while the server executed it.
    let again = exited(place.try_cache(&["grow", name, "--size", "96M"]), 0);
    assert!(said(&again).contains("already so large"), "{}", said(&again));
    assert_eq!(document(&again)["log_size"], grown["log_size"]);
    load(&place, &server.uri(), &["--write", "50", "--random", "--verify"]);
    let smaller = place.try_cache(&["grow", name, "--size", "32M"]);
    assert!(
        !smaller.status.success() && said(&smaller).contains("cannot be made smaller"),
        "{}",
        said(&smaller)
    );
    place.stop(server);
    assert_eq!(place.cache(&["grow", name, "--size", "96M"])["size"], 96 << 20);
    // With the first leg gone, only data that was already copied to the second remains.
    std::fs::remove_file(place.path("log")).unwrap();
    let replaced = place.cache(&["replace-leg", name, "--lost", "0", "--log", "log4"]);
    assert_eq!(states(&replaced), ["live", "live"]);
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "0"]);
    place.stop(server);
    place.cache(&["detach", name]);
}

/// Growth that fails restores the length of the files. If the server is killed after it extended them, the
/// cache opens and can grow.
#[test]
fn files_are_as_long_as_before_if_the_log_does_not_grow() {
    let place = Place::new(8 << 20);
    let room = place.path("room");
    let drive = ["memory", "--size", "80M", "--nbd", room.to_str().unwrap()];
    let drive = crate::drive_support::Server::start(&drive);
    let uri = drive.document["nbd"].as_str().unwrap();
    place.create(&["--log", uri, "--destroy", uri]);
    let name = &place.name;
    let length = || std::fs::metadata(place.path("log")).unwrap().len();
    let refused = |size: &str, word: &str| {
        let output = place.try_cache(&["grow", name, "--size", size]);
        assert!(!output.status.success() && said(&output).contains(word), "{}", said(&output));
        assert_eq!(length(), 64 << 20, "{size}");
        assert_eq!(place.cache(&["status", name])["size"], 64 << 20, "{size}");
    };
    let server = place.serve();
    // Growth by less than a segment, and beyond the size of the other device.
    refused("67117056", "cannot be made smaller");
    refused("96M", "make it larger first");
    load(&place, &server.uri(), &["--write", "100", "--random", "--verify"]);
    server.kill();
    std::fs::File::options().write(true).open(place.path("log")).unwrap().set_len(76 << 20).unwrap();
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "0"]);
    assert_eq!(place.cache(&["grow", name, "--size", "76M"])["size"], 76 << 20);
    load(&place, &server.uri(), &["--write", "50", "--random", "--verify"]);
    place.stop(server);
    place.cache(&["detach", name]);
}

/// The configuration of the cache is lost; its devices are not.
#[test]
fn a_cache_is_known_again_by_its_devices() {
    // The file ends within a block.
    let place = Place::new((32 << 20) + 100);
    place.create(&["--log", "log2"]);
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "100", "--random", "--verify"]);
    place.stop(server);
    std::fs::remove_dir_all(place.path("cache")).unwrap();
    let adopt = |more: &[&str]| {
        let fixed = ["adopt", "--name", &place.name, "--backing", "backing"];
        place.try_cache(&[&fixed, more].concat())
    };
    exited(adopt(&["--log", "backing"]), 4);
    exited(adopt(&["--log", "log2", "--mode", "ordered"]), 0);
    let serve = ["serve", &place.name, "--nbd", "other.sock"];
    refused(&place, &serve, 4, &["may hold data that no other has", "--degraded"]);
    // The name of the cache is known, with the present paths of its devices.
    let again = adopt(&["--log", "log2", "--log", "log"]);
    assert_eq!(document(&again)["mode"], "ordered", "{}", said(&again));
    let other = ["adopt", "--name", "other", "--backing", "backing", "--log", "log", "--log", "log2"];
    refused(&place, &other, 4, &["is already known as", &place.name]);
    std::fs::remove_dir_all(place.path("cache")).unwrap();
    let adopted = adopt(&["--log", "log2", "--log", "log"]);
    assert!(adopted.status.success() && said(&adopted).contains("write-back"), "{}", said(&adopted));
    holds("cache-status", &document(&adopted));
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "0"]);
    let mode = place.cache(&["mode", &place.name, "ordered"]);
    assert_eq!(mode["mode"], "ordered");
    assert_eq!(place.cache(&["mode", &place.name, "write-back"])["mode"], "write-back");
    place.stop(server);
    place.cache(&["detach", &place.name]);
}

/// A block of the log is unreadable: the lost data is named, and the cache refuses to detach until it is
/// given up or overwritten.
#[test]
fn what_the_log_cannot_read_is_named_and_given_up_only_on_demand() {
    let place = Place::new(8 << 20);
    let made = place.create(&SLEEPS);
    let (name, uuid) = (&place.name, made["uuid"].as_str().unwrap());
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "100", "--block-size", "4K", "--sync-every", "64"]);
    server.kill();
    let mut log = std::fs::read(place.path("log")).unwrap();
    // The damage is in the payloads of many records, but not of the last one, which may not be durable.
    let headers = (0..log.len()).step_by(4096).filter(|at| log[*at..].starts_with(b"plumbrec"));
    headers.take(100).collect::<Vec<_>>().into_iter().for_each(|header| log[header + 5000] ^= 1);
    std::fs::write(place.path("log"), &log).unwrap();
    let refused = exited(place.try_cache(&["detach", name]), 4);
    assert!(said(&refused).contains("from byte ") && said(&refused).contains(uuid), "{}", said(&refused));
    let server = place.serve();
    let found = place.try_cache(&["status", name]);
    assert_eq!(found.status.code(), Some(1), "what is lost is a finding");
    let status = valid_document("cache-status", &found);
    assert!(status["unreadable"][0]["length"].as_u64() >= Some(4096), "{status}");
    assert_eq!(status["dirty_bytes"], 0);
    place.stop(server);
    let wrong =
        place.try_cache(&["detach", name, "--give-up-unreadable", "00000000-0000-0000-0000-000000000000"]);
    assert_eq!(wrong.status.code(), Some(4), "{}", said(&wrong));
    place.cache(&["detach", name, "--give-up-unreadable", uuid]);
}

/// Damage on one leg of a mirror is a finding until recovery repairs it; damage on both legs stays a finding.
#[test]
fn verifying_finds_what_a_device_of_the_log_has_lost() {
    let place = Place::new(8 << 20);
    place.create(&[&["--log", "log2"], &SLEEPS[..]].concat());
    let server = place.serve();
    crash_with_records(&place, server);
    let spoil = |name: &str| {
        let mut log = std::fs::read(place.path(name)).unwrap();
        let headers: Vec<_> =
            (0..log.len()).step_by(4096).filter(|at| log[*at..].starts_with(b"plumbrec")).collect();
        // The first records are freed first, the last may not be durable, and some were overwritten since.
        let middle = &headers[headers.len() / 4..headers.len() / 4 * 3];
        middle.iter().for_each(|header| log[header + 5000] ^= 1);
        std::fs::write(place.path(name), &log).unwrap();
    };
    let verify = |exit: i32| {
        let output = place.try_cache(&["verify", &place.name]);
        assert_eq!(output.status.code(), Some(exit), "{}", said(&output));
        let found = document(&output);
        (found["recovery"].clone(), found["damaged"].as_array().unwrap().len())
    };
    let (whole, _) = verify(0);
    assert!(whole["records"].as_u64() >= Some(1000), "{whole}");
    spoil("log2");
    let (damaged, nowhere) = verify(1);
    assert!(damaged["legs"][1]["damaged_bytes"].as_u64() >= Some(8192), "{damaged}");
    assert_eq!((&damaged["legs"][0]["damaged_bytes"], nowhere), (&0.into(), 0));
    let planned = place.try_cache(&["recover", &place.name, "--dry-run"]);
    assert_eq!(document(&planned)["recovery"], damaged, "what would be done");
    place.cache(&["recover", &place.name]);
    assert_eq!(verify(0).1, 0);
    let log = std::fs::File::options().write(true).open(place.path("log2")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&log, &[7; 16 << 10], 0).unwrap();
    assert_eq!(verify(1).0["legs"][1]["front_lost"], true);
    place.cache(&["recover", &place.name]);
    assert_eq!(verify(0).0["legs"][1]["front_lost"], false);
    spoil("log");
    spoil("log2");
    assert!(verify(1).1 > 0);
    std::fs::remove_file(place.path("log2")).unwrap();
    let alone = place.try_cache(&["verify", &place.name]);
    assert_eq!((alone.status.code(), states(&document(&alone))), (Some(1), vec!["live", "lost"]));
    assert!(
        said(&alone).contains("cannot be recovered or served"),
        "what recovery would do: {}",
        said(&alone)
    );
}

/// A log that ends before a durable record is refused; giving up the rest requires the UUID of the cache.
#[test]
fn a_log_that_lost_durable_records_is_kept_up_to_there_on_demand() {
    let place = Place::new(8 << 20);
    let uuid = place.create(&SLEEPS)["uuid"].as_str().unwrap().to_owned();
    let server = place.serve();
    crash_with_records(&place, server);
    let mut log = std::fs::read(place.path("log")).unwrap();
    let headers: Vec<_> =
        (0..log.len()).step_by(4096).filter(|at| log[*at..].starts_with(b"plumbrec")).collect();
    log[headers[headers.len() / 2] + 100] ^= 1;
    std::fs::write(place.path("log"), &log).unwrap();
    let name = &place.name;
    let recover = |more: &[&str]| place.try_cache(&[&["recover", name], more].concat());
    for refused in [recover(&[]), recover(&["--give-up-lost", "00000000-0000-0000-0000-000000000000"])] {
        assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
    }
    let way_out = format!("`plumb cache recover {name} --give-up-lost {uuid}`");
    assert!(said(&recover(&[])).contains(&way_out), "{}", said(&recover(&[])));
    let planned = exited(recover(&["--dry-run", "--give-up-lost", &uuid]), 1);
    assert!(document(&planned)["recovery"]["lost_records"].as_u64() > Some(0));
    exited(recover(&["--give-up-lost", &uuid]), 0);
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "100", "--random", "--verify"]);
    place.stop(server);
    place.cache(&["verify", name]);
    place.cache(&["detach", name]);
}
