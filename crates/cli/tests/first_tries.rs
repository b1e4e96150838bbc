//! Tests of typical first attempts of users: words of other programs, typing errors, runs without a name, and
//! a second run.

use std::process::{Command, Output};

use crate::common::{document, entries, exited, has_run, plumb, said, scratch};
use crate::load_support::{Place, stderr};

/// Returns a plumb command in the place, with its recordings there.
fn here(place: &Place, typed: &str) -> Command {
    let mut command = plumb();
    command.args(typed.split_whitespace()).current_dir(place.here.path());
    command
}

fn tried(place: &Place, typed: &str) -> Output {
    here(place, typed).output().unwrap()
}

#[test]
fn words_of_other_programs_are_answered_with_ours() {
    let place = Place::new();
    for (typed, native) in [
        ("load f --bs 8k", "--block-size 8k"),
        ("load --rw=randwrite --filename=f", "--random --write 100"),
        ("load f --runtime 10", "--duration 10"),
        ("load f --time 10", "--duration 10"),
        ("load f --numjobs 4", "--threads 4"),
        ("load f --iodepth=32", "--depth 32"),
        ("load --filename f", "plumb load f"),
        ("load f --read 70", "--write 30"),
        ("load f --ioengine=psync", "--engine synchronous"),
        ("load f --direct=0", "--cached"),
        ("load f -b8K", "--block-size 8K"),
        ("load f -b 8K -t4", "--threads 4"),
        ("load f -d 5 -o32 -w100", "--duration 5 --depth 32 --write 100"),
        ("check --runtime 5", "--seconds 5"),
        ("check --bs 8k", "plumb load: --block-size 8k"),
    ] {
        let output = tried(&place, typed);
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        assert!(stderr(&output).contains(native), "{typed}: {}", said(&output));
    }
    assert_eq!(entries(place.here.path()), Vec::<String>::new());
}

#[test]
fn no_suggestion_leads_to_what_takes_data_away() {
    let place = Place::new();
    for typed in
        ["load f --trin 3", "load f --tri", "load f --overwrit", "load f --destroi x", "load f --replac"]
    {
        let output = tried(&place, typed);
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        for option in ["--trim", "--overwrite", "--destroy", "--replace"] {
            assert!(!stderr(&output).contains(option), "{typed}: {}", said(&output));
        }
    }
    let output = tried(&place, "load f --dept 3");
    assert!(stderr(&output).contains("--depth"), "{}", said(&output));
}

#[test]
fn an_option_of_another_command_is_answered_with_that_command() {
    let place = Place::new();
    let output = exited(tried(&place, "check . --depth 5"), 2);
    let text = stderr(&output);
    assert!(text.contains("--depth is an option of `plumb load`"), "{text}");
    assert!(!text.contains("as a value"), "{text}");
}

#[test]
fn a_result_that_is_not_there_is_said_to_be_missing() {
    let place = Place::new();
    let output = exited(tried(&place, "report nope.xml"), 2);
    let text = stderr(&output);
    assert!(text.contains("nope.xml does not exist") && text.contains("result of DiskSpd or fio"), "{text}");
}

#[test]
fn times_are_typed_alike_in_every_command() {
    let place = Place::new();
    for (typed, seconds) in [("0.2", 0.2), ("200ms", 0.2)] {
        for flag in ["--seconds", "--duration"] {
            let load = place.json(&format!("load sim:memory {flag} {typed} --count 1000000000"), 0);
            assert_eq!(load["duration"], seconds, "{flag} {typed}");
            let check =
                tried(&place, &format!("check sim:memory --size 16M --no-record --json {flag} {typed}"));
            assert!(has_run(&check), "{flag} {typed}: {}", said(&check));
        }
    }
    for typed in ["0", "10 parsecs", "2d", "-1", "nan"] {
        let output = here(&place, "check --seconds").arg(typed).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
    }
    assert_eq!(entries(place.here.path()), Vec::<String>::new(), "--no-record kept something");
}

#[test]
fn runs_are_kept_in_one_place_and_the_newest_is_shown() {
    let place = Place::new();
    exited(here(&place, "report").env("XDG_STATE_HOME", place.here.path()).output().unwrap(), 2);
    for seed in [11, 12] {
        assert!(has_run(&tried(&place, &format!("load sim:memory --count 10 --seed {seed}"))));
    }
    assert_eq!(entries(place.here.path()), ["plumb-runs"]);
    let mut runs = entries(&place.path("plumb-runs"));
    runs.sort();
    let seed_of = |run: &str| {
        let output = tried(&place, &format!("report --json {run}"));
        document(&output)["seed"].clone()
    };
    assert_eq!(seed_of(&format!("plumb-runs/{}", runs[0])), 11, "{runs:?}");
    assert_eq!(seed_of(&format!("plumb-runs/{}", runs[1])), 12, "{runs:?}");
    assert!(runs.iter().all(|run| run.ends_with("-load") || run.ends_with("-diskspd")), "{runs:?}");
    // A directory that is not a run is skipped.
    std::fs::create_dir(place.path("plumb-runs/99991231T000000.000Z-load")).unwrap();
    assert_eq!(seed_of(""), seed_of(&format!("plumb-runs/{}", runs.last().unwrap())));
}

