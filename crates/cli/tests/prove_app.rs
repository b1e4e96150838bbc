//! Tests of `plumb prove app` and `replay`: arguments, results and exit codes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use plumb_testkit::loop_device::can_attach;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{PYTHON, document, entries, exited, holds, plumb, said, scratch};
use crate::load_killed::start_until_result;
use crate::load_support::stderr;

/// SQLite that loses its last commit on any file system, because the directory is not synced after the
/// journal is removed.
const LOSES: &str = "sqlite:journal=delete,synchronous=full,inserts=1,deletes=0";

/// Script that checks that the last line of the log is at least the acknowledged one. The log may be empty or
/// end in zeroes, because the kernel may commit its name and size before its data.
const CHECK: &str =
    "n=$(tr -d '\\0' 2>/dev/null < log | tail -n 1); [ \"${n:-0}\" -ge \"${PLUMB_REQUIRED:-0}\" ]";

/// Runs `plumb prove` in `place`, which is also the directory for temporary files and must be left empty.
pub(crate) fn prove(place: &TempDir, arguments: &[&str]) -> Output {
    let temporary = place.path().join("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command: Command = plumb();
    command.arg("prove").args(arguments).current_dir(place.path()).env("TMPDIR", &temporary);
    let output = command.output().unwrap();
    assert_eq!(entries(&temporary), Vec::<String>::new(), "left behind by {arguments:?}: {}", said(&output));
    output
}

/// Options that make the explored states independent of the speed of the machine.
const UNHURRIED: [&str; 4] = ["--budget", "20m", "--recovery-depth", "1"];

fn proved(place: &TempDir, arguments: &[&str], code: i32) -> Value {
    let all: Vec<&str> =
        ["app", "--json", "--size", "64M"].iter().chain(&UNHURRIED).chain(arguments).copied().collect();
    let output = prove(place, &all);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    document(&output)
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
        ("app --subject sqlite --drive cache:volatil", 2, "write-through"),
        ("app --subject sqlite --drive cache:volatile?mode=fast", 2, "`mode=fast`"),
        ("app --subject sqlite --drive volatile,cache:volatile", 2, "another recording"),
        ("app --subject sqlite --fs zfs", 2, "ext4"),
        ("app --subject sqlite --run true --check true", 2, "cannot be used with"),
        ("app --run true --fs none", 2, "--check"),
        ("app --run true --ack stdout", 2, "--check"),
        ("app --run true --check true --read true", 2, "cannot be used with"),
        ("app --run true --check true --ack fd:1", 2, "fd:N"),
        ("app --subject sqlite --size 1M", 2, "at least"),
        ("app --subject sqlite --target ack:1", 2, "EVENT..EVENT"),
        ("app --subject sqlite --drive lying:8", 4, "--mount-here"),
        ("app --run true --drive-at log=64M", 2, "--check"),
        ("app --run true --check true --drive-at ../log=64M", 2, "log=64M"),
        ("app --run true --check true --drive-at log=64M --fs posix", 2, "choose ext4"),
        ("app --run true --check true --drive-at log=64M --drive cache:volatile", 2, "one drive"),
        ("app --run true --check true --drive-at a=64M --drive-at a=32M", 2, "same name"),
        ("app --run true --check true --drive-at a=64M,volatil", 2, "--drive-at a: `volatil`"),
        ("app --run true --check true --drive-at a=64M,lying", 4, "--mount-here"),
        ("app --run true --check true --fs posix --keep-log-writes log", 2, "a log is of one drive"),
        ("app --log-writes nothing", 2, "nothing"),
        ("app --log-writes /dev/null --fs xfs", 2, "it ends in its first block"),
        ("app --log-writes /dev/null --subject sqlite", 2, "cannot be used with"),
        ("app --recording /dev/null", 2, "first line"),
        ("app --recording nothing", 2, "nothing"),
        ("app --recording /dev/null --subject sqlite", 2, "cannot be used with"),
        ("app --recording /dev/null --check true", 2, "cannot be used with '--check"),
        ("app --recording /dev/null --read true", 2, "cannot be used with '--read"),
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
    if !can_attach() {
        return;
    }
    let place = scratch();
    let found = proved(&place, &["--subject", LOSES, "--seed", "7", "--out", "run"], 1);
    holds("prove", &found);
    assert_eq!(
        (&found["proved"], &found["level"], &found["seed"]),
        (&false.into(), &"danger".into(), &7.into())
    );
    let failure = &found["failures"][0];
    assert_eq!(failure["class"], "lost-acknowledged", "{failure:#}");
    let has_strace = Command::new("strace").arg("-V").output().is_ok();
    if has_strace {
        let change = &failure["change"];
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

    // Run the replay command of the document.
    let replay: Vec<&str> = failure["replay"].as_str().unwrap().split_whitespace().skip(2).collect();
    assert_eq!(replay, ["replay", "run", "lost-acknowledged"]);
    let output = exited(prove(&place, &[&replay[..], &["--json"]].concat()), 1);
    holds("prove-replay", &document(&output));
    assert_eq!(
        (&document(&output)["reproduced"], &document(&output)["found"]),
        (&true.into(), &failure["class"])
    );
    let output = exited(prove(&place, &["replay", "run", "corrupt"]), 2);
    assert!(stderr(&output).contains("lost-acknowledged"), "{}", said(&output));

    // Explores the recording under two profiles.
    let again = proved_from(&place, "run/recording", 1);
    assert_eq!(again["states"]["failing"], found["states"]["failing"]);
    // Data that was never written to the drive is lost under any profile.
    assert_eq!(again["profiles"][1]["name"], "write-through");
    assert!(again["profiles"][1]["failing"].as_u64() > Some(0), "{again:#}");
    // A run that is resumed after its end has nothing left to explore.
    let output = exited(prove(&place, &["app", "--resume", "run", "--json"]), 1);
    assert_eq!(document(&output)["states"]["failing"], found["states"]["failing"]);
}

fn proved_from(place: &TempDir, recording: &str, code: i32) -> Value {
    let line =
        ["app", "--recording", recording, "--drive", "volatile,write-through", "--json", "--no-record"];
    let output = prove(place, &[&line[..], &UNHURRIED].concat());
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    document(&output)
}

#[test]
fn programs_are_put_to_the_test_by_programs() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let synced = "for n in 1 2 3; do echo $n >> log; sync -f .; echo $n > $PLUMB_ACK; done";
    // One recording with chosen writeback; more recordings have a test of their own.
    let line = ["--run", synced, "--check", CHECK, "--out", "honest", "--recordings", "2"];
    let honest = proved(&place, &line, 0);
    assert_eq!((&honest["states"]["failing"], &honest["level"]), (&0.into(), &"none".into()), "{honest:#}");
    assert_eq!(honest["recording"]["acknowledged_by"], "control-file");
    let lost = synced.replace("sync -f .; ", "");
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
    if !can_attach() {
        return;
    }
    let place = scratch();
    let acknowledges = "echo 1 >> log; sync -f .; echo 1 > $PLUMB_ACK";
    let broken = proved(&place, &["--run", acknowledges, "--check", "exit 7", "--no-record"], 3);
    assert!(broken["incomplete_because"].as_str().unwrap().contains("the check itself failed"), "{broken:#}");
    assert_eq!((&broken["complete"], &broken["proved"]), (&false.into(), &false.into()));
    let silent = proved(&place, &["--run", "echo 1 > log; sync -f .", "--check", "true", "--no-record"], 3);
    assert!(silent["not_proved_because"].to_string().contains("nothing was acknowledged"), "{silent:#}");
    let output =
        prove(&place, &["app", "--run", "exit 3", "--check", "true", "--size", "64M", "--out", "none"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(stderr(&output).contains("exit 3"), "{}", said(&output));
    assert!(!Path::new(&place.path().join("none")).exists(), "nothing was recorded");
    // States that were not reached are unknown.
    let line = ["--run", acknowledges, "--check", "true", "--states", "2", "--no-record"];
    let few = proved(&place, &line, 0);
    assert_eq!((&few["proved"], &few["states"]["distinct"]), (&false.into(), &2.into()), "{few:#}");
    assert!(few["not_proved_because"].to_string().contains("not every state"), "{few:#}");
}

#[test]
fn the_example_of_the_manual_fails_and_its_mended_form_does_not() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/proving");
    let check = format!("{scripts}/check.sh");
    let wrong = format!("{scripts}/save-wrong.sh");
    let lost = proved(&place, &["--run", &wrong, "--check", &check, "--states", "100", "--out", "wrong"], 1);
    let failure = &lost["failures"][0];
    assert_eq!(failure["class"], "lost-acknowledged", "{lost:#}");
    if Command::new("strace").arg("-V").output().is_ok() {
        let change = &failure["change"];
        assert_eq!(change["sentence"], "fsync of the directory after rename(document)", "{failure:#}");
        assert_eq!((&change["kind"], &change["failing_after"]), (&"sync-call".into(), &0.into()));
        // The timeline has the calls that lead to the broken promise, with the programs that made them.
        let timeline = failure["minimal"]["timeline"].as_array().unwrap();
        let calls: Vec<&str> = timeline
            .iter()
            .filter(|item| item["lane"] == "system-call")
            .map(|item| item["label"].as_str().unwrap())
            .collect();
        for call in ["fsync(document.new) by sync ", "(document) by mv "] {
            assert!(calls.iter().any(|label| label.contains(call)), "{call}: {calls:?}");
        }
    }
    let mended = format!("{scripts}/save.sh");
    // A single recording, because the number of further ones depends on the speed of the machine.
    let line = ["--run", &mended, "--check", &check, "--no-record", "--no-change", "--recordings", "1"];
    let honest = proved(&place, &line, 0);
    assert_eq!((&honest["proved"], &honest["states"]["failing"]), (&true.into(), &0.into()), "{honest:#}");
}

/// Program that writes a record of three equal numbers, each in a block of its own, and a mark of the last
/// complete record, which is synced after the numbers or before them. The mark is `unmarked` until all three
/// are there.
const THREE: &str = "import os, struct, sys
how, what = sys.argv[1:]
file, mark = (os.open(name, os.O_RDWR | os.O_CREAT) for name in ('three', 'mark'))
put = lambda fd, block, number: os.pwrite(fd, struct.pack('<Q', number).ljust(4096, b'.'), block * 4096)
get = lambda fd, block: struct.unpack('<Q', os.pread(fd, 8, block * 4096))[0]
if what == 'setup':
    [put(file, block, 0) for block in range(3)]; put(mark, 0, 0); os.fsync(file); os.fsync(mark)
elif what == 'run':
    if how == 'mark-first': put(mark, 0, 1); os.fdatasync(mark)
    [put(file, block, 1) for block in range(3)]
    if how == 'mark-last': put(mark, 0, 1); os.fdatasync(mark)
    os.fdatasync(file); put(mark, 0, 0); os.fdatasync(mark)
    open(os.environ['PLUMB_ACK'], 'w').write('1')
else:
    found = {get(file, block) for block in range(3)}
    sys.exit(2 if len(found) > 1 and not get(mark, 0) else 0)
";

/// The mark is synced while the blocks are dirty in memory. The kernel keeps them there for seconds, so a
/// recording of one second never shows a block on the drive before the mark.
#[test]
fn a_mark_that_the_kernel_may_overtake_is_found_out_and_one_that_it_may_not_is_proved() {
    let has = |name: &str, option: &str| Command::new(name).arg(option).output().is_ok();
    if !can_attach() || !has(PYTHON, "-V") || !has("strace", "-V") {
        return plumb_testkit::skip("it takes root, FUSE, python3 and strace");
    }
    let place = scratch();
    std::fs::write(place.path().join("three.py"), THREE).unwrap();
    let proved = |how: &str, more: &[&str], code: i32| {
        let program = place.path().join("three.py");
        let line = |what: &str| format!("{PYTHON} -IS {} {how} {what}", program.display());
        let [setup, run, check] = ["setup", "run", "check"].map(line);
        let all = ["--setup", &setup, "--run", &run, "--check", &check, "--seed", "7", "--no-change"];
        proved(&place, &[&all[..], more].concat(), code)
    };
    let first = proved("mark-last", &["--recordings", "1", "--no-record"], 0);
    assert_eq!((&first["proved"], &first["model"]), (&true.into(), &"ext4 as recorded".into()), "{first:#}");
    let found = proved("mark-last", &["--out", "late"], 1);
    holds("prove", &found);
    let failure = &found["failures"][0];
    assert_eq!(failure["class"], "corrupt", "{failure:#}");
    let number = failure["recording"].as_u64().unwrap();
    let recordings = found["recordings"].as_array().unwrap();
    assert_eq!((number, recordings.last().unwrap()["number"].as_u64()), (number.max(1), Some(number)));
    let again = prove(&place, &["replay", "late", "--json"]);
    let shown = document(&again);
    assert_eq!((again.status.code(), &shown["reproduced"]), (Some(1), &true.into()), "{}", said(&again));
    let resumed = prove(&place, &["app", "--resume", "late", "--json"]);
    assert_eq!(document(&resumed)["failures"][0]["class"], "corrupt", "{}", said(&resumed));
    // Three syncs, of which all but the last have a change after them; four eager recordings, and one random
    // one.
    let honest = proved("mark-first", &["--recordings", "8", "--no-record"], 0);
    assert_eq!((&honest["proved"], &honest["recordings_left"]), (&true.into(), &0.into()), "{honest:#}");
    assert_eq!(honest["recordings"].as_array().unwrap().len(), 7, "{honest:#}");
    assert_eq!(honest["model"], "ext4 as recorded and with writeback chosen (7 further recordings)");
    let few = proved("mark-first", &["--recordings", "3", "--no-record"], 0);
    assert_eq!((&few["proved"], &few["recordings_left"]), (&false.into(), &4.into()), "{few:#}");
}

/// Both drives lose power at any moment, and the cache recovers.
#[test]
fn over_a_cache_what_is_synced_is_kept_and_what_only_seems_to_be_is_lost() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let work = "for n in 1 2 3 4 5; do echo $n >> log; sync log; echo $n > $PLUMB_ACK; sleep 0.05; done";
    let over = |drive: &str, run: &str, code: i32| {
        let line = ["--drive", drive, "--run", run, "--check", CHECK, "--states", "90", "--no-change"];
        proved(&place, &[&line[..], &["--out", &drive.replace(['?', '='], "-")]].concat(), code)
    };
    let honest = over("cache:volatile", work, 0);
    let states = &honest["states"];
    assert!(states["failing"] == 0 && states["checked"].as_u64() > Some(20), "{states}");
    // The log is not flushed, and lacks data that it claims to have: either the cache detects that and
    // refuses the log, or the rest of a block is not read and the kernel cannot mount the file system.
    let believed = over("cache:volatile?mode=protected", work, 1);
    let failure = &believed["failures"][0];
    assert_eq!(failure["class"], "unmountable", "{failure:#}");
    assert!(failure["minimal"].to_string().contains("log of the cache"), "{failure:#}");
    let words = failure["words"].as_str().unwrap();
    assert!(words.contains("durable") || words.contains("does not mount"), "{words}");
    let again = prove(&place, &["replay", "cache:volatile-mode-protected", "--json"]);
    assert_eq!(
        (again.status.code(), &document(&again)["reproduced"]),
        (Some(1), &true.into()),
        "{}",
        said(&again)
    );
    // A program that acknowledges before it syncs loses data over a cache as well.
    let early = over("cache:protected", &work.replace("sync log; ", ""), 1);
    assert_eq!(early["failures"][0]["class"], "lost-acknowledged", "{early:#}");
    let line = ["app", "--recording", "cache:protected/recording", "--drive", "volatile"];
    exited(prove(&place, &line), 2);
}

/// Starts a proof that has written its findings under the first drive profile, and whose checks hang under
/// the second. Only the second drive loses completed and unflushed commands: the second sync leaves states to
/// check whatever was found under the first.
fn hanging(place: &TempDir, run: &str) -> (Child, PathBuf) {
    let (out, temporary) = (place.path().join("run"), place.path().join("temporary"));
    for directory in [&out, &temporary] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let free = place.path().join("free");
    // Findings of a window are reported only after all windows of the first profile.
    let told = "\"at_risk\"";
    let hangs = format!(
        "grep -qs '{told}' {}/result.json && [ ! -e {} ] && sleep 1000",
        out.display(),
        free.display()
    );
    let mut command = plumb();
    command.args(["prove", "app", "--json", "--size", "64M", "--drive", "protected,volatile"]);
    let synced_twice = format!("{run}; sync -f .; echo > late; sync -f .");
    command.args(["--run", &synced_twice, "--check", &format!("{hangs}; {CHECK}"), "--check-timeout", "1h"]);
    command.args(["--no-change", "--out"]).arg(&out).env("TMPDIR", &temporary);
    (start_until_result(&out, &|result| result.contains(told), &mut command), free)
}

#[test]
fn a_proof_that_is_killed_leaves_what_it_found_and_goes_on() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let (mut child, free) = hanging(&place, "for n in 1 2; do echo $n >> log; echo $n > $PLUMB_ACK; done");
    child.kill().unwrap();
    child.wait().unwrap();
    let output = plumb().args(["report", "--format", "json"]).arg(place.path().join("run")).output().unwrap();
    let found = document(&output);
    assert_eq!((&found["level"], &found["complete"]), (&"danger".into(), &false.into()), "{found:#}");
    assert_eq!(found["failures"][0]["class"], "lost-acknowledged", "{found:#}");
    // The mounts end with the process; their directories stay.
    std::fs::remove_dir_all(place.path().join("temporary")).unwrap();
    std::fs::write(free, "").unwrap();
    let output = exited(prove(&place, &["app", "--resume", "run", "--json", "--junit", "junit.xml"]), 1);
    let whole = document(&output);
    assert_eq!((&whole["complete"], &whole["seed"]), (&true.into(), &found["seed"]), "{whole:#}");
    assert_eq!(whole["states"]["failing"], found["states"]["failing"]);
    assert_eq!(whole["profiles"].as_array().unwrap().len(), 2, "{whole:#}");
    let junit = std::fs::read_to_string(place.path().join("junit.xml")).unwrap();
    assert!(junit.contains("lost-acknowledged on volatile"), "{junit}");
}

