//! Tests that run directories of older formats can be reported in every format of their kind, without losing
//! a figure. Some have an export from that time, because the CSV columns and Prometheus names are promised.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{plumb, said};

/// Formats of every kind of run directory.
const FORMATS: [&str; 4] = ["terminal", "html", "markdown", "json"];
/// Further formats of loads and checks.
const FORMATS_OF_RUNS: [&str; 3] = ["csv", "prometheus", "fio"];

/// Returns the run directories, sorted by name.
fn recorded() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_runs");
    let mut runs: Vec<PathBuf> = std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    assert!(runs.len() >= 20, "{runs:?}");
    runs
}

fn report(run: &Path, format: &str) -> String {
    let output = plumb().args(["report", "--format", format]).arg(run).output().unwrap();
    let has_reported = matches!(output.status.code(), Some(0 | 1));
    assert!(has_reported && !output.stdout.is_empty(), "{} as {format}: {}", run.display(), said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn result(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("result.json")).unwrap()).unwrap()
}

/// Asserts that `new` has everything that `old` has. Keys may be added.
fn assert_says(new: &Value, old: &Value, place: &str) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            for (key, value) in old {
                assert_says(new.get(key).unwrap_or(&Value::Null), value, &format!("{place}.{key}"));
            }
        }
        (Value::Array(new), Value::Array(old)) => {
            assert_eq!(new.len(), old.len(), "{place}");
            for (index, (new, old)) in new.iter().zip(old).enumerate() {
                assert_says(new, old, &format!("{place}[{index}]"));
            }
        }
        // The old figure divided flushes of all programs by the syncs of the run.
        _ if new.is_null() && place.ends_with("flushes_per_sync") => {}
        _ => assert_eq!(new, old, "{place}"),
    }
}

fn lines(text: &str) -> Vec<&str> {
    // The help texts of metrics may change.
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("# HELP ")).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_format_is_made_of_a_run_directory_of_an_earlier_version() {
    for run in recorded() {
        FORMATS.iter().for_each(|format| drop(report(&run, format)));
        if matches!(result(&run)["schema"].as_str(), Some("plumb/load/1" | "plumb/check/1")) {
            FORMATS_OF_RUNS.iter().for_each(|format| drop(report(&run, format)));
        }
    }
}

#[test]
fn no_figure_of_an_earlier_version_is_lost() {
    for run in recorded() {
        let name = run.file_name().unwrap().to_str().unwrap();
        let told = serde_json::from_str(&report(&run, "json")).unwrap();
        assert_says(&told, &result(&run), name);
    }
}

/// Returns the operations of a run according to the figures of its targets and to the time series of the same
/// name.
fn operations(csv: &str) -> Vec<(String, f64, f64)> {
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let of = |section: &[&str], name: &str, metric: &str| -> f64 {
        let rows = rows.iter().filter(|row| section.contains(&row[0]) && row[1] == name && row[3] == metric);
        rows.map(|row| row[4].parse::<f64>().unwrap()).sum()
    };
    let mut names: Vec<&str> = rows.iter().filter(|row| row[0] == "series").map(|row| row[1]).collect();
    names.dedup();
    let each = names.into_iter().map(|name| {
        let operations = of(&["sync", "io"], name, "application_operations");
        (name.to_owned(), operations, of(&["series"], name, "iops") / 10.0)
    });
    each.collect()
}

#[test]
fn each_time_series_of_a_check_is_that_of_its_phase() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_runs/check-directory");
    each_phase_has_its_own_series(&run, 7);
}

/// Asserts that the time series with the name of a phase are those of that phase, in the order of phases.
pub(crate) fn each_phase_has_its_own_series(run: &Path, phases: usize) {
    let found = operations(&report(run, "csv"));
    assert_eq!(found.len(), phases, "{found:?}");
    for (name, operations, drawn) in &found {
        assert!((operations - drawn).abs() < 0.5, "{name} did {operations}, {drawn} of them are drawn");
    }
    let page = report(run, "html");
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    let accounts = result(run)["accounting"].clone();
    let ran = accounts.as_array().unwrap().iter().map(|account| account["phase"].as_str().unwrap());
    assert_eq!(names, ran.filter(|phase| names.contains(phase)).collect::<Vec<_>>());
    let title = |name: &&str| page.find(&format!("{name}, operations per second over time")).expect(name);
    assert!(names.iter().map(title).is_sorted(), "{names:?}");
}

#[test]
fn columns_and_names_for_other_programs_stay() {
    let mut compared = 0;
    for (file, format) in [("report.csv", "csv"), ("report.prom", "prometheus")] {
        for run in recorded() {
            let Ok(before) = std::fs::read_to_string(run.join(file)) else { continue };
            let now = report(&run, format);
            if format == "csv" {
                assert_eq!(now.lines().next(), before.lines().next(), "{}", run.display());
            }
            let now = lines(&now);
            // Figures may be added. Flushes of all programs are no longer divided by the syncs of the run.
            let mut lost = lines(&before);
            lost.retain(|line| !now.contains(line) && !line.contains("flushes_per_sync"));
            assert!(lost.is_empty(), "{}: {lost:#?}", run.display());
            compared += 1;
        }
    }
    assert_eq!(compared, 12);
}
