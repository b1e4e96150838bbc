//! Tests of the document of `plumb check`: its promised keys, and its agreement with outside observers.

use crate::common::{check, document, entries, exited, holds, said, scratch, verdict_ids};
use serde_json::Value;

/// Returns the flush requests of all devices, from /proc/diskstats.
fn flushes_of_all_devices() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/diskstats").ok()?;
    text.lines().map(|line| line.split_ascii_whitespace().nth(18)?.parse::<u64>().ok()).sum()
}

#[test]
fn it_holds_what_was_promised_and_leaves_no_file() {
    let place = scratch();
    let run = scratch();
    let before = flushes_of_all_devices();
    let output = check(place.path(), run.path()).output().unwrap();
    let after = flushes_of_all_devices();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    let document = document(&output);
    assert_eq!(document["schema"], "plumb/check/1");
    assert_eq!(document["complete"], true, "{}", said(&output));

    let names = |list: &str, key: &str| -> Vec<String> {
        document[list].as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("io", "name"), ["read-cached", "read-direct", "write-cached", "write-direct"]);
    let methods = ["overwrite-fdatasync", "overwrite-fsync", "append-fdatasync", "direct-dsync"];
    assert_eq!(names("sync", "method"), methods);
    for sync in document["sync"].as_array().unwrap() {
        latency_is_whole(&sync["latency"], sync["operations"].as_u64().unwrap());
    }
    for io in document["io"].as_array().unwrap() {
        let application = &io["application"];
        latency_is_whole(&application["latency"], application["operations"].as_u64().unwrap());
        assert_eq!(application["io_bytes_mean"], 8192.0);
    }
    assert!(document["path"]["layers"].as_array().is_some_and(|layers| layers.len() > 2));
    assert_eq!(document["environment"]["seed"], 7);

    assert_eq!(entries(place.path()), Vec::<String>::new(), "the test file stayed");
    assert!(run.path().join("report.html").is_file());
    assert_eq!(document["run_directory"], run.path().to_str().unwrap());
    crate::old_runs::each_phase_has_its_own_series(run.path(), 8);

    // Other programs may flush meanwhile, so the outside count is an upper bound.
    let accounts = document["accounting"].as_array().unwrap();
    let counted: u64 = accounts.iter().filter_map(|account| account["flushes"].as_u64()).sum();
    let synced: u64 =
        document["sync"].as_array().unwrap().iter().filter_map(|sync| sync["device_flushes"].as_u64()).sum();
    if let (Some(before), Some(after)) = (before, after) {
        assert!(counted <= after - before, "counted {counted}, from outside {}", after - before);
        assert!(synced <= counted, "the parts ({synced}) are more than the whole ({counted})");
    }
}

fn latency_is_whole(latency: &Value, operations: u64) {
    assert_eq!(latency["count"], operations);
    let at = |key: &str| latency[key].as_f64().unwrap_or_else(|| panic!("{key} of {latency}"));
    let rising = ["min", "p25", "p50", "p75", "p99", "p999", "max"].map(at);
    assert!(rising.is_sorted(), "{latency}");
    assert!(at("mean") >= at("min") && at("mean") <= at("max") && at("std") >= 0.0, "{latency}");
}

#[test]
fn the_document_keeps_to_its_schema() {
    let place = scratch();
    let run = scratch();
    let output = check(place.path(), run.path()).output().unwrap();
    holds("check", &document(&output));
}

#[test]
fn memory_is_called_memory() {
    let Ok(place) = tempfile::tempdir_in("/dev/shm") else {
        return plumb_testkit::skip("there is no tmpfs at /dev/shm");
    };
    let run = scratch();
    let output = exited(check(place.path(), run.path()).output().unwrap(), 1);
    let document = document(&output);
    assert!(verdict_ids(&document).contains(&"memory"), "{:?}", verdict_ids(&document));
    assert!(document["io"][0]["storage"].is_null());
    assert!(document["io"][0]["storage_unknown_because"].is_string());
    assert_eq!(entries(place.path()), Vec::<String>::new());
}
