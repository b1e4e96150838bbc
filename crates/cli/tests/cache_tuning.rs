//! Tests of settings that can be changed at any time: destaging to a device that sleeps, and the endurance of
//! the log; and of status and metrics about them, about latency and about wear.

use serde_json::Value;

use crate::cache_support::{Place, refused};
use crate::common::{holds, said};

fn load(place: &Place, uri: &str, words: &[&str]) {
    let output =
        place.plumb().args(["load", uri, "--overwrite", "--no-record"]).args(words).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
}

#[test]
fn a_backing_device_sleeps_as_it_was_set_and_wakes_when_told() {
    let place = Place::new(64 << 20);
    let name = &place.name;
    let made = place.create(&["--write-back-at", "40", "--endurance", "300T"]);
    assert_eq!(made["sleep"]["at_percent"], 40, "{made}");
    assert_eq!(made["sleep"]["age"], 86_400.0);
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "100", "--random", "--block-size", "64K", "--count", "100"]);
    load(&place, &server.uri(), &["--write", "0", "--random", "--count", "10"]);
    let status = place.cache(&["status", name]);
    holds("cache-status", &status);
    // 6.4 MB of 64 MiB: nothing is destaged, although a cache without these settings would do so by now.
    let mut later = place.cache(&["status", name]);
    while later["oldest_dirty"].as_f64() < Some(2.5) {
        later = place.cache(&["status", name]);
    }
    assert_eq!(later["counts"]["destage_writes"], 0.0, "{later}");
    assert_eq!(status["latency"]["write"]["count"], 100, "{status}");
    let reads = status["counts"]["reads"].as_f64().unwrap() as u64;
    assert!(reads >= 10 && status["latency"]["read"]["count"] == reads, "{status}");
    let wear = &status["wear"];
    assert_eq!(wear["written_bytes"], status["counts"]["leg_written"].as_f64().unwrap() as u64, "{wear}");
    assert_eq!(
        (&wear["endurance"]["bytes"], &wear["endurance"]["by"]),
        (&(300_u64 << 40).into(), &"given".into())
    );
    let metrics = place.plumb().args(["cache", "status", name, "--prometheus"]).output().unwrap();
    let metrics = String::from_utf8(metrics.stdout).unwrap();
    for expected in [
        "# TYPE plumb_cache_request_seconds histogram",
        "request=\"write\",le=\"+Inf\"} 100",
        "plumb_cache_log_endurance_bytes{",
        "plumb_cache_spin_ups_total{",
    ] {
        assert!(metrics.contains(expected), "{expected}: {metrics}");
    }
    assert!(!metrics.contains("plumb_cache_problem"), "nothing is wrong: {metrics}");
    let tuned = place.cache(&["tune", name, "--write-back-age", "6h"]);
    assert_eq!((&tuned["sleep"]["at_percent"], &tuned["sleep"]["age"]), (&40.into(), &21_600.0.into()));
    let tuned = place.cache(&["tune", name, "--write-back-soon"]);
    assert_eq!(tuned["sleep"], Value::Null);
    while place.cache(&["status", name])["dirty_bytes"] != 0 {}
    place.stop(server);
    // A cache that is not served keeps the setting, too.
    assert_eq!(place.cache(&["tune", name, "--write-back-at", "60"])["sleep"]["at_percent"], 60);
    assert_eq!(place.cache(&["status", name])["sleep"]["at_percent"], 60);
    refused(&place, &["tune", name, "--write-back-at", "61"], 2, &["60"]);
    place.cache(&["detach", name]);
}
