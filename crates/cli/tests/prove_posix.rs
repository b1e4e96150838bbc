//! Tests of `plumb prove app --fs posix`: common kinds of crash bugs, with their corrections, without root.

use std::path::Path;
use std::process::{Command, Output};

use plumb_testkit::program;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{PYTHON, document, entries, exited, plumb, said};

const PROGRAM: &str = include_str!("posix_kinds.py");
/// Unprivileged user: nobody.
const NOBODY: u32 = 65534;

/// Creates a directory accessible to everyone with the program, a copy of plumb and a directory for temporary
/// files.
pub(crate) fn place() -> Option<TempDir> {
    let there =
        |program: &str| Command::new(program).arg("-V").output().is_ok_and(|output| output.status.success());
    if let Some(missing) = ["strace", PYTHON, "setpriv"].into_iter().find(|program| !there(program)) {
        plumb_testkit::skip(&format!("{missing} is missing"));
        return None;
    }
    // The build directory may not be accessible to others.
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("kinds.py"), PROGRAM).unwrap();
    program::copy(Path::new(plumb().get_program()), &place.path().join("plumb"));
    std::fs::create_dir(place.path().join("temporary")).unwrap();
    for (path, mode) in [("", 0o755), ("kinds.py", 0o755), ("temporary", 0o777)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(place.path().join(path), mode).unwrap();
    }
    Some(place)
}

/// Runs plumb as nobody. The directory for temporary files must be left empty.
pub(crate) fn as_nobody(place: &Path, arguments: &[&str]) -> Output {
    started(place, Path::new("/"), true, arguments)
}

/// Runs plumb in a directory, as nobody or as the present user. The directory for temporary files must be
/// left empty.
pub(crate) fn started(place: &Path, directory: &Path, as_nobody: bool, arguments: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    if as_nobody && rustix::process::geteuid().is_root() {
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
    }
    let temporary = place.join("temporary");
    command.arg(place.join("plumb")).arg("prove").args(arguments);
    let output =
        command.current_dir(directory).env("TMPDIR", &temporary).env("HOME", &temporary).output().unwrap();
    assert_eq!(entries(&temporary), Vec::<String>::new(), "left behind by {arguments:?}: {}", said(&output));
    output
}

fn proved(place: &Path, kind: &str, how: &str, file_system: &str, code: i32) -> Value {
    let step = |step: &str| format!("{PYTHON} -IS {}/kinds.py {kind} {how} {step}", place.display());
    let [setup, run, check] = ["setup", "run", "check"].map(step);
    let output = as_nobody(
        place,
        &[
            "app",
            "--json",
            "--no-record",
            "--seed",
            "7",
            "--fs",
            file_system,
            "--budget",
            "20m",
            "--setup",
            &setup,
            "--run",
            &run,
            "--check",
            &check,
        ],
    );
    assert_eq!(output.status.code(), Some(code), "{kind} {how}: {}", said(&output));
    document(&output)
}

pub(crate) fn classes(document: &Value) -> Vec<&str> {
    let failures = document["failures"].as_array().unwrap();
    failures.iter().map(|failure| failure["class"].as_str().unwrap()).collect()
}

#[test]
fn known_kinds_of_bugs_are_found_and_their_mended_programs_are_proved() {
    let Some(place) = place() else { return };
    for (kind, expected) in [
        ("rename", "corrupt"),
        ("create", "lost-acknowledged"),
        ("append", "corrupt"),
        ("two_files", "corrupt"),
        ("link", "corrupt"),
        ("dsync", "lost-acknowledged"),
        ("short", "lost-acknowledged"),
        ("vectors", "lost-acknowledged"),
        ("moved", "lost-acknowledged"),
        ("mapped", "lost-acknowledged"),
        ("truncate", "corrupt"),
        ("header", "corrupt"),
        ("directory", "corrupt"),
        ("undo", "corrupt"),
    ] {
        let bad = proved(place.path(), kind, "bad", "posix", 1);
        assert_eq!(classes(&bad), [expected], "{kind}: {bad:#}");
        let good = proved(place.path(), kind, "good", "posix", 0);
        assert_eq!(classes(&good), Vec::<&str>::new(), "{kind}: {good:#}");
        assert_eq!(good["model"], "the POSIX model");
        // Contents of a mapping between calls are not seen.
        assert_eq!(good["proved"], kind != "mapped", "{kind}: {good:#}");
    }
}

#[test]
fn what_cannot_be_seen_is_refused_to_the_program_or_is_not_measured() {
    let Some(place) = place() else { return };
    let ring = proved(place.path(), "ring", "good", "posix", 0);
    assert!(ring["notes"].to_string().contains("plumb made io_uring fail"), "{ring:#}");
    let closed = proved(place.path(), "closed", "good", "posix", 3);
    assert_eq!((closed["proved"].as_bool(), closed["level"].as_str()), (Some(false), Some("warning")));
    assert!(closed["incomplete_because"].to_string().contains("cannot be read"), "{closed:#}");
}

