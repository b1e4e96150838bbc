//! The life of a cache by its commands: the documents are what their schema says, and what is written through the cache is on the
//! backing device when the cache is gone.

use std::os::unix::fs::MetadataExt as _;

use serde_json::Value;

use crate::cache_support::Place;
use crate::common::{document, said};
use crate::drive_documents::matches_schema;

fn load(place: &Place, uri: &str, arguments: &[&str]) -> Value {
    let output = place
        .plumb()
        .args(["load", uri, "--overwrite", "--json", "--no-record", "--seed", "5"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    document(&output)
}

#[test]
fn a_cache_is_made_served_written_and_taken_away() {
    let place = Place::new(32 << 20);
    let made = place.create(&[]);
    matches_schema(&made, "cache-status");
    assert_eq!((&made["served"], &made["dirty_bytes"]), (&Value::from(false), &Value::from(0)));
    let log = std::fs::metadata(place.path("log")).unwrap();
    assert!(log.len() >= 64 << 20 && log.blocks() * 512 >= 64 << 20, "the log is not allocated: {log:?}");
    let server = place.serve();
    matches_schema(&server.document, "cache-status");
    let written = load(
        &place,
        &server.uri(),
        &["--write", "100", "--random", "--bytes", "8M", "--sync-every", "16", "--verify"],
    );
    let verified = &written["targets"][0]["verified"];
    assert_eq!((&verified["lost"], &verified["stale"]), (&Value::from(0), &Value::from(0)), "{verified}");
    let status = place.cache(&["status", &place.name]);
    matches_schema(&status, "cache-status");
    assert_eq!(status["legs"][0]["state"], "live");
    let flushes = &status["flushes"];
    // Of the backing device only those after writing back.
    assert!(flushes["log"].as_u64() >= Some(1) && flushes["backing"].as_u64() < Some(16), "{flushes}");
    let all = place.cache(&["status"]);
    assert_eq!(
        (&all["schema"], all["caches"].as_array().unwrap().len()),
        (&Value::from("plumb/caches/1"), 1)
    );
    let drained = place.cache(&["drain", &place.name]);
    assert_eq!(drained["dirty_bytes"], 0, "{drained}");
    let stopped = place.cache(&["stop", &place.name]);
    matches_schema(&stopped, "cache-status");
    assert_eq!((server.wait(), &stopped["served"]), (Some(0), &Value::from(false)));
    // Served again: what was written is there.
    let server = place.serve();
    let read = load(&place, &server.uri(), &["--write", "0", "--bytes", "8M"]);
    assert_eq!(read["targets"][0]["read"]["errors"], 0, "{read}");
    place.cache(&["stop", &place.name]);
    assert_eq!(server.wait(), Some(0));
    let gone = place.cache(&["detach", &place.name]);
    assert_eq!(gone["discarded"], false);
    assert_eq!(place.cache(&["status"])["caches"].as_array().unwrap().len(), 0);
    // The backing file is a file like any other again.
    assert!(
        !place.plumb().args(["cache", "serve", &place.name, "--nbd", "s"]).output().unwrap().status.success()
    );
    // And so is the log.
    place.create(&[]);
}

#[test]
fn what_a_killed_server_leaves_in_the_way_is_gone_with_the_next_command() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let server = place.serve();
    let control = std::path::PathBuf::from(server.document["control"].as_str().unwrap());
    server.kill();
    assert!(control.exists());
    let found = place.plumb().args(["cache", "verify", &place.name]).output().unwrap();
    assert!(!control.exists(), "{}", said(&found));
    assert!(!said(&found).contains("NOT SERVING"), "{}", said(&found));
}

#[test]
fn a_size_is_advised_that_takes_the_bursts() {
    let place = Place::new(8 << 20);
    // Every 10 s 1000 writes of 64 KiB at once, each to a place of its own; 150 of them a second are what the disk takes.
    let mut iolog = "fio version 2 iolog\n/dev/sdx add\n/dev/sdx open\n".to_owned();
    for number in 0..3000_u64 {
        if number > 0 && number.is_multiple_of(1000) {
            iolog += "/dev/sdx wait 10000000\n";
        }
        iolog += &format!("/dev/sdx write {} 65536\n", number * 7919 % 16_384 * 65_536);
    }
    std::fs::write(place.path("iolog"), iolog + "/dev/sdx close\n").unwrap();
    let sizes = ["--size", "32M,256M,1G"];
    let advise =
        [&["advise", "iolog", "--backing-rate", "150M", "--backing-iops", "150"][..], &sizes].concat();
    let advice = place.cache(&advise);
    matches_schema(&advice, "cache-advice");
    assert_eq!((&advice["writes"], &advice["written_bytes"]), (&3000.into(), &(3000_u64 << 16).into()));
    let figure = |at: usize, name: &str| advice["sizes"][at][name].as_f64().unwrap();
    assert!(figure(0, "absorbed") < 0.9 && figure(0, "stall_seconds") > 1.0, "{advice:#}");
    assert!(figure(2, "absorbed") > 0.999 && figure(2, "speed_up") > 10.0, "{advice:#}");
    assert!(figure(0, "speed_up") < figure(1, "speed_up"), "{advice:#}");
    // A burst takes the disk 6.7 s, and the last of its writes waits for all others.
    let uncached = &advice["uncached"];
    assert!(
        uncached["write_max"].as_f64() > Some(6.0) && uncached["write_mean"].as_f64() > Some(3.0),
        "{advice:#}"
    );
    assert_eq!(advice["advised_size"], 256 << 20, "{advice:#}");
    assert_eq!(advice, place.cache(&advise), "simulated time gives the same again");
}

#[test]
fn metrics_are_well_formed() {
    let place = Place::new(8 << 20);
    place.create(&["--mode", "ordered"]);
    let server = place.serve();
    let output = place.plumb().args(["cache", "status", "--prometheus"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("plumb_cache_dirty_bytes{") && text.contains("plumb_cache_served{"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok() && line.contains(&place.name), "{line}");
    }
    drop(server);
    let Ok(mut checked) = std::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
    else {
        return plumb_testkit::skip("there is no promtool");
    };
    std::io::Write::write_all(&mut checked.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let checked = checked.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", said(&checked));
}