#[test]
fn a_recorded_run_is_replaced_only_when_asked_and_no_tree_is_made() {
    let place = Place::new();
    let load = "load sim:memory --count 10 --seed";
    assert!(has_run(&tried(&place, &format!("{load} 1 --out run"))));
    for typed in
        [format!("{load} 2 --out run"), "check sim:memory --seconds 1 --size 16M --out run".to_owned()]
    {
        let output = tried(&place, &typed);
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        assert!(stderr(&output).contains("--replace"), "{typed}: {}", said(&output));
    }
    assert_eq!(document(&tried(&place, "report --json run"))["seed"], 1);
    assert!(has_run(&tried(&place, &format!("{load} 3 --out run --replace"))));
    assert_eq!(document(&tried(&place, "report --json run"))["seed"], 3);
    let output = exited(tried(&place, &format!("{load} 4 --out a/b/c")), 2);
    assert!(stderr(&output).contains("a/b"), "{}", said(&output));
    let output = tried(&place, &format!("{load} 5 --no-record --json"));
    assert!(has_run(&output) && document(&output)["run_directory"].is_null(), "{}", said(&output));
    assert_eq!(entries(place.here.path()), ["run"]);
}

#[test]
fn what_is_left_is_said_and_what_plumb_made_can_be_removed() {
    let place = Place::new();
    let load = "load f --size 1M --count 10 --no-record";
    let output = tried(&place, load);
    assert!(stderr(&output).contains("f (1 MiB) was made and stays; --remove-after"), "{}", said(&output));
    assert_eq!(entries(place.here.path()), ["f"]);
    let output = tried(&place, load);
    assert!(!stderr(&output).contains("stays"), "this run did not make it: {}", said(&output));
    // A file created by an earlier run belongs to plumb, too.
    assert!(has_run(&tried(&place, &format!("{load} --remove-after"))));
    assert_eq!(entries(place.here.path()), Vec::<String>::new());
    assert!(has_run(&tried(&place, "diskspd -c1M -d1 -W0 -b4k --no-record --remove-after g")));
    assert_eq!(entries(place.here.path()), Vec::<String>::new());
    // A file that something else created, or has used since, stays.
    place.foreign("theirs", 1 << 20);
    assert!(has_run(&tried(&place, "load theirs --count 10 --no-record --remove-after")));
    tried(&place, load);
    let mut image = std::fs::read(place.path("f")).unwrap();
    image[..4].copy_from_slice(b"XFSB");
    std::fs::write(place.path("f"), image).unwrap();
    assert!(has_run(&tried(&place, "load f --count 10 --no-record --remove-after")));
    let mut left = entries(place.here.path());
    left.sort();
    assert_eq!(left, ["f", "theirs"]);
}

#[test]
fn a_survey_takes_several_targets() {
    let (one, other) = (scratch(), scratch());
    let output = plumb()
        .args(["survey", "--json"])
        .args([one.path(), other.path()])
        .arg("sim:memory")
        .output()
        .unwrap();
    let paths = document(&output)["paths"].clone();
    assert_eq!(paths.as_array().unwrap().len(), 3, "{}", said(&output));
    exited(plumb().args(["survey", "/", "/nowhere/at/all"]).output().unwrap(), 2);
    exited(plumb().args(["survey", "--record", "x", "/", "/"]).output().unwrap(), 2);
}

#[test]
fn every_rule_can_be_asked() {
    let list = exited(plumb().arg("explain").output().unwrap(), 0);
    for rule in plumb_report::rules::all() {
        assert!(String::from_utf8_lossy(&list.stdout).contains(&rule.id), "{}", rule.id);
        let output = plumb().arg("explain").arg(format!("[{}]", rule.id)).output().unwrap();
        assert!(output.stdout.starts_with(rule.id.as_bytes()), "{}", said(&output));
    }
    let output = exited(plumb().args(["explain", "page-cahce"]).output().unwrap(), 2);
    assert!(stderr(&output).contains("did you mean page-cache?"), "{}", said(&output));
}

#[test]
fn a_report_is_as_long_as_asked() {
    let place = Place::new();
    let lines = |flag: &str| {
        let output = tried(&place, &format!("check sim:memory --seconds 1 --size 16M --no-record {flag}"));
        assert!(has_run(&output), "{}", said(&output));
        output.stdout.iter().filter(|byte| **byte == b'\n').count()
    };
    let (quiet, normal, verbose) = (lines("-q"), lines(""), lines("-v"));
    assert!(quiet <= normal && normal <= verbose && quiet < verbose, "{quiet} {normal} {verbose}");
    assert_eq!(tried(&place, "check -q -v").status.code(), Some(2));
}

#[test]
fn the_help_of_a_dialect_lists_our_own_options() {
    for dialect in ["diskspd", "sqlio", "fio"] {
        let output = exited(plumb().args([dialect, "--help"]).output().unwrap(), 0);
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        for option in
            ["--overwrite", "--destroy", "--show-workload", "--out", "--replace", "--no-record", "--json"]
        {
            assert!(help.contains(option), "{dialect}: {option} is not in {help}");
        }
    }
}

#[test]
fn root_is_not_told_to_become_root() {
    let place = Place::new();
    place.json("load f --size 1M --count 1", 0);
    let immutable = |set: &str| Command::new("chattr").arg(set).arg(place.path("f")).output();
    if !rustix::process::geteuid().is_root() || !immutable("+i").is_ok_and(|output| output.status.success()) {
        return plumb_testkit::skip("not root, or no immutable files here");
    }
    let output = place.run("load f --write 100 --count 1");
    immutable("-i").unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(
        stderr(&output).contains("even to root") && !stderr(&output).contains("as root"),
        "{}",
        said(&output)
    );
}
