//! Tests of `plumb prove app` without a checker: states are compared with the files that the program had made
//! visible.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{PYTHON, document, plumb, said, scratch, valid_document};
use crate::prove_posix::{as_nobody, classes, place};

const HONEST: &str = include_str!("automatic_honest.py");
/// Number of correct programs.
const SEEDS: u32 = 12;
/// Number of programs with removable sync calls.
const SPARE_SEEDS: u32 = 4;

fn proved(place: &Path, setup: &str, run: &str, more: &[&str]) -> (i32, Value) {
    // The explored states must not depend on the speed of the machine.
    let arguments = ["app", "--json", "--no-record", "--no-change", "--fs", "posix", "--budget", "20m"];
    let output = as_nobody(place, &[&arguments[..], &["--setup", setup, "--run", run], more].concat());
    let document = valid_document("prove", &output);
    (output.status.code().unwrap(), document)
}

#[test]
fn known_kinds_have_the_verdict_that_they_have_with_a_checker() {
    let Some(place) = place() else { return };
    for (kind, expected) in [
        ("rename", &["corrupt", "lost-acknowledged"][..]),
        ("create", &["lost-acknowledged"]),
        ("link", &["lost-acknowledged"]),
        ("dsync", &["corrupt"]),
        ("truncate", &["corrupt", "lost-acknowledged"]),
        ("directory", &["lost-acknowledged"]),
    ] {
        for (how, code, expected) in [("bad", 1, expected), ("good", 0, &[])] {
            let step =
                |step: &str| format!("{PYTHON} -IS {}/kinds.py {kind} {how} {step}", place.path().display());
            let (found, document) = proved(place.path(), &step("setup"), &step("run"), &[]);
            assert_eq!((found, &classes(&document)[..]), (code, expected), "{kind} {how}: {document:#}");
            assert_eq!(document["proved"], code == 0, "{kind} {how}: {document:#}");
        }
    }
}

#[test]
fn the_end_of_a_program_is_an_acknowledgement_unless_it_gives_one() {
    let Some(place) = place() else { return };
    let save = |last: &str| format!("echo new > tmp; sync tmp; mv tmp doc; {last}");
    for (run, code, by) in [
        (save("sync ."), 0, "exit"),
        (save("true"), 1, "exit"),
        // Nothing is promised about the rest.
        (format!("echo 1 > $PLUMB_ACK; {}", save("true")), 0, "control-file"),
    ] {
        let (found, document) = proved(place.path(), "echo old > doc", &run, &[]);
        assert_eq!(found, code, "{run}: {document:#}");
        assert_eq!(document["recording"]["acknowledged_by"], by, "{run}");
    }
    let (_, document) = proved(place.path(), "true", "echo a > a; sync a; sync .; rm a", &[]);
    assert_eq!(document["failures"][0]["words"], "resurrected: `a` had been removed, and is back");
}

#[test]
fn a_program_that_repairs_its_files_is_judged_by_what_a_reader_prints() {
    let Some(place) = place() else { return };
    // The reader applies the undo log.
    let read = "import struct; data = open('data', 'rb').read(); n, old, seal = struct.unpack('<III', open('log', 'rb').read(12)); \
                first = [struct.unpack('<I', data[at:at + 4])[0] for at in (0, 4096)]; \
                print([old, old] if n and seal == n * 31 + old * 10 + 99 else first)";
    let read = format!("{PYTHON} -IS -c \"{read}\"");
    for (how, code) in [("bad", 1), ("good", 0)] {
        let step = |step: &str| format!("{PYTHON} -IS {}/kinds.py undo {how} {step}", place.path().display());
        let (found, document) = proved(place.path(), &step("setup"), &step("run"), &["--read", &read]);
        assert_eq!(found, code, "{how}: {document:#}");
    }
}

#[test]
fn a_reader_that_cannot_tell_states_apart_proves_nothing() {
    let Some(place) = place() else { return };
    for (read, why) in [("cat nothing", "ends with exit status: 1"), ("date +%N", "different output")] {
        let (found, document) = proved(place.path(), "true", "printf x > a", &["--read", read]);
        assert_eq!((found, &document["proved"]), (3, &false.into()), "{read}: {document:#}");
        assert!(document.to_string().contains(why), "{read}: {document:#}");
    }
}

