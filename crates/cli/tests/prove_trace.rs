//! Tests of `plumb prove trace` on real programs: their operations without a sync, and their reaction to a
//! failed fsync.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{PYTHON, document, exited, plumb, said, scratch, valid_document};

/// Returns the output, if strace is available.
fn trace(options: &[&str], place: &Path, program: &[&str]) -> Option<Output> {
    let mut command = plumb();
    command.args(["prove", "trace", "--json"]).args(options).arg("--").args(program).current_dir(place);
    let output = command.output().unwrap();
    if output.status.code() == Some(3) && output.stdout.is_empty() {
        plumb_testkit::skip(&String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(output)
}

fn kinds(document: &Value) -> Vec<(&str, &str)> {
    let findings = document["findings"].as_array().unwrap();
    findings.iter().map(|one| (one["kind"].as_str().unwrap(), one["path"].as_str().unwrap())).collect()
}

#[test]
fn tools_that_copy_and_move_are_told_apart() {
    let place = scratch();
    std::fs::write(place.path().join("a"), b"12345").unwrap();
    let Some(output) = trace(&[], place.path(), &["cp", "a", "b"]) else { return };
    let copied = valid_document("prove-trace", &output);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(kinds(&copied).contains(&("data-not-synced", "b")), "{copied}");

    let output = trace(&[], place.path(), &["mv", "a", "c"]).unwrap();
    assert_eq!(kinds(&document(&output)), [("directory-not-synced", "c")], "{}", said(&output));

    let dd = ["dd", "if=/dev/zero", "of=d", "bs=4k", "count=4", "conv=fsync", "status=none"];
    let output = trace(&[], place.path(), &dd).unwrap();
    let written = document(&output);
    assert_eq!(kinds(&written), [("directory-not-synced", "d")], "{}", said(&output));
    assert_eq!(written["synced"]["d"], 1);

    let output = trace(&[], place.path(), &["sh", "-c", "echo x >> b; sync b"]).unwrap();
    assert_eq!(output.status.code(), Some(0), "a file that was there: {}", said(&output));
    let output = trace(&[], place.path(), &["sh", "-c", ": > b"]).unwrap();
    assert_eq!(kinds(&document(&output)), [("data-not-synced", "b")], "{}", said(&output));

    exited(trace(&[], place.path(), &["sh", "-c", "cp a2 b2 2>/dev/null; mkdir e; sync -f ."]).unwrap(), 0);
}

/// A sync after overwriting a file in place does not prevent torn states before it.
#[test]
fn states_are_explored_where_the_program_is() {
    let in_place = format!(
        "{PYTHON} -IS -c \"import os; f = os.open('doc', os.O_RDWR); os.write(f, b'b' * 8192); os.fsync(f)\""
    );
    for (script, code, classes) in [
        ("echo new > tmp; sync tmp; mv tmp doc; sync .", 0, &[][..]),
        (&in_place, 1, &["corrupt"]),
        ("rm doc; sync .", 0, &[]),
    ] {
        let place = scratch();
        std::fs::write(place.path().join("doc"), "a".repeat(8192)).unwrap();
        let Some(output) = trace(&["--explore"], place.path(), &["sh", "-c", script]) else { return };
        let traced = valid_document("prove-trace", &output);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", said(&output));
        assert_eq!(kinds(&traced), Vec::new(), "{script}: {traced:#}");
        let states = &traced["states"];
        assert_eq!(states["exhaustive"], true, "{script}: {traced:#}");
        let failures = states["failures"].as_array().unwrap();
        let found: Vec<&str> = failures.iter().map(|one| one["class"].as_str().unwrap()).collect();
        assert_eq!(found, classes, "{script}: {traced:#}");
    }
}

#[test]
fn what_a_program_says_does_not_mix_with_the_result() {
    let place = scratch();
    let script = "print('to stdout'); import mmap; f = open('m', 'w+b'); f.truncate(4096); mmap.mmap(f.fileno(), 4096)";
    let Some(output) = trace(&[], place.path(), &["python3", "-c", script]) else { return };
    assert_eq!(document(&output)["not_seen"]["mmap"], 1, "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("to stdout"));
    let shown = plumb()
        .args(["prove", "trace", "--", "python3", "-c", script])
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("Not seen: what was written through mmap"), "{text}");
}

#[test]
fn a_program_that_is_not_there_could_not_be_traced() {
    let place = scratch();
    let output =
        plumb().args(["prove", "trace", "no-such-program"]).current_dir(place.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(!said(&output).contains("could not be traced"), "{}", said(&output));
}

#[test]
fn a_program_that_ends_with_an_error_is_not_called_untraceable_and_not_clean() {
    let place = scratch();
    let run = |options: &[&str], script: &str| {
        let mut command = plumb();
        command.args(["prove", "trace"]).args(options).args(["sh", "-c", script]).current_dir(place.path());
        command.output().unwrap()
    };
    let output = run(&[], "exit 1");
    let text = said(&output);
    if text.contains("strace(1)") || text.contains("install") {
        return plumb_testkit::skip(&text);
    }
    assert_eq!(output.status.code(), Some(3), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the program ended with exit status: 1") && !words.contains("started"), "{text}");
    // Unsynced operations before the failure are still findings.
    assert_eq!(run(&[], "echo a >f; exit 1").status.code(), Some(1));
    assert_eq!(run(&[], "exit 0").status.code(), Some(0));
}

#[test]
fn without_strace_its_package_is_named() {
    let place = scratch();
    let output = plumb().args(["prove", "trace", "true"]).env("PATH", place.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("install the package strace"),
        "{}",
        said(&output)
    );
}

const WRITE: &str = "import os; f = os.open('f', os.O_CREAT | os.O_WRONLY); os.write(f, b'x' * 65536)\n";

/// Returns the result for a program whose first fsync failed; `None` where that cannot be tried.
fn with_failing_fsync(rest: &str) -> Option<(i32, Value)> {
    let place = scratch();
    let output = trace(&["--fail-fsync"], place.path(), &["python3", "-c", &format!("{WRITE}{rest}")])?;
    let document = document(&output);
    assert_eq!(document["failed_writes"], 1, "{}", said(&output));
    Some((output.status.code().unwrap(), document))
}

const DIRECTORY: &str = "os.fsync(os.open('.', os.O_RDONLY))\n";

#[test]
fn a_program_that_stops_at_a_failed_fsync_has_not_ignored_it() {
    let Some((code, document)) = with_failing_fsync("os.fsync(f)") else { return };
    assert_eq!((code, kinds(&document)), (0, Vec::new()), "{document}");
    assert_eq!(document["succeeded"], false);
}

#[test]
fn a_program_that_ignores_a_failed_fsync_is_found() {
    let ignores = format!("try: os.fsync(f)\nexcept OSError: pass\n{DIRECTORY}");
    let Some((code, document)) = with_failing_fsync(&ignores) else { return };
    assert_eq!(code, 1, "{document}");
    assert!(kinds(&document).contains(&("failed-sync-ignored", "f")), "{document}");
}

#[test]
fn a_program_that_believes_a_second_fsync_is_found() {
    let retries = format!("try: os.fsync(f)\nexcept OSError: os.fsync(f)\n{DIRECTORY}");
    let Some((code, document)) = with_failing_fsync(&retries) else { return };
    assert_eq!((code, kinds(&document)), (1, vec![("failed-sync-retried", "f")]), "{document}");
}

#[test]
fn a_program_that_asks_nobody_about_errors_is_found() {
    let Some((code, document)) = with_failing_fsync("os.sync()") else { return };
    assert_eq!((code, kinds(&document)), (1, vec![("failure-not-seen", ".")]), "{document}");
}

#[test]
fn what_could_not_be_seen_is_not_called_clean() {
    let place = scratch();
    std::fs::write(place.path().join("m"), [0; 4096]).unwrap();
    let script =
        "import mmap; f = open('m', 'r+b'); m = mmap.mmap(f.fileno(), 4096); m[0:1] = b'1'; m.flush()";
    let Some(output) = trace(&[], place.path(), &["python3", "-c", script]) else { return };
    let traced = document(&output);
    assert_eq!(kinds(&traced), Vec::new(), "{traced}");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    // A mapping of a file elsewhere does not count.
    let elsewhere = scratch();
    let mut command = plumb();
    command.args(["prove", "trace", "--json", "--beneath"]).arg(elsewhere.path());
    exited(command.args(["--", "python3", "-c", script]).current_dir(place.path()).output().unwrap(), 0);
}