#[test]
fn a_proof_that_is_interrupted_keeps_what_it_found() {
    if !can_attach() {
        return;
    }
    let synced = "for n in 1 2; do echo $n >> log; sync -f .; echo $n > $PLUMB_ACK; done";
    let early = "for n in 1 2; do echo $n >> log; echo $n > $PLUMB_ACK; done";
    for (run, signal, code) in [(synced, Signal::TERM, 3), (early, Signal::INT, 1)] {
        let place = scratch();
        let (child, _) = hanging(&place, run);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        let found = document(&output);
        assert_eq!(
            (&found["complete"], &found["incomplete_because"]),
            (&false.into(), &"interrupted".into())
        );
        let manifest = std::fs::read_to_string(place.path().join("run/manifest.json")).unwrap();
        assert!(manifest.contains("\"interrupted\""), "{manifest}");
        assert_eq!(entries(&place.path().join("temporary")), Vec::<String>::new());
    }
}

#[test]
fn a_program_that_fails_is_named_as_it_was_typed() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let output =
        prove(&place, &["app", "--run", "exit 1", "--check", "true", "--size", "64M", "--no-record"]);
    let text = said(&output);
    assert!(text.contains("`exit 1`: ended with exit status: 1"), "{text}");
    assert!(!text.contains("seccomp"), "no command line of strace: {text}");
}

