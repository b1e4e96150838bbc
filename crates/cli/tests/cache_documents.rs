//! Tests of the commands over the life of a cache: documents match their schemas, and data written through
//! the cache is on the backing device after the cache is detached.

use std::os::unix::fs::MetadataExt as _;

use serde_json::Value;

use crate::cache_support::{Place, served_mounted};
use crate::common::{document, exited, holds, said};

pub(crate) fn load(place: &Place, uri: &str, arguments: &[&str]) -> Value {
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
    holds("cache-create", &made);
    assert_eq!((&made["served"], &made["dirty_bytes"]), (&Value::from(false), &Value::from(0)));
    let log = std::fs::metadata(place.path("log")).unwrap();
    assert!(log.len() >= 64 << 20 && log.blocks() * 512 >= 64 << 20, "the log is not allocated: {log:?}");
    let server = place.serve();
    holds("cache-serve", &server.document);
    let written = load(
        &place,
        &server.uri(),
        &["--write", "100", "--random", "--bytes", "8M", "--sync-every", "16", "--verify"],
    );
    let verified = &written["targets"][0]["verified"];
    assert_eq!((&verified["lost"], &verified["stale"]), (&Value::from(0), &Value::from(0)), "{verified}");
    let status = place.cache(&["status", &place.name]);
    holds("cache-status", &status);
    assert_eq!(status["legs"][0]["state"], "live");
    let flushes = &status["flushes"];
    // The backing device is flushed only after destaging.
    assert!(flushes["log"].as_u64() >= Some(1) && flushes["backing"].as_u64() < Some(16), "{flushes}");
    let all = place.cache(&["status"]);
    assert_eq!(
        (&all["schema"], all["caches"].as_array().unwrap().len()),
        (&Value::from("plumb/caches/1"), 1)
    );
    let drained = place.cache(&["drain", &place.name]);
    assert_eq!(drained["dirty_bytes"], 0, "{drained}");
    let stopped = place.cache(&["stop", &place.name]);
    holds("cache-status", &stopped);
    assert_eq!((server.wait(), &stopped["served"]), (Some(0), &Value::from(false)));
    // After a restart of the server the data is there.
    let server = place.serve();
    let read = load(&place, &server.uri(), &["--write", "0", "--bytes", "8M"]);
    assert_eq!(read["targets"][0]["read"]["errors"], 0, "{read}");
    place.stop(server);
    let gone = place.cache(&["detach", &place.name]);
    assert_eq!(gone["discarded"], false);
    holds("cache-detached", &gone);
    let none = place.cache(&["status"]);
    assert_eq!(none["caches"].as_array().unwrap().len(), 0);
    holds("caches", &none);
    // The backing file can be used like any other file again.
    assert!(
        !place.plumb().args(["cache", "serve", &place.name, "--nbd", "s"]).output().unwrap().status.success()
    );
    // The log can be used like any other file again, too.
    place.create(&[]);
}

/// With port 0 the kernel chooses a port, which the status must tell.
#[test]
fn each_place_of_a_served_cache_is_told_with_the_port_that_was_chosen() {
    let place = Place::new(8 << 20);
    place.create(&[]);
    let server = place.serve_as(&["--nbd", "socket", "--nbd", "second", "--nbd-tcp", "127.0.0.1:0"]);
    holds("cache-serve", &server.document);
    let uris: Vec<&str> =
        server.document["nbd_uris"].as_array().unwrap().iter().map(|uri| uri.as_str().unwrap()).collect();
    assert!(uris.len() == 3 && server.document["nbd"] == uris[0], "{uris:?}");
    let port: u16 =
        uris.iter().find_map(|uri| uri.split_once("127.0.0.1:")?.1.split('/').next()?.parse().ok()).unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok(), "{uris:?}");
    let status = place.plumb().args(["cache", "status", &place.name]).output().unwrap();
    for uri in &uris {
        assert!(said(&status).contains(uri), "{uri}: {}", said(&status));
    }
    assert_eq!(place.cache(&["stop", &place.name])["nbd_uris"], Value::Array(Vec::new()));
}

