//! Documents from elsewhere: guards against arithmetic that overflows, and against a field that is trusted to be sound.
//! Whatever can be read as a document makes every format.

use crate::common;
use plumb_report::{Format, RunDocument, RunRecording, Style, render, verdict};
use serde_json::{Number, Value, json};

/// Judges `value` and makes every format of it, if it is a document at all.
fn report(value: &Value, recording: &RunRecording) -> bool {
    let Ok(mut document) = RunDocument::from_json(&value.to_string()) else { return false };
    verdict::conclude(&mut document, Vec::new());
    every_format(&RunRecording { document, ..recording.clone() });
    true
}

fn every_format(recording: &RunRecording) {
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Junit) {
        for width in [1, 100] {
            let style = Style { width, colour: false, unicode: true, ..Style::PLAIN };
            let made = render(recording, format, style);
            assert!(made.is_ok_and(|text| !text.is_empty()), "{format} of a document that came from JSON");
        }
    }
}

/// Replaces every number of `value` by what `of` makes of it.
fn numbers(value: &mut Value, of: &dyn Fn(&Number) -> Value) {
    match value {
        Value::Number(number) => *value = of(number),
        Value::Array(items) => items.iter_mut().for_each(|item| numbers(item, of)),
        Value::Object(fields) => fields.values_mut().for_each(|field| numbers(field, of)),
        _ => {}
    }
}

/// The paths to every value within `value`, as JSON pointers.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| pointers(field, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

/// The largest number of its kind.
fn largest(number: &Number) -> Value {
    if number.is_u64() { json!(u64::MAX) } else { json!(f64::MAX) }
}

#[test]
fn the_largest_numbers_everywhere() {
    for name in common::NAMES {
        let recording = common::recording(name);
        let mut value = serde_json::to_value(recording.document.as_json()).unwrap();
        numbers(&mut value, &largest);
        // These are of 32 bits.
        value["environment"]["cpus"] = json!(u32::MAX);
        for io in value["io"].as_array_mut().unwrap() {
            io["depth"] = json!(u32::MAX);
        }
        assert!(report(&value, &recording), "{name} is no document any more");
    }
}

#[test]
fn nothing_negative_and_tiny_numbers_everywhere() {
    for name in common::NAMES {
        let recording = common::recording(name);
        for float in [0.0, -1.0, f64::MIN, f64::MIN_POSITIVE] {
            let mut value = serde_json::to_value(recording.document.as_json()).unwrap();
            numbers(&mut value, &|number| if number.is_u64() { json!(0) } else { json!(float) });
            assert!(report(&value, &recording), "{name} is no document any more");
        }
    }
}

/// What stands in for a value in turn.
fn damages() -> Vec<Value> {
    let mut damages = vec![Value::Null, json!([]), json!({}), json!(u64::MAX), json!(-1), json!(1e308)];
    damages.extend(["", "\u{202e}\u{0}<b>", "ffff\u{fffd}…"].map(Value::from));
    damages
}

#[test]
fn loads_with_odd_numbers_everywhere() {
    for name in common::LOADS {
        let recording = common::load_recording(name);
        let whole = serde_json::to_value(recording.document.as_json()).unwrap();
        for float in [f64::MAX, 0.0, -1.0, f64::MIN_POSITIVE] {
            for integer in [0, u64::from(u32::MAX)] {
                let mut value = whole.clone();
                numbers(&mut value, &|number| if number.is_u64() { json!(integer) } else { json!(float) });
                assert!(report(&value, &recording), "{name} is no document any more");
            }
        }
    }
}

#[test]
fn every_field_of_a_load_damaged_in_turn() {
    let recording = RunRecording::without_distributions(common::document("load/all-wrong"));
    let whole = serde_json::to_value(recording.document.as_json()).unwrap();
    let mut all = Vec::new();
    pointers(&whole, "", &mut all);
    // The totals are shaped and read as the target is.
    all.retain(|pointer| !pointer.contains("/total/"));
    let mut documents = 0;
    for pointer in &all {
        for damage in damages() {
            let mut value = whole.clone();
            *value.pointer_mut(pointer).unwrap() = damage;
            documents += usize::from(report(&value, &recording));
        }
    }
    assert!(documents > 100, "only {documents} damaged documents could be read");
}

#[test]
fn every_field_damaged_in_turn() {
    for name in ["hard-drive", "denied"] {
        // Without distributions, so that many documents are made soon.
        let recording = RunRecording::without_distributions(common::document(name));
        let whole = serde_json::to_value(recording.document.as_json()).unwrap();
        let mut all = Vec::new();
        pointers(&whole, "", &mut all);
        let mut documents = 0;
        for pointer in &all {
            for damage in damages() {
                let mut value = whole.clone();
                *value.pointer_mut(pointer).unwrap() = damage;
                documents += usize::from(report(&value, &recording));
            }
        }
        assert!(documents > 100, "{name}: only {documents} damaged documents could be read");
    }
}
