//! `plumb prove app` and `replay`: what is typed, what comes out, and how they end.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{document, entries, plumb, said, scratch};
use crate::load_support::stderr;

/// SQLite that loses its last commit on any file system: the directory is not synced after the journal is gone.
const LOSES: &str = "sqlite:journal=delete,synchronous=full,inserts=3,deletes=0";

/// The last line of the log must be what was acknowledged, or more.
const CHECK: &str = "[ \"$(tail -n 1 log 2>/dev/null || echo 0)\" -ge \"${PLUMB_REQUIRED:-0}\" ]";

fn is_possible() -> bool {
    let opens = |path| std::fs::OpenOptions::new().read(true).write(true).open(path).is_ok();
    let is = rustix::process::geteuid().is_root() && opens("/dev/fuse") && opens("/dev/loop-control");
    if !is {
        plumb_testkit::skip("it takes root, FUSE and loop devices");
    }
    is
}

/// `plumb prove` in `place`, which is the directory for temporary files too: nothing may stay in it.
fn prove(place: &TempDir, arguments: &[&str]) -> Output {
    let temporary = place.path().join("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command: Command = plumb();
    command.arg("prove").args(arguments).current_dir(place.path()).env("TMPDIR", &temporary);
    let output = command.output().unwrap();
    assert_eq!(entries(&temporary), Vec::<String>::new(), "left behind by {arguments:?}: {}", said(&output));
    output
}

fn proved(place: &TempDir, arguments: &[&str], code: i32) -> Value {
    let all: Vec<&str> = ["app", "--json", "--size", "64M"].iter().chain(arguments).copied().collect();
    let output = prove(place, &all);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    document(&output)
}

fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "`{key}` is not in {value:#}");
    }
}