/// A survey reads only the configuration, so the log is unchanged, and a served cache does not prevent it.
#[test]
fn the_survey_of_a_cache_shows_its_devices_and_opens_nothing() {
    let place = Place::new(8 << 20);
    let uuid = place.create(&[])["uuid"].clone();
    let survey = || {
        let target = format!("cache:{}", place.name);
        let output = place.plumb().args(["survey", &target, "--json"]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
        document(&output)["paths"][0]["layers"].clone()
    };
    let before = std::fs::read(place.path("log")).unwrap();
    let layers = survey();
    assert_eq!((&layers[1]["kind"], &layers[1]["identity"]), (&Value::from("write-back-cache"), &uuid));
    assert_eq!(layers[1]["below"][0], layers[2]["name"], "{layers:#}");
    assert!(std::fs::read(place.path("log")).unwrap() == before, "the log was written");
    let server = place.serve();
    assert_eq!(survey(), layers);
    drop(server);
    exited(place.plumb().args(["survey", "cache:none"]).output().unwrap(), 2);
}

/// A survey must not open a cache: it may be served, and recovery would write to its log.
#[test]
fn the_policy_of_a_cache_is_shown_by_its_name_and_by_what_is_mounted_on_it() {
    let show = |place: &Place, target: &str| {
        let output = place.plumb().args(["policy", "show", target, "--json"]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
        document(&output)["devices"][0].clone()
    };
    let place = Place::new(8 << 20);
    place.create(&[]);
    let target = format!("cache:{}", place.name);
    let before = std::fs::read(place.path("log")).unwrap();
    let view = show(&place, &target);
    assert_eq!((&view["name"], &view["transport"]), (&target.clone().into(), &"cache".into()), "{view:#}");
    assert!(view["refusal"]["remedy"].as_str().unwrap().contains("plumb cache mode"), "{view:#}");
    assert!(std::fs::read(place.path("log")).unwrap() == before, "the log was written");
    let server = place.serve();
    assert_eq!(show(&place, &target), view);
    // The storage of the test files may not suit that mode, so it is set in the configuration directly.
    let file = place.path("cache").join(format!("{}.json", place.name));
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace("\"write-back\"", "\"protected\"")).unwrap();
    assert_eq!(show(&place, &target)["state"], "protected");
    let plan = place.plumb().args(["policy", "plan", "off", &target, "--json"]).output().unwrap();
    assert!(said(&plan).contains("is a write-back cache"), "{}", said(&plan));
    drop(server);
    let Some((place, server, at, _mounted)) = served_mounted() else { return };
    let view = show(&place, at.path().to_str().unwrap());
    let device = server.device().strip_prefix("/dev/").unwrap();
    assert!(view["refusal"]["remedy"].as_str().unwrap().contains(device), "{view:#}");
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
    // Every 10 s there is a burst of 1000 random writes of 64 KiB; the disk does 150 per second.
    let mut iolog = "fio version 2 iolog\n/dev/sdx add\n/dev/sdx open\n".to_owned();
    for number in 0..3000_u64 {
        if number > 0 && number.is_multiple_of(1000) {
            iolog += "/dev/sdx wait 10000000\n";
        }
        iolog += &format!("/dev/sdx write {} 65536\n", number * 7919 % 16_384 * 65_536);
    }
    std::fs::write(place.path("iolog"), iolog + "/dev/sdx close\n").unwrap();
    let rates = ["--backing-rate", "150M", "--backing-iops", "150"];
    let advise = [&["advise", "iolog", "--size", "32M,256M,1G"][..], &rates].concat();
    let advice = place.cache(&advise);
    holds("cache-advice", &advice);
    assert_eq!((&advice["writes"], &advice["written_bytes"]), (&3000.into(), &(3000_u64 << 16).into()));
    let sizes = advice["sizes"].as_array().unwrap();
    let figure = |size: u64, name: &str| {
        let tried = sizes.iter().find(|tried| tried["size"] == size << 20);
        tried.and_then(|tried| tried[name].as_f64()).unwrap()
    };
    assert!(figure(32, "absorbed") < 0.9 && figure(32, "stall_seconds") > 1.0, "{advice:#}");
    assert!(figure(1024, "absorbed") > 0.999 && figure(1024, "speed_up") > 10.0, "{advice:#}");
    assert!(figure(32, "speed_up") < figure(256, "speed_up"), "{advice:#}");
    // The disk takes 6.7 s for a burst, which is the latency of its last write.
    let uncached = &advice["uncached"];
    assert!(
        uncached["write_max"].as_f64() > Some(6.0) && uncached["write_mean"].as_f64() > Some(3.0),
        "{advice:#}"
    );
    // A burst has 62.5 MiB, plus headers, and writes are delayed when much of the log is in use.
    let advised = advice["advised_size"].as_u64().unwrap() >> 20;
    assert!((64..160).contains(&advised) && figure(advised, "absorbed") > 0.999, "{advice:#}");
    assert!(sizes.is_sorted_by_key(|tried| tried["size"].as_u64()), "{advice:#}");
    // Simulated time makes the result repeatable; and reads for which the slow device takes minutes must not
    // change the result for writes.
    let with_reads = std::fs::read_to_string(place.path("iolog")).unwrap();
    let reads: String = (0..4000).map(|number| format!("/dev/sdx read {} 4096\n", number * 4096)).collect();
    std::fs::write(
        place.path("iolog"),
        with_reads.replacen("/dev/sdx open\n", &format!("/dev/sdx open\n{reads}"), 1),
    )
    .unwrap();
    let with_reads = place.cache(&advise);
    assert_eq!((&with_reads["sizes"], &with_reads["reads"]), (&advice["sizes"], &4000.into()));
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
    exited(checked.wait_with_output().unwrap(), 0);
}
