//! The shipped JSON Schema says what the document of a load is: everything that is written validates, no key is
//! written that it does not know, and no promised key can be missing. Guards against a field that is added to a type and
//! forgotten in the schema.

use crate::common;
use jsonschema::Validator;
use plumb_report::{Format, Style, render};
use serde_json::{Value, json};

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/load.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect(path)).expect(path)
}

/// The schema with every object closed: what a document may hold today.
fn closed() -> Validator {
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
    let mut schema = schema();
    close(&mut schema);
    jsonschema::validator_for(&schema).expect("a closed schema is a schema")
}

fn complaints(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// What `plumb load --json` prints for a sample.
fn printed(name: &str) -> Value {
    let text = render(&common::load_recording(name), Format::Json, Style::default()).expect("a document");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_document_validates_and_holds_nothing_else() {
    let validator = closed();
    for name in common::LOADS {
        assert_eq!(complaints(&validator, &printed(name)), [""; 0], "{name}");
    }
}

#[test]
fn a_promised_key_that_is_missing_is_noticed() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let good = printed("all-wrong");
    let optional = |key: &str| key.ends_with("_because") || key == "failed" || key == "errors_by";
    for pointer in [
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
    ] {
        let keys: Vec<String> = good.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys.into_iter().filter(|key| !optional(key)) {
            let mut bad = good.clone();
            bad.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&key);
            assert!(!complaints(&validator, &bad).is_empty(), "{pointer}/{key} is not required");
        }
    }
    let mut bad = good;
    bad.as_object_mut().unwrap().remove("incomplete_because");
    assert!(!complaints(&validator, &bad).is_empty(), "incomplete for no reason");
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
