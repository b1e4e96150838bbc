//! `plumb survey` recorded here reads the same elsewhere, and `plumb report` makes every format from a recording.

use crate::common;
use crate::common::{check, plumb, said, scratch};

#[test]
fn a_recorded_survey_says_what_the_live_one_said() {
    let directory = scratch();
    let recorded =
        plumb().args(["survey", ".", "--json", "--record"]).arg(directory.path()).output().unwrap();
    assert!(matches!(recorded.status.code(), Some(0 | 1)), "{}", said(&recorded));
    let again = plumb().args(["survey", ".", "--json", "--from"]).arg(directory.path()).output().unwrap();
    let paths = |output: &std::process::Output| common::document(output)["paths"].clone();
    assert_eq!(paths(&again)[0]["layers"], paths(&recorded)[0]["layers"], "{}", said(&again));
    assert_eq!(again.status, recorded.status);
}

#[test]
fn surveying_everything_finds_every_mounted_disk() {
    let output = plumb().args(["survey", "--all", "--json"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    let document = common::document(&output);
    assert_eq!(document["schema"], "plumb/survey/1");
    let targets: Vec<&str> =
        document["paths"].as_array().unwrap().iter().map(|path| path["target"].as_str().unwrap()).collect();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root_is_a_disk = mounts.lines().any(|line| line.contains(" / / ") && line.contains(" - ext4 /dev/"));
    if root_is_a_disk {
        assert!(targets.contains(&"/"), "{targets:?}");
    }
}

#[test]
fn every_format_is_made_from_the_recording_alone() {
    let (place, run) = (scratch(), scratch());
    let checked = check(place.path(), run.path()).output().unwrap();
    for (format, holds) in [
        ("terminal", "overwrite-fdatasync"),
        ("html", "<!doctype html>"),
        ("json", "\"plumb/check/1\""),
        ("csv", "overwrite-fdatasync"),
        ("prometheus", "# type plumb_"),
        ("fio", "\"jobs\""),
    ] {
        let report = plumb().args(["report", "-v", "--format", format]).arg(run.path()).output().unwrap();
        assert_eq!(report.status, checked.status, "{format}: {}", said(&report));
        let text = String::from_utf8(report.stdout).unwrap();
        assert!(text.to_lowercase().contains(holds), "{format}: {}", &text[..text.len().min(400)]);
        if format == "json" {
            assert_eq!(text.as_bytes(), checked.stdout, "the recording says something else");
        }
    }
    let file = run.path().join("again.html");
    let written =
        plumb().args(["report", "--format", "html", "-o"]).args([&file, run.path()]).output().unwrap();
    assert_eq!(written.status, checked.status);
    let first = std::fs::read(run.path().join("report.html")).unwrap();
    assert_eq!(std::fs::read(file).unwrap(), first, "the page cannot be made again");
}
