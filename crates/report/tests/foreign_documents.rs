//! Documents from outside. Guards against arithmetic overflows, and against trust in the values of fields.
//! Everything that can be read as a document can be rendered in every format.

use crate::common;
use plumb_report::{Format, RunDocument, RunRecording, Style, render, verdict};
use serde_json::{Number, Value, json};

/// Judges `value` and renders it in every format, if it is a document. Returns whether it is.
fn report(value: &Value, recording: &RunRecording) -> bool {
    let Ok(mut document) = RunDocument::from_json(&value.to_string()) else { return false };
    verdict::conclude(&mut document, Vec::new());
    every_format(&RunRecording { document, ..recording.clone() });
    true
}

fn every_format(recording: &RunRecording) {
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Junit) {
        // Only text for a terminal depends on a width.
        let widths: &[usize] = if format == Format::Terminal { &[1, 100] } else { &[100] };
        for &width in widths {
            let style = Style { width, colour: false, unicode: true, ..Style::PLAIN };
            let made = render(recording, format, style);
            assert!(made.is_ok_and(|text| !text.is_empty()), "{format} of a document that came from JSON");
        }
    }
}

/// Replaces every number of `value` by the result of `of`.
fn numbers(value: &mut Value, of: &dyn Fn(&Number) -> Value) {
    match value {
        Value::Number(number) => *value = of(number),
        Value::Array(items) => items.iter_mut().for_each(|item| numbers(item, of)),
        Value::Object(fields) => fields.values_mut().for_each(|field| numbers(field, of)),
        _ => {}
    }
}

/// Collects the paths of all values within `value` as JSON pointers.
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

/// Names of fields with integers of 32 bits.
const NARROW: [&str; 5] = ["cpus", "depth", "threads", "number", "durable_write_every"];

/// Returns the largest number of the same kind as `number`.
fn largest(number: &Number) -> Value {
    if number.is_u64() { json!(u64::MAX) } else { json!(f64::MAX) }
}

#[test]
fn the_largest_numbers_everywhere() {
    for name in common::NAMES {
        let recording = common::recording(name);
        let mut value = serde_json::to_value(recording.document.as_json()).unwrap();
        numbers(&mut value, &largest);
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        let is_narrow = |pointer: &&String| NARROW.iter().any(|name| pointer.ends_with(&format!("/{name}")));
        for pointer in all.iter().filter(is_narrow) {
            if let Some(field) = value.pointer_mut(pointer).filter(|field| field.is_u64()) {
                *field = json!(u32::MAX);
            }
        }
        assert!(report(&value, &recording), "{name} is not a document any more");
    }
}

#[test]
fn nothing_negative_and_tiny_numbers_everywhere() {
    for name in common::NAMES {
        let recording = common::recording(name);
        for float in [0.0, -1.0, f64::MIN, f64::MIN_POSITIVE] {
            let mut value = serde_json::to_value(recording.document.as_json()).unwrap();
            numbers(&mut value, &|number| if number.is_u64() { json!(0) } else { json!(float) });
            assert!(report(&value, &recording), "{name} is not a document any more");
        }
    }
}

/// Returns true if the path leads only through the first two items of arrays, since the others have the same
/// form.
fn is_of_first_items(pointer: &str) -> bool {
    pointer.split('/').filter_map(|part| part.parse::<usize>().ok()).all(|index| index < 2)
}

/// Returns the values that replace a value, one after another.
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
                assert!(report(&value, &recording), "{name} is not a document any more");
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
    // The totals have the same form as the targets.
    all.retain(|pointer| !pointer.contains("/total/") && is_of_first_items(pointer));
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
    // In the present form, and in that of older recordings.
    let denied = serde_json::to_value(common::document("denied").as_json()).unwrap();
    for (name, whole) in [("denied", denied), ("hard-drive", common::recorded("hard-drive"))] {
        // Without distributions, so that many documents can be tested quickly.
        let recording = RunRecording::without_distributions(common::document(name));
        let mut all = Vec::new();
        pointers(&whole, "", &mut all);
        all.retain(|pointer| is_of_first_items(pointer));
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
