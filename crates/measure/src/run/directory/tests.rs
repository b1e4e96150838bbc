//! Tests of run directories: the files after each kind of end, and refusals.

use super::*;
use crate::run::Recording;
use crate::{Histogram, Series, SeriesEvent};
use plumb_block::{FailureKind, Nanos};

fn manifest() -> Manifest {
    Manifest::starting("check", vec!["plumb".into(), "check".into()], 7, "2026-01-02T03:04:05Z")
}

fn histogram() -> TaggedHistogram {
    let mut histogram = Histogram::new();
    histogram.record(Nanos::micros(40));
    let tag = "write-direct/write".to_owned();
    TaggedHistogram { tag, start: Nanos::ZERO, length: Nanos::secs(1), histogram }
}

fn series() -> Series {
    let mut series = Series::starting_at(Nanos::ZERO, Nanos::secs(1));
    series.record(SeriesEvent { at: Nanos::millis(150), bytes: 4096, latency: Nanos::micros(40) });
    series
}

fn at(path: &Path, replace: bool) -> Out {
    Out::At { path: path.to_owned(), replace }
}

fn begun(path: &Path) -> RunDirectory {
    RunDirectory::create(&at(path, true), &manifest()).unwrap().unwrap()
}

fn run_in(path: &Path) -> RunDirectory {
    let mut run = begun(path);
    run.append_histograms(&[histogram()]).unwrap();
    run.append_series(series().rows("write-direct")).unwrap();
    run.write_result(&serde_json::json!({"iops": 3})).unwrap();
    run
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let root = tempfile::tempdir().unwrap();
    for name in [RESULT, HISTOGRAMS, TIMESERIES, MANIFEST] {
        let path = root.path().join(name.replace('.', "-"));
        drop(run_in(&path));
        std::fs::remove_file(path.join(name)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path.join(name)).status().unwrap();
        assert!(made.success());
        let read = Recording::open(&path).and_then(|run| run.result::<serde_json::Value>());
        let error = read.unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert!(!is_run(&path) || name != MANIFEST);
    }
}

#[test]
fn a_run_reads_back() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("run");
    let mut run = run_in(&path);
    run.append_histograms(&[histogram()]).unwrap();
    run.append_series(series().rows("again")).unwrap();
    run.update_manifest(|manifest| manifest.kernel = Some("6.1".into())).unwrap();
    run.write_file("report.html", b"<html>").unwrap();
    assert_eq!(run.finish(None, "2026-01-02T03:05:00Z").unwrap(), path);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.manifest.status, RunStatus::Complete);
    assert_eq!(recording.manifest.kernel.as_deref(), Some("6.1"));
    assert_eq!(recording.histograms.len(), 2);
    assert_eq!(recording.timeseries.len(), 4, "two phases of two buckets, one header");
    assert_eq!(recording.result::<serde_json::Value>().unwrap().unwrap()["iops"], 3);
}

#[test]
fn a_killed_run_reads_as_far_as_it_came() {
    let root = tempfile::tempdir().unwrap();
    drop(run_in(root.path()));
    for name in [HISTOGRAMS, TIMESERIES] {
        let mut file = OpenOptions::new().append(true).open(root.path().join(name)).unwrap();
        file.write_all(b"Tag=half,0.0").unwrap();
    }
    let recording = Recording::open(root.path()).unwrap();
    assert_eq!(recording.manifest.status, RunStatus::Running);
    assert_eq!((recording.histograms.len(), recording.timeseries.len()), (1, 2));
    fs::remove_file(root.path().join(RESULT)).unwrap();
    assert!(recording.result::<serde_json::Value>().unwrap().is_none());
}

#[test]
fn an_interrupted_run_says_why() {
    let root = tempfile::tempdir().unwrap();
    run_in(root.path()).finish(Some("Ctrl-C".into()), "2026-01-02T03:05:00Z").unwrap();
    let manifest = Recording::open(root.path()).unwrap().manifest;
    assert_eq!((manifest.status, manifest.reason.as_deref()), (RunStatus::Interrupted, Some("Ctrl-C")));
}

