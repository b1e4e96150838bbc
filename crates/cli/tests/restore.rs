//! Tests of `plumb restore`: it restores leftovers of killed servers, and does not touch living ones.
//!
//! Each test has its own /run, so that servers of other tests are not visible.

use std::process::Output;

use serde_json::{Value, json};

use crate::common::{can_mount, document, exited, in_own_mounts, said, scratch, valid_document};

/// Runs a script with an empty /run of its own. `serve NAME` serves a drive, and sets `server` to its
/// process.
fn run(script: &str) -> Output {
    let functions = "mount -t tmpfs none /run; \
        serve() { mkfifo /run/$1; $plumb drive serve null --name $1 --size 16M --attach --json >/run/$1 & server=$!; \
        head -c 1 /run/$1 >/dev/null; }; ";
    let place = scratch();
    in_own_mounts(&format!("export functions='{functions}'; eval \"$functions\"; {script}"), place.path())
}

/// Returns kind and outcome of everything named after the drive `dead` or `alive`.
fn outcomes(document: &Value) -> Vec<Value> {
    let all = document["left"].as_array().unwrap().iter();
    let is_here = |left: &&Value| {
        let name = left["name"].as_str().unwrap();
        ["dead", "alive"].iter().any(|drive| name == *drive || name.ends_with(&format!("/{drive}.control")))
    };
    all.filter(is_here).map(|left| json!([left["kind"], left["outcome"]])).collect()
}

#[test]
fn what_a_killed_server_left_is_listed_and_taken_away_and_a_living_one_stays() {
    if !can_mount() {
        return;
    }
    for (word, outcome, remains) in [("--dry-run", "left", "1"), ("", "put-back", "0")] {
        let script = format!(
            "serve alive; alive=$server; serve dead; kill -9 $server; wait $server || true; \
             $plumb explain >/dev/null 2>/run/told; $plumb restore {word} --json || true; \
             test $(ls -d /run/plumb/attach/dead | wc -l) = {remains} 2>/dev/null; \
             $plumb drive status alive >/dev/null; kill $alive; wait $alive || true; cat /run/told >&2"
        );
        let output = exited(run(&script), 0);
        let listed = valid_document("restore", &output);
        let expected = [json!(["attachment", outcome]), json!(["control-socket", outcome])];
        assert_eq!(outcomes(&listed), expected, "{listed:#}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("the attachment dead: `plumb restore` removes it"), "{told}");
    }
}

#[test]
fn a_command_that_takes_away_what_a_killed_server_left_says_so_once() {
    if !can_mount() {
        return;
    }
    let output = run("serve dead; kill -9 $server; wait $server || true; $plumb drive detach dead");
    let told = said(&output);
    assert!(told.contains("what it left behind was removed") && !told.contains("`plumb restore`"), "{told}");
}

#[test]
fn a_living_drive_of_the_same_name_in_another_namespace_is_left_alone() {
    if !can_mount() {
        return;
    }
    let other =
        "eval \"$functions\"; serve dead; kill -9 $server; wait $server || true; $plumb drive detach dead";
    let output = run(&format!(
        "serve dead; alive=$server; unshare --mount --propagation slave sh -euc '{other}'; \
         $plumb drive status dead >/dev/null; kill $alive; wait $alive"
    ));
    assert!(output.status.success() && !said(&output).contains("in use"), "{}", said(&output));
}

#[test]
fn a_device_that_somebody_uses_stays_and_the_exit_code_says_so() {
    if !can_mount() {
        return;
    }
    let script = "serve dead; device=$(losetup -n -O NAME -j /run/plumb/attach/dead/mount/disk); exec 5<$device; \
                  kill -9 $server; wait $server || true; code=0; $plumb restore --json || code=$?; exec 5<&-; \
                  $plumb restore >/dev/null; exit $code";
    let output = run(script);
    let listed = document(&output);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let expected = [json!(["attachment", "in-use"]), json!(["control-socket", "left"])];
    assert_eq!(outcomes(&listed), expected, "{listed:#}");
    assert!(listed["left"][0]["because"].is_string(), "{listed:#}");
}

#[test]
fn records_that_cannot_be_listed_are_not_said_to_be_left() {
    let place = scratch();
    // Root can list any directory, except through a loop of links.
    std::os::unix::fs::symlink("restore", place.path().join("restore")).unwrap();
    let null = ["load", "sim:memory", "--count", "1", "--no-record"];
    for words in [&["explain", "flush-dropped"][..], &null] {
        let output =
            crate::common::plumb().args(words).env("STATE_DIRECTORY", place.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}", said(&output));
        assert!(told.contains("cannot see whether a killed plumb left anything: "), "{told}");
        let named = told.lines().filter(|line| line.contains("/restore") && line.contains("left"));
        assert!(named.into_iter().all(|line| !line.contains("`plumb restore`")), "{told}");
    }
}
