//! Tests of run directories of fleets and comparisons: a slow disk does not delay heartbeats, and a full one
//! does not end the run.

use std::fs::File;

use crate::common::{can_mount, document, has_run, in_own_mounts, said, scratch};
use crate::fleet::fleet;
use crate::fleet_left::Watch;
use serde_json::{Value, json};

#[test]
fn hosts_hear_of_their_controller_whatever_its_disk_does() {
    let (place, run) = (scratch(), scratch());
    let watch = Watch::new(place.path());
    // Reading or writing the FIFO in place of the distributions blocks until the other side is opened.
    let script = "mkfifo $RUN/hist.hlog 2>/dev/null; sh -c \"$1\"; touch $0.done";
    let mut load = fleet("load", "a,b", script);
    load.args("--heartbeat 2s {host}.dat --size 1M --write 100 --duration 12s --warmup 0".split(' '));
    load.args(["--remove-after", "--out"]).arg(run.path()).env("RUN", run.path()).current_dir(place.path());
    let load = crate::load_support::start(&mut load);
    watch.until(&["a.done", "b.done"]);
    drop(File::options().write(true).open(run.path().join("hist.hlog")).unwrap());
    let output = load.wait_with_output().unwrap();
    assert!(has_run(&output), "{}", said(&output));
    let document = document(&output);
    assert_eq!(document["partial"], json!(false), "{document:#}");
    let read = |name: &str| std::fs::read_to_string(run.path().join(name)).unwrap();
    assert!(read("hist.hlog").contains("Tag=target-1/write,"), "{}", read("hist.hlog"));
    assert_eq!(serde_json::from_str::<Value>(&read("result.json")).unwrap(), document);
    assert!(read("manifest.json").contains("\"complete\""), "{}", read("manifest.json"));
}

/// Returns the document of a command whose run directory is on a full disk.
fn on_a_full_disk(words: &str) -> Value {
    let place = scratch();
    let script = format!(
        "mount -t tmpfs -o size=12k none $place; cd $(mktemp -d); code=0; $plumb {words} --json --out $place || code=$?; \
         rm -rf $PWD; exit $code"
    );
    let output = in_own_mounts(&script, place.path());
    assert!(matches!(output.status.code(), Some(1 | 3)), "{words}: {}", said(&output));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("the file system is full"), "{words}: {}", said(&output));
    let document = document(&output);
    assert_eq!(document["run_directory"], Value::Null, "{words}: {document:#}");
    assert!(document.to_string().contains("the file system is full"), "{words}: {document:#}");
    document
}

#[test]
fn a_run_directory_that_is_full_ends_no_load_of_many_hosts_no_comparison_and_no_study() {
    if !can_mount() {
        return;
    }
    let reach = "--hosts a,b --remote-plumb $plumb --launcher 'sh -c '\\''exec sh -c \"$1\"'\\'' {host}'";
    let words = "sim:memory --random --warmup 0";
    let load = on_a_full_disk(&format!("fleet load {reach} {words} --duration 100ms"));
    assert_eq!((&load["partial"], load["hosts"].as_array().unwrap().len()), (&json!(false), 2), "{load:#}");
    let compared =
        format!("fleet compare {reach} {words} --duration 20ms --rounds 8 --a '--depth 1' --b '--depth 4'");
    let compared = on_a_full_disk(&compared);
    assert_eq!((&compared["complete"], &compared["blocks"]), (&json!(true), &json!(8)), "{compared:#}");
    let compared = on_a_full_disk(
        "compare --a '--depth 1' --b '--depth 4' sim:sas-15k --random --duration 400ms --budget 12s",
    );
    assert!(compared["blocks"].as_u64().unwrap() >= 8, "{compared:#}");
    let study = on_a_full_disk("study d");
    assert!(!study["studies"].as_array().unwrap().is_empty(), "{study:#}");
}
