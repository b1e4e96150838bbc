//! `plumb study`: the figures of field reports come out on simulated drives, and what cannot be had on a real target is said.

use crate::common::{document, entries, holds, plumb, said, scratch};
use serde_json::Value;

const SCHEMA: &str = "../report/schemas/study.schema.json";

/// The document of a study, which must end well.
fn studied(typed: &str) -> Value {
    let output = plumb().args(["study", "--json", "--no-record"]).args(typed.split(' ')).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{typed}: {}", said(&output));
    let document = document(&output);
    holds(SCHEMA, &document);
    document
}

fn rows(document: &Value) -> impl Iterator<Item = &Value> {
    let studies = document["studies"].as_array().unwrap().iter();
    studies.flat_map(|study| study["rows"].as_array().unwrap())
}

/// The rows of which something is expected; all of them must have come out.
fn expected(document: &Value) -> usize {
    let expected = || rows(document).filter(|row| row["expected"].is_object());
    let missed: Vec<&Value> = expected().filter(|row| row["came_out"] != true).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    expected().count()
}

#[test]
fn fdatasync_is_slow_with_the_cache_on_and_fast_with_it_off() {
    for seed in 1..=5 {
        let document = studied(&format!("d --seed {seed}"));
        assert!(expected(&document) >= 9, "{document:#}");
        assert_eq!((&document["level"], &document["complete"]), (&Value::from("none"), &Value::from(true)));
    }
}

#[test]
fn what_syncs_each_step_waits_for_flushes_and_what_copies_does_not() {
    let document = studied("E");
    assert!(expected(&document) >= 7, "{document:#}");
    assert_eq!(
        rows(&document).filter(|row| row["question"] == rows(&document).last().unwrap()["question"]).count(),
        1
    );
}

#[test]
fn on_a_directory_what_cannot_be_had_says_why_and_nothing_is_left_there() {
    let place = scratch();
    let document = studied(&format!("e --on {}", place.path().display()));
    let unknown: Vec<&Value> = rows(&document).filter(|row| row["ours"].is_null()).collect();
    assert!(!unknown.is_empty(), "{document:#}");
    assert!(unknown.iter().all(|row| row["ours_unknown_because"].is_string()), "{document:#}");
    assert!(rows(&document).any(|row| row["ours"].is_number()), "{document:#}");
    assert_eq!(entries(place.path()), [""; 0]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (typed, code) in
        [("f", 2), ("d --overwrite", 2), ("d --on /none/such/place", 2), ("d --format csv --no-record", 2)]
    {
        let output = plumb().arg("study").args(typed.split(' ')).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{typed}: {}", said(&output));
    }
}