#[test]
fn honest_programs_are_proved_whatever_the_seed() {
    let Some(place) = place() else { return };
    let program = place.path().join("honest.py");
    std::fs::write(&program, HONEST).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for seed in 1..=SEEDS {
        let step = |step: &str| format!("{PYTHON} -IS {} {seed} {step}", program.display());
        let (found, document) = proved(place.path(), &step("setup"), &step("run"), &[]);
        assert_eq!((found, &document["states"]["failing"]), (0, &0.into()), "seed {seed}: {document:#}");
    }
}

/// Asserts that of each pair of equal sync calls either can be removed, but not both, and that all others are
/// needed.
#[test]
fn a_sync_that_is_needed_is_never_named_as_one_that_can_go() {
    let Some(place) = place() else { return };
    let program = place.path().join("honest.py");
    std::fs::write(&program, HONEST).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let [open, spare] = ["open", "open/spare"].map(|name| place.path().join(name));
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    for seed in 1..=SPARE_SEEDS {
        let step = |step: &str| format!("{PYTHON} -IS {} {seed} {step}", program.display());
        let run = format!("{} {}", step("run"), spare.display());
        let (found, document) = proved(place.path(), &step("setup"), &run, &["--needless-syncs"]);
        assert_eq!(found, 0, "seed {seed}: {document:#}");
        let pairs = std::fs::read_to_string(&spare).unwrap();
        std::fs::remove_file(&spare).unwrap();
        let pairs: Vec<u64> = pairs.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let needless = document["needless_syncs"].as_array().unwrap();
        let numbers = |is_one: &dyn Fn(&&Value) -> bool| -> Vec<u64> {
            needless.iter().filter(is_one).map(|one| one["number"].as_u64().unwrap()).collect()
        };
        assert_eq!(numbers(&|_| true), pairs, "seed {seed}: {document:#}");
        let together = numbers(&|one| one["together"] == true);
        let firsts: Vec<u64> = pairs.iter().copied().step_by(2).collect();
        assert_eq!(together, firsts, "seed {seed}: {document:#}");
    }
}

/// Program with two syncs that are needed for a save, and one that is not.
const THREE_SYNCS: &str = "import os
fd = os.open('tmp', os.O_CREAT | os.O_WRONLY); os.write(fd, b'new' * 2000); os.fsync(fd); os.fsync(fd)
os.rename('tmp', 'doc'); d = os.open('.', os.O_RDONLY); os.fsync(d)
open(os.environ['PLUMB_ACK'], 'w').write('1')";

#[test]
fn a_sync_that_can_go_is_told_from_those_that_cannot() {
    let Some(place) = place() else { return };
    let run = format!("{PYTHON} -IS -c \"{THREE_SYNCS}\"");
    let (_, document) = proved(place.path(), "echo old > doc", &run, &["--needless-syncs"]);
    // Either of the first two can be removed, but not both.
    let needless = document["needless_syncs"].as_array().unwrap();
    let numbers: Vec<(u64, bool)> =
        needless.iter().map(|one| (one["number"].as_u64().unwrap(), one["together"] == true)).collect();
    assert_eq!(numbers, [(1, true), (2, false)], "{document:#}");
    assert_eq!(document["syncs_left_out"]["calls"], 3);
    assert_eq!(document["syncs_left_out"]["tried"], 3);
}

/// Proves a program on ext4; `None` where that is impossible.
fn on_ext4(run: &str, more: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        plumb_testkit::skip("it takes root and FUSE");
        return None;
    }
    let place = scratch();
    let arguments = ["prove", "app", "--json", "--no-record", "--no-change", "--size", "64M", "--run", run];
    let mut command = plumb();
    command.args(arguments).args(more).args(["--setup", "echo old > doc"]).current_dir(place.path());
    Some(command.output().unwrap())
}

#[test]
fn a_mounted_file_system_is_judged_by_the_system_calls_too() {
    for (last, code) in [("sync .", 0), ("true", 1)] {
        let run = format!("echo new > tmp; sync tmp; mv tmp doc; {last}");
        let Some(output) = on_ext4(&run, &["--recordings", "1", "--states", "300"]) else { return };
        assert_eq!(output.status.code(), Some(code), "{last}: {}", said(&output));
        assert_eq!(document(&output)["recording"]["acknowledged_by"], "exit");
    }
}
