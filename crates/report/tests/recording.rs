//! Every format can be made again from a run directory alone, and an interrupted run is reported as far as it
//! came.

use std::path::Path;

use crate::common;
use plumb_block::Nanos;
use plumb_measure::run::{Manifest, Out, RunDirectory, TaggedHistogram};
use plumb_measure::series::{Series, SeriesEvent};
use plumb_measure::{Histogram, IoResult, SyncResult};
use plumb_report::document::{Part, TargetRecording, series_name, tag};
use plumb_report::{Format, OpenError, RunDocument, RunRecording, Style, render};

/// Writes the sample `name` as a run directory.
fn write_run(directory: &Path, name: &str) -> RunRecording {
    let recording = common::recording(name);
    let manifest = Manifest::starting("check", vec!["plumb".into()], 1, "2026-03-14T09:26:53Z");
    let mut run = begun(directory, &manifest);
    for (index, target) in recording.targets.iter().enumerate() {
        for (part, histogram) in &target.histograms {
            append_histogram(&mut run, tag(index, *part), histogram);
        }
        append_series(&mut run, &series_name(index));
    }
    run.write_result(&recording.document.as_json()).expect("a result");
    run.finish(None, "2026-03-14T09:27:53Z").expect("a manifest");
    recording
}

fn begun(directory: &Path, manifest: &Manifest) -> RunDirectory {
    let out = Out::At { path: directory.to_owned(), replace: false };
    RunDirectory::create(&out, manifest).expect("a run directory").expect("a place")
}

fn append_histogram(run: &mut RunDirectory, tag: String, histogram: &Histogram) {
    let (start, length) = (Nanos(0), Nanos::secs(3));
    run.append_histograms(&[TaggedHistogram { tag, start, length, histogram: histogram.clone() }])
        .expect("a histogram");
}

/// Appends a series of three seconds in 30 buckets.
fn append_series(run: &mut RunDirectory, name: &str) {
    let mut series = Series::starting_at(Nanos(0), Nanos::secs(3));
    for at in 0..30_000_u64 {
        series.record(SeriesEvent { at: Nanos(at * 100_000), bytes: 4096, latency: Nanos(50_000) });
    }
    run.append_series(series.rows(name)).expect("a series");
}

/// Returns the samples of checks and of loads.
fn names() -> Vec<String> {
    let loads = common::LOADS.map(|name| format!("load/{name}"));
    common::NAMES.map(str::to_owned).into_iter().chain(loads).collect()
}

#[test]
fn every_format_comes_from_the_recording_alone() {
    for name in names() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("run");
        let written = write_run(&path, &name);
        let read = RunRecording::open(&path).expect("a run").expect("a result");
        assert_eq!(read.document, written.document, "{name}");
        for (index, target) in written.targets.iter().enumerate() {
            assert_eq!(read.series_of(index).len(), 30, "{name}");
            for part in Part::ALL {
                let count = |target: &TargetRecording| target.histograms.get(&part).map(Histogram::count);
                let counts = (count(&read.targets[index]), count(target));
                assert_eq!(counts.0, counts.1, "{name}: {}", tag(index, part));
            }
        }
        for format in Format::ALL.into_iter().filter(|format| *format != Format::Junit) {
            let text = render(&read, format, Style::default()).expect("a report");
            assert!(text.ends_with('\n'), "{name} as {format} has no last line's end");
        }
    }
}

#[test]
fn a_run_without_a_result_is_not_reported() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("run");
    let manifest = Manifest::starting("check", vec![], 1, "2026-03-14T09:26:53Z");
    begun(&path, &manifest);
    assert!(RunRecording::open(&path).expect("a run").is_none());
    assert!(RunRecording::open(directory.path()).is_err(), "that is not a run");
}

#[test]
fn a_document_alone_still_makes_every_format() {
    for name in names() {
        let recording = RunRecording::without_distributions(common::document(&name));
        for format in Format::ALL.into_iter().filter(|format| *format != Format::Junit) {
            assert!(
                !render(&recording, format, Style::default()).expect("a report").is_empty(),
                "{name} as {format}"
            );
        }
    }
}

/// Every figure in the tables of a check without `spans` survives being read and written again.
#[test]
fn a_check_is_written_as_it_was_read() {
    for name in common::NAMES {
        let path = format!("{}/tests/samples/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let before: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let run = common::document(name);
        let written = run.to_json().unwrap();
        let after: serde_json::Value = serde_json::from_str(&written).unwrap();
        for key in ["target", "complete", "path", "verdicts", "environment"] {
            assert_eq!(after[key], before[key], "{name}: {key}");
        }
        let tables = |of: &serde_json::Value| -> (Vec<SyncResult>, Vec<IoResult>) {
            let read = |key: &str| of[key].clone();
            (serde_json::from_value(read("sync")).unwrap(), serde_json::from_value(read("io")).unwrap())
        };
        assert_eq!(tables(&after), tables(&before), "{name}");
        let again = RunDocument::from_json(&written).unwrap();
        assert_eq!((again.targets, again.spans), (run.targets, run.spans), "{name}");
    }
}

#[test]
fn a_run_of_a_kind_that_is_not_known_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let manifest = Manifest::starting("other", vec![], 1, "2026-03-14T09:26:53Z");
    let run = begun(directory.path(), &manifest);
    assert!(matches!(RunRecording::open(directory.path()), Ok(None)));
    run.write_result(&serde_json::json!({"schema": "plumb/other/7"})).expect("a result");
    let error = RunRecording::open(directory.path()).expect_err("no known kind");
    assert!(
        matches!(error, OpenError::UnknownKind { .. }) && error.to_string().contains("`plumb/other/7`"),
        "{error}"
    );
}

#[test]
fn times_of_devices_are_written_in_seconds_and_read_again() {
    let sample = common::document("virtual-machine");
    let devices = |run: &RunDocument| run.targets[0].sides.storage.as_ref().unwrap().devices.clone();
    let flushing = devices(&sample)[0].flush_time;
    assert!(flushing > Nanos::ZERO, "the sample says how long flushes took");
    let text = sample.to_json().unwrap();
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        written["sync"][0]["storage"]["devices"][0]["flush_time"].as_f64(),
        Some(flushing.as_secs_f64())
    );
    let again = RunDocument::from_json(&text).unwrap();
    assert_eq!(devices(&again), devices(&sample));
}