#[test]
fn garbage_is_found_in_blocks_that_were_not_written_only_where_that_is_wanted() {
    let Some(place) = place() else { return };
    let append = "printf 12345678 > log; sync log; sync .; echo 1 > $PLUMB_ACK";
    // An append may leave zeroes, which a check may ignore.
    let digits = "tr -d '\\0' < log | LC_ALL=C grep -q '[^0-9]' && exit 2; exit 0";
    // A write of zeroes allocates blocks, which may have other contents.
    let zeroes = "head -c 8192 /dev/zero > log; sync .; echo 1 > $PLUMB_ACK";
    let nothing = "tr -d '\\0' < log | LC_ALL=C grep -q . && exit 2; exit 0";
    for (run, check) in [(append, digits), (zeroes, nothing)] {
        for (file_system, code) in [("posix", 0), ("posix:garbage", 1)] {
            let arguments =
                ["app", "--json", "--no-record", "--fs", file_system, "--run", run, "--check", check];
            let output = as_nobody(place.path(), &[&arguments[..], &["--setup", ": > log"]].concat());
            assert_eq!(output.status.code(), Some(code), "{file_system}: {}", said(&output));
        }
    }
}

#[test]
fn a_recording_ends_at_its_limit_of_memory() {
    let Some(place) = place() else { return };
    let run = "echo 1 > $PLUMB_ACK; for i in 1 2 3 4 5 6 7 8; do head -c 256k /dev/urandom > d$i; sync -f .; done; \
               echo 2 > $PLUMB_ACK";
    let arguments = ["app", "--json", "--no-record", "--fs", "posix", "--size", "1M", "--run", run];
    let output = as_nobody(place.path(), &[&arguments[..], &["--check", "true", "--states", "20"]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let document = document(&output);
    let why = &document["incomplete_because"];
    assert!(why.to_string().contains("allow more with --size"), "{document:#}");
    assert_eq!(document["recording"]["acknowledgements"], 1);
}

#[test]
fn a_failing_state_is_shown_again_and_made_in_a_directory() {
    let Some(place) = place() else { return };
    let temporary = place.path().join("temporary");
    let (run, out) = (place.path().join("out"), place.path().join("state"));
    for directory in [&run, &out] {
        std::fs::create_dir(directory).unwrap();
        std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    let (run, out) = (run.join("run").display().to_string(), out.display().to_string());
    let step = |step: &str| format!("{PYTHON} -IS {}/kinds.py rename bad {step}", place.path().display());
    let [setup, work, check] = ["setup", "run", "check"].map(step);
    let arguments =
        ["app", "--fs", "posix", "--out", &run, "--setup", &setup, "--run", &work, "--check", &check];
    let output = exited(as_nobody(place.path(), &arguments), 1);
    // The remedy is a sync call, verified by a new run.
    let text = said(&output);
    assert!(text.contains("fsync of the file after write(tmp)"), "{text}");
    exited(as_nobody(place.path(), &["replay", &run]), 1);
    exited(as_nobody(place.path(), &["replay", &run, "--mount", &out]), 0);
    let doc = std::fs::read(Path::new(&out).join("doc")).unwrap();
    assert!(doc.iter().all(|byte| *byte == 0), "{doc:?}");
    assert_eq!(entries(&temporary), Vec::<String>::new());
}

#[test]
fn what_the_model_does_not_have_is_told_before_anything_is_done() {
    let Some(place) = place() else { return };
    let both = ["app", "--fs", "posix", "--run", "true", "--check", "true"];
    for (more, why) in
        [(&["--drive", "lying"][..], "has no drive"), (&["--ack", "stdout"], "through the control file")]
    {
        let output = exited(as_nobody(place.path(), &[&both[..], more].concat()), 2);
        assert!(said(&output).contains(why), "{}", said(&output));
    }
}

/// Returns true if a process has this argument.
fn runs(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
}

#[test]
fn what_programs_leave_running_and_checkers_do_wrong_is_told_in_a_sentence() {
    let Some(place) = place() else { return };
    let flags = place.path().join("flags");
    std::fs::create_dir(&flags).unwrap();
    std::fs::set_permissions(&flags, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let changes_its_mind = format!("mkdir {}/first 2>/dev/null || exit 1", flags.display());
    let acknowledges = "echo 1 > f; sync f; sync .; echo 1 > $PLUMB_ACK";
    // Program that shows a text when it has started, and then waits forever.
    let text = flags.join("text").display().to_string();
    std::fs::write(&text, "it runs\n").unwrap();
    let made = Command::new("mkfifo").args(["-m", "666"]).arg(flags.join("hold")).status().unwrap();
    assert!(made.success());
    let hangs = format!("cat {text} {}/hold", flags.display());
    let lingers = format!("mkfifo {text}.$$; setsid {hangs} >{text}.$$ & head -n 1 {text}.$$ >&2");
    let leaves = format!("{lingers}; {acknowledges}");
    for (run, check, limit, why) in [
        (&*leaves, "true", "10m", "left `cat` running when it ended, and it was killed"),
        (acknowledges, &*lingers, "10m", "left `cat` running when it ended"),
        (acknowledges, &*hangs, "1s", "has not ended after 1 s and was killed"),
        (acknowledges, &*changes_its_mind, "10m", "the checker answers differently for the same state"),
        ("echo 1 > f", "true", "10m", "nothing was acknowledged"),
    ] {
        let arguments = ["app", "--json", "--no-record", "--fs", "posix", "--workers", "1"];
        let case = ["--check-timeout", limit, "--run", run, "--check", check];
        let output = as_nobody(place.path(), &[&arguments[..], &case].concat());
        assert_eq!(output.status.code(), Some(3), "{run}, {check}: {}", said(&output));
        let because = document(&output)["incomplete_because"].to_string();
        assert!(because.contains(why), "{run}, {check}: {because}");
        assert!(!runs(&text), "{run}, {check}: left running");
    }
}

#[test]
fn programs_are_named_from_where_plumb_was_started() {
    let Some(place) = place() else { return };
    let script = |name: &str, body: &str| program::write_script(&place.path().join(name), body);
    script("work.sh", "echo $1 > f; sync f; sync .; echo $1 > $PLUMB_ACK");
    script("check.sh", "test -z \"$PLUMB_REQUIRED\" || grep -q 7 f || exit 1");
    let arguments = ["app", "--json", "--no-record", "--fs", "posix", "--run", "./work.sh 7", "--check"];
    let output = started(place.path(), place.path(), true, &[&arguments[..], &["./check.sh"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(document(&output)["proved"], true);
}

#[test]
fn programs_run_as_another_user_to_whom_the_files_belong() {
    let Some(place) = place() else { return };
    if !rustix::process::geteuid().is_root() {
        return plumb_testkit::skip("it takes root to run programs as another user");
    }
    let is_nobody = format!("test $(id -u) = {NOBODY} && test $(stat -c %u .) = {NOBODY} || exit 9");
    let run = format!("{is_nobody}; echo 1 > f; sync f; sync .; echo 1 > $PLUMB_ACK");
    let check =
        format!("{is_nobody}; test -z \"$PLUMB_REQUIRED\" || {{ echo more >> f && grep -q 1 f; }} || exit 1");
    for file_system in ["posix", "ext4"] {
        let arguments =
            ["app", "--json", "--no-record", "--fs", file_system, "--size", "64M", "--recordings", "2"];
        let programs = ["--user", "nobody", "--setup", &is_nobody, "--run", &run, "--check", &check];
        // The check writes, so it would be cut for a part of the budget.
        let all = [&arguments[..], &programs, &["--recovery-depth", "1"]].concat();
        let output = started(place.path(), Path::new("/"), false, &all);
        assert_eq!(output.status.code(), Some(0), "{file_system}: {}", said(&output));
        let document = document(&output);
        assert_eq!(document["recording"]["acknowledgements"], 1, "{file_system}: {document:#}");
        assert_eq!(document["incomplete_because"], Value::Null, "{file_system}: {document:#}");
    }
    let unknown = ["app", "--fs", "posix", "--user", "nobody-at-all", "--run", "true", "--check", "true"];
    let output = exited(started(place.path(), Path::new("/"), false, &unknown), 2);
    assert!(said(&output).contains("there is no such user"), "{}", said(&output));
}

#[test]
fn a_change_is_named_only_if_nothing_fails_with_it() {
    let Some(place) = place() else { return };
    let change = |run: &str, check: &str| {
        let check = format!("[ -z \"$PLUMB_REQUIRED\" ] || {{ {check}; }}");
        let line = ["app", "--json", "--no-record", "--fs", "posix", "--setup", "echo 0 > old", "--run"];
        let output = as_nobody(place.path(), &[&line[..], &[run, "--check", &check]].concat());
        assert_eq!(output.status.code(), Some(1), "{run}: {}", said(&output));
        let failure = document(&output)["failures"][0].clone();
        (failure["change"].clone(), failure["change_unknown_because"].as_str().unwrap_or_default().to_owned())
    };
    // Both the file and its name are needed.
    let (both, _) = change("echo 1 > f; echo 1 > $PLUMB_ACK", "grep -q 1 f");
    let sentence = both["sentence"].as_str().unwrap_or_default();
    assert_eq!(sentence, "fsync of the file after write(f) and fsync of the directory after open(f)");
    assert_eq!((&both["failing_after"], &both["verified_by"]), (&0.into(), &"new-run".into()), "{both:#}");
    let (one, _) = change("echo 1 > f; sync f; echo 1 > $PLUMB_ACK", "grep -q 1 f");
    assert_eq!(one["sentence"], "fsync of the directory after open(f)");
    // No sync can satisfy this check.
    let (none, why) = change("echo 1 > f; sync f; sync .; echo 1 > $PLUMB_ACK", "grep -q 2 f");
    assert_eq!(none, Value::Null);
    assert!(why.starts_with("no change was tried"), "{why}");
    let (none, why) = change("echo 1 > f; echo 1 > $PLUMB_ACK", "grep -q 2 f");
    assert_eq!(none, Value::Null);
    assert!(why.contains("states still fail"), "{why}");
}
