//! Run directories that an earlier version wrote are reported in every format that their kind has, without losing a figure.
//! Beside some of them stands what that version made of them: the columns of CSV and the names of Prometheus are promised.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{plumb, said};

/// Formats of every kind of run directory.
const FORMATS: [&str; 4] = ["terminal", "html", "markdown", "json"];
/// Formats of loads and checks.
const FORMATS_OF_RUNS: [&str; 3] = ["csv", "prometheus", "fio"];

/// The run directories, by name.
fn recorded() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_runs");
    let mut runs: Vec<PathBuf> =
        std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
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

/// Asserts that `new` says all that `old` says. Keys may be added.
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
        _ => assert_eq!(new, old, "{place}"),
    }
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
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

#[test]
fn columns_and_names_for_other_programs_stay() {
    let mut compared = 0;
    for (file, format) in [("report.csv", "csv"), ("report.prom", "prometheus")] {
        for run in recorded() {
            let Ok(before) = std::fs::read_to_string(run.join(file)) else { continue };
            let now = report(&run, format);
            assert_eq!(now.lines().next(), before.lines().next(), "{}", run.display());
            assert_eq!(lines(&now), lines(&before), "{}", run.display());
            compared += 1;
        }
    }
    assert_eq!(compared, 12);
}