/// Program that acknowledges a number when it is in the log, and then copies it into the data.
const LOGGED: &str = "echo 1 > new; sync new; mv new log; sync .; echo 1 > $PLUMB_ACK; \
                      echo 1 > new; sync new; mv new data; sync .; rm log; sync .";

#[test]
fn a_recovery_that_a_second_cut_ruins_is_found_and_one_that_it_does_not_ruin_is_proved() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let [apply, forget] = ["echo $v > new; sync new; mv new data; sync .", "rm log; sync ."];
    let recovery = |first: &str, then: &str| format!("if [ -f log ]; then v=$(cat log); {first}; {then}; fi");
    let (forgets, applies) = (recovery(forget, apply), recovery(apply, forget));
    let look = "[ $(cat data) -ge ${PLUMB_REQUIRED:-0} ] || exit 1";
    let [wrong, right] = [&forgets, &applies].map(|recovery| format!("{recovery}; {look}"));
    let programs = [
        "app",
        "--json",
        "--size",
        "64M",
        "--recordings",
        "1",
        "--budget",
        "10m",
        // Limits also the cuts during checks, which otherwise use a quarter of the budget.
        "--states",
        "16",
        "--setup",
        "echo 0 > data",
        "--run",
        LOGGED,
    ];
    let of = |check: &str, more: &[&str], code| {
        let output = prove(&place, &[&programs[..], &["--check", check], more].concat());
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", said(&output));
        document(&output)
    };

    let found = of(&wrong, &["--out", "run"], 1);
    holds("prove", &found);
    let failure = &found["failures"][0];
    assert_eq!(failure["class"], "recovery-not-idempotent", "{found:#}");
    assert_eq!(found["states"]["failing"], 0, "{found:#}");
    assert!(found["recovery"]["failing"].as_u64() > Some(0), "{found:#}");
    let output = exited(prove(&place, &["replay", "run", "recovery-not-idempotent", "--json"]), 1);
    assert_eq!(document(&output)["reproduced"], true);

    let proved = of(&right, &["--no-record"], 0);
    assert_eq!(proved["failures"], Value::Array(Vec::new()), "{proved:#}");
    let recovery = &proved["recovery"];
    assert!(recovery["explored"].as_u64() > Some(0), "{proved:#}");
    assert_eq!((&recovery["depth"], &recovery["failing"]), (&2.into(), &0.into()), "{proved:#}");

    let once = of(&wrong, &["--no-record", "--recovery-depth", "1"], 0);
    assert_eq!(once["recovery"], Value::Null, "{once:#}");

    let apart = of(look, &["--recover", &forgets, "--no-record"], 1);
    let failure = &apart["failures"][0];
    assert_eq!(failure["class"], "recovery-not-idempotent", "{apart:#}");
    assert!(failure["words"].as_str().unwrap().contains("during the recovery"), "{failure:#}");
    // A cut during this check would lose acknowledged data.
    let ruins = format!("{look}; rm data log 2>/dev/null; sync .");
    let apart = of(&ruins, &["--recover", &applies, "--no-record"], 0);
    assert!(apart["recovery"]["explored"].as_u64() > Some(0), "{apart:#}");
    assert_eq!(apart["failures"], Value::Array(Vec::new()), "{apart:#}");
}

