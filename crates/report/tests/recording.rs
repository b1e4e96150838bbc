//! Every format is made again from a run directory alone, and a run that was cut short is reported as far as it came.

use std::path::Path;

use crate::common;
use plumb_block::Nanos;
use plumb_measure::Histogram;
use plumb_measure::run::{Manifest, Place, RunDirectory, TaggedHistogram};
use plumb_measure::series::{Series, SeriesEvent};
use plumb_report::document::{Part, histogram_tag, series_name};
use plumb_report::{CheckRecording, Format, OpenError, Reportable, Run, RunRecording, Style, render};

/// Writes the sample `name` as a run, all phases with one distribution and one series.
fn write_run(directory: &Path, name: &str) -> CheckRecording {
    let recording = common::recording(name);
    let manifest = Manifest::starting("check", vec!["plumb".into()], 1, "2026-03-14T09:26:53Z");
    let run = RunDirectory::create(Place::At(directory), manifest).expect("a run directory");
    for (phase, histogram) in &recording.histograms {
        let tag = if phase.contains('-') && phase.ends_with("sync") { "durable" } else { "write" };
        let tagged = TaggedHistogram {
            tag: format!("{phase}/{tag}"),
            start: Nanos(0),
            length: Nanos::secs(3),
            histogram: histogram.clone(),
        };
        run.append_histograms(&[tagged]).expect("a histogram");
        let mut series = Series::starting_at(Nanos(0), Nanos::secs(3));
        for at in 0..30_000_u64 {
            series.record(SeriesEvent { at: Nanos(at * 100_000), bytes: 4096, latency: Nanos(50_000) });
        }
        run.append_series(phase, &series).expect("a series");
    }
    run.write_result(&recording.document).expect("a result");
    run.finish(None, "2026-03-14T09:27:53Z").expect("a manifest");
    recording
}

#[test]
fn every_format_comes_from_the_recording_alone() {
    for name in common::NAMES {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("run");
        let written = write_run(&path, name);
        let read = CheckRecording::open(&path).expect("a run").expect("a result");
        assert_eq!(read.document, written.document, "{name}");
        assert_eq!(read.series.len(), written.histograms.len(), "{name}");
        for (phase, histogram) in &written.histograms {
            let counts = read.histograms.get(phase).map(plumb_measure::Histogram::count);
            assert_eq!(counts, Some(histogram.count()), "{name}: {phase}");
        }
        for format in Format::ALL {
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
    RunDirectory::create(Place::At(&path), manifest).expect("a run directory");
    assert!(CheckRecording::open(&path).expect("a run").is_none());
    assert!(CheckRecording::open(directory.path()).is_err(), "that is no run");
}

#[test]
fn a_document_alone_still_makes_every_format() {
    for name in common::NAMES {
        let recording = CheckRecording::without_distributions(common::document(name));
        for format in Format::ALL {
            assert!(
                !render(&recording, format, Style::default()).expect("a report").is_empty(),
                "{name} as {format}"
            );
        }
    }
}

/// Writes the sample `name` of a load as a run.
fn write_load(directory: &Path, name: &str) -> RunRecording {
    let recording = common::load_recording(name);
    let manifest = Manifest::starting("fio", vec!["plumb".into()], 42, "2026-03-14T09:26:53Z");
    let run = RunDirectory::create(Place::At(directory), manifest).expect("a run directory");
    for (index, target) in recording.targets.iter().enumerate() {
        for (part, histogram) in &target.histograms {
            let (tag, histogram) = (histogram_tag(index, *part), histogram.clone());
            let tagged = TaggedHistogram { tag, start: Nanos(0), length: Nanos::secs(3), histogram };
            run.append_histograms(&[tagged]).expect("a histogram");
        }
    }
    for index in 0..recording.document.targets.len() {
        let mut series = Series::starting_at(Nanos(0), Nanos::secs(3));
        (0..30_000_u64).for_each(|at| {
            series.record(SeriesEvent { at: Nanos(at * 100_000), bytes: 4096, latency: Nanos(50_000) });
        });
        run.append_series(&series_name(index), &series).expect("a series");
    }
    run.write_result(&recording.document).expect("a result");
    run.finish(None, "2026-03-14T09:27:53Z").expect("a manifest");
    recording
}

#[test]
fn a_run_is_opened_as_what_it_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in common::LOADS {
        let path = directory.path().join(name);
        let written = write_load(&path, name);
        let Some(Run::Load(read)) = Run::open(&path).expect("a run") else { panic!("{name} is no load") };
        assert_eq!(read.document, written.document, "{name}");
        for index in 0..written.document.targets.len() {
            assert_eq!(read.series_of(index).len(), 30, "{name}");
            let count =
                |recording: &RunRecording| recording.histogram(index, Part::Write).map(Histogram::count);
            assert_eq!(count(&read), count(&written), "{name}: {}", histogram_tag(index, Part::Write));
        }
        let run = Run::Load(read);
        assert_eq!(run.verdicts(), written.document.verdicts);
        for format in Format::ALL {
            let text = render(&run, format, Style::default()).expect("a report");
            assert!(text.ends_with('\n'), "{name} as {format} has no last line's end");
        }
    }
    let check = directory.path().join("check");
    write_run(&check, "tmpfs");
    assert!(matches!(Run::open(&check), Ok(Some(Run::Check(_)))));
}

#[test]
fn a_run_of_a_kind_that_is_not_known_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let manifest = Manifest::starting("other", vec![], 1, "2026-03-14T09:26:53Z");
    let run = RunDirectory::create(Place::At(directory.path()), manifest).expect("a run directory");
    assert!(matches!(Run::open(directory.path()), Ok(None)));
    run.write_result(&serde_json::json!({"schema": "plumb/other/7"})).expect("a result");
    let error = Run::open(directory.path()).expect_err("no known kind");
    assert!(
        matches!(error, OpenError::UnknownKind { .. }) && error.to_string().contains("`plumb/other/7`"),
        "{error}"
    );
}