#[test]
fn what_makes_no_sense_is_told_before_anything_is_done() {
    let place = scratch();
    for (typed, code, why) in [
        ("app", 2, "--subject"),
        ("app --subject sqlit", 2, "sqlite"),
        ("app --subject sqlite:journal=wel", 2, "journal"),
        ("app --subject sqlite --drive volatil", 2, "write-through"),
        ("app --subject sqlite --drive volatile,volatile", 2, "twice"),
        ("app --subject sqlite --fs zfs", 2, "ext4"),
        ("app --subject sqlite --run true --check true", 2, "cannot be used with"),
        ("app --run true", 2, "--check"),
        ("app --run true --check true --ack fd:1", 2, "fd:N"),
        ("app --subject sqlite --size 1M", 2, "at least"),
        ("app --subject sqlite --target ack:1", 2, "EVENT..EVENT"),
        ("app --subject sqlite --drive lying:8", 4, "--mount-here"),
        ("app --recording /dev/null", 2, "first line"),
        ("app --recording nothing", 2, "nothing"),
        ("app --recording /dev/null --subject sqlite", 2, "cannot be used with"),
        ("app --resume nothing", 2, "nothing"),
        ("replay nothing", 2, "expected the directory of a proof"),
    ] {
        let output = prove(&place, &typed.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{typed}: {}", said(&output));
        assert!(stderr(&output).contains(why), "{typed}: {}", said(&output));
    }
    assert_eq!(entries(place.path()), ["temporary"]);
}

#[test]
fn a_loss_is_found_kept_and_shown_again() {
    if !is_possible() {
        return;
    }
    let place = scratch();
    let found = proved(&place, &["--subject", LOSES, "--seed", "7", "--out", "run"], 1);
    has_keys(
        &found,
        &["proved", "level", "headline", "states", "coverage", "failures", "profiles", "seed", "complete"],
    );
    has_keys(&found["states"], &["explored", "distinct", "failing"]);
    has_keys(&found["coverage"], &["windows", "exhaustive", "bounded", "sampled"]);
    assert_eq!(
        (&found["proved"], &found["level"], &found["seed"]),
        (&false.into(), &"danger".into(), &7.into())
    );
    let failure = &found["failures"][0];
    has_keys(failure, &["class", "states", "minimal", "seed", "replay", "change"]);
    assert_eq!(failure["class"], "lost-acknowledged", "{failure:#}");
    has_keys(&failure["minimal"], &["dropped", "torn"]);
    let has_strace = Command::new("strace").arg("-V").output().is_ok();
    if has_strace {
        let change = &failure["change"];
        has_keys(change, &["kind", "sentence", "verified_by", "explored", "failing_after"]);
        assert_eq!(
            (&change["kind"], &change["verified_by"]),
            (&"sync-call".into(), &"new-run".into()),
            "{change:#}"
        );
        assert!(
            change["sentence"].as_str().unwrap().contains("fsync of the directory after unlink"),
            "{change:#}"
        );
        assert_eq!(change["failing_after"], 0);
    }
    let profile = &found["profiles"][0];
    assert_eq!((&profile["name"], &profile["failing"]), (&"volatile".into(), &found["states"]["failing"]));

    // The command that the document names, here.
    let replay: Vec<&str> = failure["replay"].as_str().unwrap().split_whitespace().skip(2).collect();
    assert_eq!(replay, ["replay", "run", "lost-acknowledged"]);
    let output = prove(&place, &[&replay[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(
        (&document(&output)["reproduced"], &document(&output)["found"]),
        (&true.into(), &failure["class"])
    );
    let output = prove(&place, &["replay", "run", "corrupt"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("lost-acknowledged"), "{}", said(&output));

    // The recording alone, under two profiles.
    let again = proved_from(&place, "run/recording", 1);
    assert_eq!(again["states"]["failing"], found["states"]["failing"]);
    // What was never written to the drive is lost on any.
    assert_eq!(again["profiles"][1]["name"], "write-through");
    assert!(again["profiles"][1]["failing"].as_u64() > Some(0), "{again:#}");
    // All is known of a run that goes on after its end.
    let output = prove(&place, &["app", "--resume", "run", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(document(&output)["states"]["failing"], found["states"]["failing"]);
}

fn proved_from(place: &TempDir, recording: &str, code: i32) -> Value {
    let line =
        ["app", "--recording", recording, "--drive", "volatile,write-through", "--json", "--no-record"];
    let output = prove(place, &line);
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    document(&output)
}

#[test]
fn programs_are_put_to_the_test_by_programs() {
    if !is_possible() {
        return;
    }
    let place = scratch();
    let synced = "for n in 1 2 3; do echo $n >> log; sync; echo $n > $PLUMB_ACK; done";
    let honest = proved(&place, &["--run", synced, "--check", CHECK, "--out", "honest"], 0);
    assert_eq!((&honest["states"]["failing"], &honest["level"]), (&0.into(), &"none".into()), "{honest:#}");
    assert_eq!(honest["recording"]["acknowledged_by"], "control-file");
    let lost = synced.replace("sync; ", "");
    let line = ["--run", &lost, "--check", CHECK, "--out", "lost", "--no-change"];
    let lost = proved(&place, &line, 1);
    assert_eq!(lost["failures"][0]["class"], "lost-acknowledged");
    assert_eq!(lost["failures"][0]["change"], Value::Null);
    let said_late = synced.replace("echo $n > $PLUMB_ACK", "echo ACK $n");
    let line = ["--run", &said_late, "--check", CHECK, "--ack", "stdout", "--no-record", "--no-change"];
    let late = proved(&place, &line, 0);
    assert_eq!(late["proved"], false);
    assert!(late["not_proved_because"].to_string().contains("stdout"), "{late:#}");
}

#[test]
fn programs_that_fail_by_themselves_prove_nothing() {
    if !is_possible() {
        return;
    }
    let place = scratch();
    let acknowledges = "echo 1 >> log; sync; echo 1 > $PLUMB_ACK";
    let broken = proved(&place, &["--run", acknowledges, "--check", "exit 7", "--no-record"], 3);
    assert!(broken["incomplete_because"].as_str().unwrap().contains("the check itself failed"), "{broken:#}");
    assert_eq!((&broken["complete"], &broken["proved"]), (&false.into(), &false.into()));
    let silent = proved(&place, &["--run", "echo 1 > log; sync", "--check", "true", "--no-record"], 0);
    assert!(silent["not_proved_because"].to_string().contains("nothing was acknowledged"), "{silent:#}");
    let output =
        prove(&place, &["app", "--run", "exit 3", "--check", "true", "--size", "64M", "--out", "none"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(stderr(&output).contains("exit 3"), "{}", said(&output));
    assert!(!Path::new(&place.path().join("none")).exists(), "nothing was recorded");
    // Of what was not reached nothing is known.
    let line = ["--run", acknowledges, "--check", "true", "--states", "2", "--no-record"];
    let few = proved(&place, &line, 0);
    assert_eq!((&few["proved"], &few["states"]["distinct"]), (&false.into(), &2.into()), "{few:#}");
    assert!(few["not_proved_because"].to_string().contains("not every state"), "{few:#}");
}