#[test]
fn a_second_cut_ruins_no_recovery_of_sqlite() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    for journal in ["wal,synchronous=full", "delete,synchronous=extra"] {
        let subject = format!("sqlite:journal={journal},inserts=3");
        let output = prove(
            &place,
            &["app", "--json", "--size", "64M", "--subject", &subject, "--recordings", "1", "--no-record"],
        );
        assert_eq!(output.status.code(), Some(0), "{journal}: {}", said(&output));
        let proved = document(&output);
        assert_eq!(proved["recovery"]["failing"], 0, "{journal}: {proved:#}");
        assert_eq!(proved["failures"], Value::Array(Vec::new()), "{journal}: {proved:#}");
    }
}

#[test]
fn a_program_that_becomes_another_user_acknowledges() {
    if !can_attach() {
        return;
    }
    // The build directory may not be accessible to others.
    let place = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let work = "sh -c \"cd d; echo 1 > f; sync f; sync .; echo 1 > $PLUMB_ACK\"";
    let check = "grep -q 1 d/f || [ -z \"$PLUMB_REQUIRED\" ]";
    let setpriv = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    for (fs, by) in [("ext4", setpriv), ("ext4", "unshare --user --map-root-user"), ("posix", setpriv)] {
        let tried = std::process::Command::new("sh").args(["-c", &format!("{by} true")]).output().unwrap();
        if !tried.status.success() {
            plumb_testkit::skip(&format!("`{by}` does not work here"));
            continue;
        }
        let run = format!("{by} {work}");
        let output = prove(
            &place,
            &[
                "app",
                "--json",
                "--fs",
                fs,
                "--size",
                "64M",
                "--recordings",
                "1",
                "--setup",
                "mkdir d; chmod 777 d .",
                "--run",
                &run,
                "--check",
                check,
                "--no-record",
            ],
        );
        assert_eq!(output.status.code(), Some(0), "{by}, {fs}: {}", said(&output));
        let proof = document(&output);
        assert_eq!(
            (&proof["recording"]["acknowledgements"], &proof["states"]["failing"]),
            (&1.into(), &0.into()),
            "{by}: {proof:#}"
        );
    }
}

