//! Support for the whole-program tests: running plumb, and places to run it in.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use plumb_testkit::schema::Schema;

/// Returns the program under test.
pub(crate) fn plumb() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    // Report every phase, because tests wait for phases that are shorter than the interval of progress lines.
    command.env("PLUMB_PROGRESS", "all");
    command
}

/// Returns a command that is killed after ten minutes, so that a hang fails its test.
pub(crate) fn bounded(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "600", program]);
    command
}

/// Debian's Python, which has the modules. The `python3` in PATH may be a wrapper that searches for one,
/// which takes longer than the checks of the tests.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Returns a directory on the storage of the build, which is a disk rather than memory on most machines.
pub(crate) fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Returns the names of the entries of a directory.
pub(crate) fn entries(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Returns a short check of `target` with its recording in `run`.
pub(crate) fn check(target: &Path, run: &Path) -> Command {
    let mut command = plumb();
    command
        .args(["check", "--seconds", "2", "--size", "16M", "--seed", "7", "--json", "--out"])
        .arg(run)
        .arg(target);
    command
}

/// Parses stdout as one document.
pub(crate) fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("stdout is not one JSON document ({error}): {}", said(output)))
}

/// Returns the one document on stdout, which must be as its schema (`report/load`) says.
#[track_caller]
pub(crate) fn valid_document(schema: &str, output: &Output) -> Value {
    let document = document(output);
    holds(schema, &document);
    document
}

/// Returns true if the command ran to its end. A busy machine may add warnings.
pub(crate) fn has_run(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 1))
}

/// Asserts that a program ended with this code, and says else what it said. Returns its output.
#[track_caller]
pub(crate) fn exited(output: Output, code: i32) -> Output {
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    output
}

/// Returns both streams, for messages.
pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Returns stderr without reports of leftovers, which may come from a plumb that another test killed.
pub(crate) fn own_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.split_inclusive('\n').filter(|line| !line.contains("a killed plumb")).collect()
}

/// Returns the ids of the verdicts.
pub(crate) fn verdict_ids(document: &Value) -> Vec<&str> {
    document["verdicts"].as_array().unwrap().iter().map(|verdict| verdict["id"].as_str().unwrap()).collect()
}

/// Returns true if mounts can be made in a mount namespace of the test's own. Otherwise the test counts as
/// skipped.
pub(crate) fn can_mount() -> bool {
    let can = Command::new("unshare")
        .args(["--mount", "--propagation", "slave", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !can {
        plumb_testkit::skip("no mount namespace can be made");
    }
    can
}

/// Runs a shell script in a mount namespace of its own, with `$plumb` and the directory `$place` set. Mounts
/// that others remove meanwhile disappear there, too.
pub(crate) fn in_own_mounts(script: &str, place: &Path) -> Output {
    Command::new("unshare")
        .args(["--mount", "--propagation", "slave", "sh", "-euc", script])
        .env("plumb", env!("CARGO_BIN_EXE_plumb"))
        .env("place", place)
        .output()
        .unwrap()
}

/// Asserts that the document matches a schema (`report/load`) and has no other fields.
pub(crate) fn holds(schema: &str, document: &Value) {
    Schema::closed(schema).assert_holds(document);
}
