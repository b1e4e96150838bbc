//! The shipped JSON Schemas match the documents: every written document validates, has only known keys, and
//! lacks no promised key. Guards against a field that is added to a type but not to the schema.

use crate::common;
use plumb_measure::{DeviceIdentity, Manifest, Out, RunDirectory};
use plumb_report::{Format, RunRecording, Style, render};
use plumb_testkit::schema::Schema;
use serde_json::{Value, json};

const LOAD: &str = "load";
const CHECK: &str = "check";
const PROVE: &str = "prove";
const MANIFEST: &str = "manifest";

/// Returns the output of `plumb load --json` for a sample.
fn printed(name: &str) -> Value {
    json_of(&common::load_recording(name))
}

fn json_of(recording: &RunRecording) -> Value {
    let text = render(recording, Format::Json, Style::default()).expect("a document");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_document_validates_and_holds_nothing_else() {
    let (load, check) = (Schema::closed(LOAD), Schema::closed(CHECK));
    for name in common::LOADS {
        load.assert_holds(&printed(name));
    }
    for name in common::NAMES {
        let document = json_of(&common::recording(name));
        check.assert_holds(&document);
        assert!(document["level"].is_string() && document["headline"].is_string(), "{name}");
    }
}

#[test]
fn a_check_with_a_promised_key_missing_does_not_validate() {
    let validator = Schema::open(CHECK);
    let good = json_of(&common::recording("virtual-machine"));
    let later = ["accounting", "failed", "level", "headline", "workload"];
    let optional = |key: &str| key.ends_with("_because") || later.contains(&key);
    let pointers = [
        "",
        "/path",
        "/path/durable_at",
        "/sync/0",
        "/sync/0/latency",
        "/io/0/application",
        "/sync/0/storage",
    ];
    pointers.iter().for_each(|pointer| validator.assert_requires_keys(&good, pointer, &optional));
    let mut bad = json_of(&common::recording("interrupted"));
    bad.as_object_mut().unwrap().remove("incomplete_because");
    assert!(!validator.complaints(&bad).is_empty(), "incomplete for no reason");
}

#[test]
fn a_proof_validates_and_every_key_of_it_is_required() {
    let (open, closed) = (Schema::open(PROVE), Schema::closed(PROVE));
    for name in common::PROOFS {
        let text = render(&common::proof(name), Format::Json, Style::default()).expect("a document");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        closed.assert_holds(&document);
        if name != "lost" {
            continue;
        }
        let pointers = [
            "",
            "/recording",
            "/states",
            "/coverage",
            "/windows/0",
            "/failures/0",
            "/failures/0/minimal",
            "/failures/0/minimal/dropped/0",
            "/failures/0/minimal/timeline/0",
            "/failures/1/change",
            "/profiles/0",
            "/flushes",
        ];
        pointers.iter().for_each(|pointer| open.assert_requires_keys(&document, pointer, &|_| false));
    }
}

fn manifest() -> Manifest {
    Manifest::starting("check", vec!["plumb".into(), "check".into()], u64::MAX, "2026-01-02T03:04:05.25Z")
}

#[test]
fn a_manifest_validates_at_every_status() {
    let validator = Schema::closed(MANIFEST);
    let root = tempfile::tempdir().unwrap();
    let written = || -> Value {
        serde_json::from_slice(&std::fs::read(root.path().join("manifest.json")).unwrap()).unwrap()
    };
    for reason in [None, Some("Ctrl-C".to_owned())] {
        let out = Out::At { path: root.path().to_owned(), replace: true };
        let mut run = RunDirectory::create(&out, &manifest()).unwrap().unwrap();
        validator.assert_holds(&written());
        run.update_manifest(|manifest| {
            manifest.devices = vec![
                DeviceIdentity { name: "vda".into(), identity: None },
                DeviceIdentity { name: "sdb".into(), identity: Some("wwn-0x5000c500".into()) },
            ];
            manifest.kernel = Some("6.12".into());
        })
        .unwrap();
        validator.assert_holds(&written());
        run.finish(reason, "2026-01-02T03:05:00Z").unwrap();
        validator.assert_holds(&written());
    }
}

#[test]
fn a_manifest_that_contradicts_itself_does_not_validate() {
    let validator = Schema::open(MANIFEST);
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
        assert!(!validator.complaints(&bad).is_empty(), "{key} = {value} was taken");
    }
}

#[test]
fn a_promised_key_that_is_missing_is_noticed() {
    let validator = Schema::open(LOAD);
    let good = printed("all-wrong");
    let optional = |key: &str| key.ends_with("_because") || key == "failed" || key == "errors_by";
    let pointers = [
        "",
        "/total",
        "/targets/0",
        "/targets/0/read",
        "/targets/0/write",
        "/targets/0/verified",
        "/targets/0/cpu",
        "/targets/0/read/latency",
        "/targets/0/storage",
        "/spans/0",
        "/spans/0/jobs/0",
        "/environment",
    ];
    pointers.iter().for_each(|pointer| validator.assert_requires_keys(&good, pointer, &optional));
    let mut bad = good;
    bad.as_object_mut().unwrap().remove("incomplete_because");
    assert!(!validator.complaints(&bad).is_empty(), "incomplete for no reason");
}

#[test]
fn the_promised_keys_stand_at_the_top_for_one_span_and_for_several() {
    for name in ["side-by-side", "cache-or-disk"] {
        let document = printed(name);
        for key in ["seed", "duration", "targets", "total"] {
            assert!(!document[key].is_null(), "{name}: {key}");
        }
        let total = &document["total"];
        for side in document["targets"].as_array().unwrap().iter().chain([total]) {
            for direction in ["read", "write", "trim", "sync"] {
                for key in ["ios", "bytes", "iops", "bytes_per_second", "errors"] {
                    assert!(side[direction][key].is_number(), "{name}: {direction}.{key}");
                }
            }
            assert!(side["storage"]["iops"].is_number() && side["cpu"]["user"].is_number(), "{name}");
        }
    }
}