#[test]
fn a_program_that_does_not_see_the_control_file_is_told_how_to_reach_it() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let run = "mount -t tmpfs none $TMPDIR; echo 1 > \"$PLUMB_ACK\"";
    let run = format!("unshare --mount sh -c '{run}'");
    let output = prove(&place, &["app", "--run", &run, "--check", "true", "--size", "64M", "--no-record"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("a chroot or a container") && text.contains("--user NAME"), "{text}");
}

#[test]
fn the_file_system_is_made_and_mounted_as_typed() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let run = "echo 1 >> log; sync log; sync .; echo 1 > $PLUMB_ACK";
    let line = ["--run", run, "--check", CHECK, "--no-record", "--no-change", "--recordings", "1"];
    let proof = |options: &[&str], code| proved(&place, &[&line[..], options].concat(), code);
    let journal = proof(&["--mount-options", "data=journal,noatime"], 0);
    let model = journal["model"].as_str().unwrap();
    assert!(model.starts_with("ext4 (data=journal,noatime) as recorded"), "{journal:#}");
    // Without barriers fsync sends no flush.
    let loses = proof(&["--mount-options", "nobarrier"], 1);
    assert_eq!(loses["recording"]["flushes"], 0, "{loses:#}");
    let output =
        prove(&place, &["app", "--run", run, "--check", CHECK, "--size", "64M", "--mount-options", "datum"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("--mount-options datum"), "{}", said(&output));
}