#[test]
fn an_earlier_run_is_replaced_and_anything_else_is_not() {
    let root = tempfile::tempdir().unwrap();
    drop(run_in(root.path()));
    fs::write(root.path().join("notes.txt"), "mine").unwrap();
    let error = RunDirectory::create(&at(root.path(), false), &manifest()).unwrap_err();
    assert!(error.failure() == FailureKind::Usage && error.to_string().contains("--replace"), "{error}");
    assert_eq!(Recording::open(root.path()).unwrap().histograms.len(), 1, "nothing was taken away");
    let run = begun(root.path());
    let recording = Recording::open(run.path()).unwrap();
    assert!(recording.histograms.is_empty() && recording.timeseries.is_empty());
    assert!(root.path().join("notes.txt").exists());

    let foreign = tempfile::tempdir().unwrap();
    for content in ["{}", "not json", r#"{"schema": "other/manifest/1"}"#] {
        fs::write(foreign.path().join(MANIFEST), content).unwrap();
        let error = RunDirectory::create(&at(foreign.path(), true), &manifest()).unwrap_err();
        assert!(
            error.failure() == FailureKind::Usage && error.to_string().contains("(found manifest.json)"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(foreign.path().join(MANIFEST)).unwrap(), content);
    }
}

#[test]
fn names_made_up_do_not_collide() {
    let root = tempfile::tempdir().unwrap();
    // The first parent cannot be created, since a file is in its place.
    fs::write(root.path().join("file"), "").unwrap();
    let parents = vec![root.path().join("file/runs"), root.path().join("runs"), root.path().join("last")];
    let out = Out::Within { parents, stem: "check".to_owned() };
    let make = || RunDirectory::create(&out, &manifest()).unwrap().unwrap();
    let names = [make(), make(), make()].map(|run| run.path().file_name().unwrap().to_owned());
    assert_eq!(names, ["check", "check-2", "check-3"]);
    assert!(!root.path().join("last").exists());
}

#[test]
fn a_named_directory_is_made_alone_and_nowhere_is_nothing() {
    let root = tempfile::tempdir().unwrap();
    let deep = at(&root.path().join("a/b"), true);
    for error in [RunDirectory::check(&deep), RunDirectory::create(&deep, &manifest()).map(drop)] {
        let error = error.unwrap_err();
        assert!(
            error.failure() == FailureKind::Usage && error.to_string().contains("no directory"),
            "{error}"
        );
    }
    assert!(RunDirectory::create(&Out::Nowhere, &manifest()).unwrap().is_none());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_cuts_an_append_back() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(TIMESERIES);
    append(&path, "header\n", b"one\n", None).unwrap();
    let error = append_with(&path, "header\n", |file| {
        file.write_all(b"half of tw")?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    })
    .unwrap_err();
    assert!(matches!(error, Error::Full { .. }));
    assert_eq!(fs::read_to_string(&path).unwrap(), "header\none\n");
    append(&path, "header\n", b"two\n", None).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "header\none\ntwo\n");
}

#[test]
fn files_stay_in_the_directory() {
    let root = tempfile::tempdir().unwrap();
    let run = run_in(root.path());
    for name in ["../x", "a/b", "", "..", "/etc/x"] {
        assert!(run.write_file(name, b"").is_err(), "{name:?} was taken");
    }
}

#[test]
fn errors_name_file_and_line() {
    let root = tempfile::tempdir().unwrap();
    drop(run_in(root.path()));
    fs::write(root.path().join(RESULT), "{\n  \"iops\": x\n}").unwrap();
    let recording = Recording::open(root.path()).unwrap();
    let error = recording.result::<serde_json::Value>().unwrap_err().to_string();
    assert!(error.contains("result.json:2: "), "{error}");
    fs::write(root.path().join(MANIFEST), r#"{"schema": "plumb/manifest/1"}"#).unwrap();
    let error = Recording::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("manifest.json:1: missing field"), "{error}");
}

#[test]
fn what_is_written_of_a_phase_that_goes_on_is_replaced_by_what_it_measured() {
    let root = tempfile::tempdir().unwrap();
    let mut run = run_in(root.path());
    let read = || {
        let recording = Recording::open(root.path()).unwrap();
        let tags: Vec<_> = recording.histograms.iter().map(|line| line.tag.clone()).collect();
        let phases: Vec<_> = recording.timeseries.iter().map(|row| row.phase.clone()).collect();
        let result = recording.result::<serde_json::Value>().unwrap().unwrap();
        (tags, phases, result["iops"].as_u64().unwrap())
    };
    let so_far = TaggedHistogram { tag: "again/write".to_owned(), ..histogram() };
    for iops in [4, 5] {
        let rows = series().rows("again");
        run.write_so_far(&serde_json::json!({"iops": iops}), std::slice::from_ref(&so_far), rows).unwrap();
        assert_eq!(
            read(),
            (
                vec!["write-direct/write".to_owned(), "again/write".to_owned()],
                ["write-direct", "write-direct", "again", "again"].map(str::to_owned).to_vec(),
                iops
            )
        );
    }
    for name in [HISTOGRAMS, TIMESERIES] {
        // A record that was cut off is left out, and those before it are read.
        let whole = fs::read(root.path().join(name)).unwrap();
        fs::write(root.path().join(name), &whole[..whole.len() - 3]).unwrap();
    }
    assert_eq!((read().0.len(), read().1.len()), (1, 3));
    run.append_histograms(&[histogram()]).unwrap();
    run.append_series(series().rows("again")).unwrap();
    run.append_histograms(&[histogram()]).unwrap();
    let (tags, phases, _) = read();
    assert_eq!((tags, phases.len()), (vec!["write-direct/write".to_owned(); 3], 4));
}
