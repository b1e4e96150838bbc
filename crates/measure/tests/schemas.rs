//! The shipped JSON Schemas say what the documents are: everything that is written validates, and no key is written
//! that the schema does not know. Guards against a field that is added to a type and forgotten in its schema.

use jsonschema::Validator;
use plumb_block::{DeviceCounters, Nanos, StorageSnapshot};
use plumb_measure::{
    ApplicationSide, DeviceIdentity, FlushWrites, Histogram, IoResult, Manifest, Out, Quality, RunDirectory,
    StorageSide, SyncMethod, SyncResult, storage_side,
};
use serde_json::{Value, json};

fn schema(relative: &str) -> Value {
    let path = format!("{}/{relative}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    serde_json::from_str(&text).expect(&path)
}

/// The schema with every object closed: what a document may hold today.
fn closed(mut schema: Value) -> Validator {
    fn close(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if fields.get("type") == Some(&json!("object")) && fields.contains_key("properties") {
                    fields.insert("additionalProperties".to_owned(), json!(false));
                }
                fields.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    jsonschema::validator_for(&schema).expect("a closed schema is a schema")
}

fn complaints(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn check_schema() -> Value {
    schema("../report/schemas/check.schema.json")
}

fn manifest() -> Manifest {
    Manifest::starting("check", vec!["plumb".into(), "check".into()], u64::MAX, "2026-01-02T03:04:05.25Z")
}

fn at(path: &std::path::Path) -> Out {
    Out::At { path: path.to_owned(), replace: true }
}

#[test]
fn a_manifest_validates_at_every_status() {
    let validator = closed(schema("schemas/manifest.schema.json"));
    let root = tempfile::tempdir().unwrap();
    let written = |run: &RunDirectory| -> Value {
        serde_json::from_slice(&std::fs::read(run.path().join("manifest.json")).unwrap()).unwrap()
    };
    let mut run = RunDirectory::create(&at(root.path()), &manifest()).unwrap().unwrap();
    assert_eq!(complaints(&validator, &written(&run)), [""; 0]);
    run.update_manifest(|manifest| {
        manifest.devices = vec![
            DeviceIdentity { name: "vda".into(), identity: None },
            DeviceIdentity { name: "sdb".into(), identity: Some("wwn-0x5000c500".into()) },
        ];
        manifest.kernel = Some("6.12".into());
    })
    .unwrap();
    assert_eq!(complaints(&validator, &written(&run)), [""; 0]);
    for reason in [None, Some("Ctrl-C".to_owned())] {
        let run = RunDirectory::create(&at(root.path()), &manifest()).unwrap().unwrap();
        let path = run.finish(reason, "2026-01-02T03:05:00Z").unwrap();
        let document = serde_json::from_slice(&std::fs::read(path.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(complaints(&validator, &document), [""; 0]);
    }
}

#[test]
fn a_manifest_that_contradicts_itself_does_not_validate() {
    let validator = jsonschema::validator_for(&schema("schemas/manifest.schema.json")).unwrap();
    let good = serde_json::to_value(manifest()).unwrap();
    for (key, value) in [
        ("status", json!("interrupted")),
        ("status", json!("complete")),
        ("status", json!("paused")),
        ("schema", json!("plumb/manifest/2")),
        ("started_at", json!("yesterday")),
        ("seed", json!(-1)),
    ] {
        let mut bad = good.clone();
        bad[key] = value.clone();
        assert!(!complaints(&validator, &bad).is_empty(), "{key} = {value} was taken");
    }
}

fn histogram() -> Histogram {
    let mut histogram = Histogram::new();
    histogram.record(Nanos::micros(52));
    histogram
}

fn storage() -> StorageSide {
    let snapshot = |at, writes| StorageSnapshot {
        at: Nanos::secs(at),
        devices: vec![DeviceCounters {
            name: "vda".into(),
            writes,
            flushes: Some(writes),
            ..Default::default()
        }],
    };
    storage_side(&snapshot(0, 0), &snapshot(1, 9), FlushWrites::TakenOut).expect("the device stays the same")
}

fn sync(method: SyncMethod, storage: Option<StorageSide>) -> SyncResult {
    SyncResult {
        method,
        operations: 1,
        latency: histogram().summary(),
        write_latency: None,
        sync_latency: histogram().summary(),
        seconds: 1.0,
        device_flushes: storage.as_ref().and_then(|storage| storage.flushes),
        device_flushes_unknown_because: storage.is_none().then(|| "no counters".to_owned()),
        flushes_per_sync: None,
        storage,
        quality: Quality::default(),
        failed_because: None,
    }
}

fn io(application: Option<ApplicationSide>) -> IoResult {
    IoResult {
        name: "write-cached".into(),
        block_bytes: 8192,
        depth: 32,
        range_bytes: 1 << 30,
        failed_because: application.is_none().then(|| "no space".to_owned()),
        application,
        storage: None,
        storage_unknown_because: Some("tmpfs has no device".into()),
        dirty_bytes_after: Some(0),
        quality: Quality { rate_slope: Some(-0.02), worker_busy: Some(0.4), ..Quality::default() },
    }
}

fn check() -> Value {
    let application = ApplicationSide {
        operations: 1,
        errors: 0,
        bytes: 8192,
        seconds: 1.0,
        iops: 1.0,
        bytes_per_second: 8192.0,
        io_bytes_mean: Some(8192.0),
        latency: histogram().summary(),
        latency_from_intended_start: None,
        in_flight_mean: Some(0.5),
    };
    let finding =
        json!({"id": "page-cache", "severity": "warning", "sentence": "s", "evidence": ["e"], "remedy": "r"});
    json!({
        "schema": "plumb/check/1",
        "target": "/var/lib",
        "complete": false,
        "incomplete_because": "Ctrl-C",
        "path": {
            "target": "/var/lib",
            "layers": [{
                "kind": "virtio-disk", "name": "vda", "identity": null, "cache": "volatile", "flush": "forwarded",
                "fua": "emulated", "evidence": [{"source": "s", "value": "v", "means": "m"}], "below": []
            }],
            "durable_at": {"write": null, "fsync": "vda", "sentence": "s"},
            "unknown_below": "a hypervisor",
            "findings": [finding]
        },
        "sync": [
            sync(SyncMethod::OverwriteFdatasync, Some(storage())),
            sync(SyncMethod::AppendFdatasync, None),
            sync(SyncMethod::DirectDsync, None)
        ],
        "io": [io(Some(application)), io(None)],
        "accounting": [{
            "phase": "write-cached", "seconds": 1.5, "flushes": null, "reads": 0, "writes": 7, "read_bytes": 0,
            "write_bytes": 28672
        }],
        "verdicts": [finding],
        "environment": {
            "plumb": "0.1.0", "argv": ["plumb"], "seed": 1, "started_at": "2026-01-02T03:04:05Z", "kernel": null,
            "host": "h", "cpus": 2, "memory_bytes": null, "file_bytes": 0, "engine": "io_uring",
            "root_would_add": []
        },
        "run_directory": null
    })
}

#[test]
fn all_that_is_measured_is_in_the_schema_of_a_check() {
    assert_eq!(complaints(&closed(check_schema()), &check()), [""; 0]);
}

#[test]
fn a_check_with_a_promised_key_missing_does_not_validate() {
    let validator = jsonschema::validator_for(&check_schema()).unwrap();
    for pointer in [
        "",
        "/path",
        "/path/durable_at",
        "/sync/0",
        "/sync/0/latency",
        "/io/0/application",
        "/sync/0/storage",
    ] {
        let keys: Vec<String> =
            check().pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys.into_iter().filter(|key| key != "accounting" && !key.ends_with("_because")) {
            let mut bad = check();
            bad.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&key);
            assert!(!complaints(&validator, &bad).is_empty(), "{pointer}/{key} is not required");
        }
    }
    let mut bad = check();
    bad.as_object_mut().unwrap().remove("incomplete_because");
    assert!(!complaints(&validator, &bad).is_empty(), "incomplete for no reason");
}