/// The log is written with direct I/O, and only the data is synced: the flush of its drive covers the log
/// only if that is on the same drive.
#[test]
fn a_flush_of_one_drive_makes_nothing_durable_on_another() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let setup = "mkdir -p log; dd if=/dev/zero of=log/a bs=4k count=1 conv=fsync status=none; sync -f log";
    let write = "printf %4096s x | dd of=log/a bs=4k oflag=direct conv=notrunc iflag=fullblock status=none; ";
    let data = "echo 1 > b; sync b; sync .; echo 1 > $PLUMB_ACK";
    let check = "test -z \"$PLUMB_REQUIRED\" || { grep -q x log/a && test -s b; }";
    let run = |line: &str, code: i32, more: &[&str]| {
        let arguments =
            ["--setup", setup, "--run", line, "--check", check, "--recordings", "1", "--no-change"];
        let found = proved(&place, &[&arguments, more].concat(), code);
        holds("prove", &found);
        found
    };
    // A commit of the journal by its timer would flush the drive of the log, too.
    let on_two = ["--drive-at", "log=32M", "--mount-options", "commit=600"];
    let found = run(&format!("{write}{data}"), 1, &[&on_two[..], &["--out", "run"]].concat());
    let failure = &found["failures"][0];
    assert_eq!(failure["class"], "lost-acknowledged", "{failure:#}");
    let dropped = &failure["minimal"]["dropped"];
    assert_eq!((dropped.as_array().unwrap().len(), &dropped[0]["file"]), (1, &"log/a".into()), "{failure:#}");
    assert!(found["model"].as_str().unwrap().contains("log on a drive of 32 MiB"), "{}", found["model"]);
    // Replay the state from the run directory.
    exited(prove(&place, &["replay", "run"]), 1);

    let protected = ["--drive-at", "log=32M,protected", "--mount-options", "commit=600"];
    for (line, drives) in [
        (format!("{write}{data}"), &[][..]),
        (format!("{write}{data}"), &protected),
        (format!("{write}sync log/a; {data}"), &on_two),
    ] {
        let found = run(&line, 0, drives);
        assert_eq!(found["proved"], true, "{line}: {found:#}");
    }
}

/// Links as to the disks of an array or a volume manager, with a name for each drive.
#[test]
fn without_a_file_system_several_drives_have_a_link_each() {
    if !can_attach() {
        return;
    }
    let place = scratch();
    let write = |drive: &str, how: &str| {
        format!("printf %4096s x | dd of={drive} bs=4k oflag=direct iflag=fullblock status=none {how}; ")
    };
    for (line, code) in [
        (write("b", "") + &write("first", "conv=fsync"), 1),
        (write("b", "conv=fsync") + &write("first", "conv=fsync"), 0),
    ] {
        let run = format!("{line} echo 1 > $PLUMB_ACK");
        let check =
            "test -z \"$PLUMB_REQUIRED\" || { head -c 4k first | grep -q x && head -c 4k b | grep -q x; }";
        let arguments =
            ["--fs", "none", "--drive-at", "b=1M", "--no-change", "--run", &run, "--check", check];
        let found = proved(&place, &arguments, code);
        assert_eq!(found["proved"], code == 0, "{line}: {found:#}");
    }
}
